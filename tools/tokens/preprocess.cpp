// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/preprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "tools/tokens/documents.h"
#include "tools/tokens/encoding.h"
#include "tools/tokens/failures.h"
#include "tools/tokens/progress.h"
#include "tools/train/megatron_data.h"
#include "tools/train/megatron_writer.h"

namespace weft::tokens {
namespace {

std::optional<int32_t> endOf(const Options& options, const Tokenizer& tokenizer) {
  if (!options.appendEnd) return {};
  const std::optional<int32_t> end = tokenizer.idOf(options.endToken);
  if (end) return end;
  throw train::Failure(
      train::Exit::kUsage,
      fmt::format("--append-eod: the vocabulary has no token {}; name the one that "
                  "ends a document as --eod",
                  options.endToken));
}

uint64_t bytesOf(const std::vector<std::string>& files) {
  uint64_t sum = 0;
  std::error_code none;
  for (const std::string& file : files) sum += std::filesystem::file_size(file, none);
  return sum;
}

// From the pieces of texts to the writer.
class Pipeline {
 public:
  Pipeline(const Options& options, const Tokenizer& tokenizer, const std::string& prefix,
           uint64_t bytes)
      : most_(options.bundle),
        end_(endOf(options, tokenizer)),
        writer_(prefix, tokenizer.size()),
        encoding_(tokenizer, options.jsonKey, threadsOf(options)),
        progress_(bytes, options.quiet) {}

  void add(Piece piece) {
    next_.bytes += piece.text.size();
    next_.pieces.push_back(std::move(piece));
    if (next_.bytes >= most_) give();
  }

  const train::MegatronWriter& finish() {
    give();
    while (!encoding_.isEmpty()) write(*encoding_.take());
    writer_.finish();
    return writer_;
  }

 private:
  static int threadsOf(const Options& options) {
    if (options.threads > 0) return options.threads;
    return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  }

  void give() {
    if (next_.pieces.empty()) return;
    if (encoding_.isFull()) write(*encoding_.take());
    encoding_.give(std::exchange(next_, {}));
  }

  void write(const Bundle& bundle) {
    for (size_t i = 0; i < bundle.pieces.size(); ++i) {
      writer_.append(bundle.tokens[i]);
      if (!bundle.pieces[i].endsDocument) continue;
      if (end_ && writer_.openTokens() > 0) writer_.append({&*end_, 1});
      writer_.endDocument();
    }
    done_ += bundle.bytes;
    progress_.show(done_, writer_.documents(), writer_.tokens());
  }

  size_t most_;
  std::optional<int32_t> end_;
  train::MegatronWriter writer_;
  Encoding encoding_;
  Progress progress_;
  Bundle next_{};
  uint64_t done_ = 0;
};

}  // namespace

void encodeTexts(const Options& options, const Tokenizer& tokenizer) {
  const auto start = std::chrono::steady_clock::now();
  const std::string prefix = fmt::format("{}_{}_document", options.outputPrefix, options.jsonKey);
  const std::vector<std::string> files = inputFiles(options.inputs);
  const uint64_t bytes = bytesOf(files);
  Pipeline pipeline(options, tokenizer, prefix, bytes);
  for (const std::string& name : files) {
    const auto file = std::make_shared<const InputFile>(
        InputFile{name, documentsOf(name, options.documents), train::MappedFile(name)});
    forEachPiece(file, tokenizer.splitsAtLines(), options.bundle,
                 [&](Piece piece) { pipeline.add(std::move(piece)); });
  }
  const train::MegatronWriter& written = pipeline.finish();
  if (options.quiet) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print(
      "{}.bin and .idx: {} documents, {} tokens of {} bytes each, of {} bytes of text, in {:.2f} s "
      "({:.1f} MB/s)\n",
      prefix, grouped(written.documents()), grouped(written.tokens()), written.tokenBytes(),
      grouped(bytes), took.count(),
      static_cast<double>(bytes) / 1e6 / std::max(took.count(), 1e-3));
}

void decodeDataset(const Options& options, const Tokenizer& tokenizer) {
  const std::optional<int32_t> end = endOf(options, tokenizer);
  const train::MegatronData data(options.decode);
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < data.index().lengths.size(); ++i) {
    tokens.clear();
    data.append(i, 0, static_cast<size_t>(data.index().lengths[i]), tokenizer.size(), tokens);
    if (end && !tokens.empty() && tokens.back() == *end) tokens.pop_back();
    std::string text;
    for (const int64_t token : tokens) {
      const std::string* const bytes = tokenizer.bytesOfToken(static_cast<int32_t>(token));
      if (bytes == nullptr)
        refuse(data.file(),
               fmt::format("sequence {} has a token {}, which the vocabulary has not", i, token));
      text += *bytes;
    }
    const nlohmann::json line{{options.jsonKey, text}};
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

}  // namespace weft::tokens
