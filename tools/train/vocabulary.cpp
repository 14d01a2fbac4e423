// SPDX-License-Identifier: Apache-2.0
#include "tools/train/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "tools/train/bert_words.h"
#include "tools/train/corpus.h"
#include "tools/train/failure.h"
#include "tools/train/fingerprint.h"
#include "tools/train/model_shape.h"
#include "tools/train/random.h"

namespace weft::train {
namespace {

class Bytes : public Vocabulary {
 public:
  Bytes() {
    marks_ = {kBytes, kBytes + 1, kBytes + 2, kBytes + 3};
    words_.resize(kBytes);
    std::iota(words_.begin(), words_.end(), 0);
    size_ = kBytesAndMarks;
  }
  void encode(std::span<const uint8_t> text, std::vector<int32_t>& tokens) const override {
    tokens.insert(tokens.end(), text.begin(), text.end());
  }
};

// BERT's own tokenizer takes no longer word, so that a text without spaces does not take the square of its length.
constexpr size_t kLongestWord = 100;  // characters

class WordPiece : public Vocabulary {
 public:
  explicit WordPiece(const std::string& file) : file_(file) {
    requireFile(file);
    errno = 0;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
      const auto token = static_cast<int32_t>(pieces_.size());
      const bool mark = line.size() > 2 && line.front() == '[' && line.back() == ']';
      longest_ = std::max(longest_, line.size());
      fingerprint_ = mix(fingerprint_) ^ train::fingerprint(std::span<const char>(line));
      if (pieces_.emplace(std::move(line), token).second && !mark) words_.push_back(token);
    }
    if (!stream.is_open() || stream.bad()) {
      throw Failure(Exit::kData, fmt::format("cannot read {}: {}", file, std::strerror(errno)));
    }
    size_ = static_cast<int64_t>(pieces_.size());
    marks_ = {markOf("[PAD]"), markOf("[CLS]"), markOf("[SEP]"), markOf("[MASK]")};
    unknown_ = markOf("[UNK]");
  }

  void encode(std::span<const uint8_t> text, std::vector<int32_t>& tokens) const override {
    const std::string_view characters(reinterpret_cast<const char*>(text.data()), text.size());
    forEachBertWord(characters, [&](std::string_view word, size_t length) {
      if (length > kLongestWord)
        tokens.push_back(unknown_);
      else
        encodeWord(word, tokens);
    });
  }

 private:
  // The longest piece that fits, then the longest that continues it; or unknown as a whole.
  void encodeWord(std::string_view word, std::vector<int32_t>& tokens) const {
    const size_t before = tokens.size();
    for (size_t done = 0; done < word.size();) {
      const std::string prefix = done == 0 ? "" : "##";
      size_t length = std::min(word.size() - done, longest_);
      auto found = pieces_.end();
      for (; length > 0; --length) {
        found = pieces_.find(prefix + std::string(word.substr(done, length)));
        if (found != pieces_.end()) break;
      }
      if (length == 0) {
        tokens.resize(before);
        tokens.push_back(unknown_);
        return;
      }
      tokens.push_back(found->second);
      done += length;
    }
  }

  int32_t markOf(const std::string& name) const {
    const auto found = pieces_.find(name);
    if (found == pieces_.end()) {
      throw Failure(Exit::kData,
                    fmt::format("{} is no vocabulary of BERT: it has no line {}", file_, name));
    }
    return found->second;
  }

  std::string file_;
  std::unordered_map<std::string, int32_t> pieces_;
  size_t longest_ = 0;
  int32_t unknown_ = 0;
};

}  // namespace

std::unique_ptr<Vocabulary> byteVocabulary() { return std::make_unique<Bytes>(); }

std::unique_ptr<Vocabulary> wordPieceVocabulary(const std::string& file) {
  return std::make_unique<WordPiece>(file);
}

}  // namespace weft::train
