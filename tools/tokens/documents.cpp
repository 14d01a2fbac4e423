// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/tokens/failures.h"
#include "tools/train/utf8.h"

namespace weft::tokens {
namespace {

namespace fs = std::filesystem;

bool isAsciiWord(char c) { return c > ' ' && c < 0x7f; }

// Where a text may be cut at or behind `from`: behind a line's end between two characters that are no space.
size_t cutBehind(std::string_view text, size_t from) {
  for (size_t end = text.find('\n', from); end != std::string_view::npos;
       end = text.find('\n', end + 1))
    if (end > 0 && end + 1 < text.size() && isAsciiWord(text[end - 1]) &&
        isAsciiWord(text[end + 1]))
      return end + 1;
  return text.size();
}

size_t linesOf(std::string_view text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

void forEachPart(const std::shared_ptr<const InputFile>& file, bool maySplit, size_t most,
                 const std::function<void(Piece)>& take) {
  std::string_view rest = file->bytes.text();
  size_t line = 1;
  while (!rest.empty()) {
    const size_t end = maySplit && rest.size() > most ? cutBehind(rest, most) : rest.size();
    const std::string_view part = rest.substr(0, end);
    take({part, end == rest.size(), file, line});
    line += linesOf(part);
    rest.remove_prefix(end);
  }
}

void forEachLine(const std::shared_ptr<const InputFile>& file,
                 const std::function<void(Piece)>& take) {
  std::string_view rest = file->bytes.text();
  for (size_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) take({line, true, file, number});
  }
}

std::string textInJson(const Piece& piece, const std::string& key) {
  const std::string place = fmt::format("{}, line {}", piece.file->name, piece.line);
  nlohmann::json line = nlohmann::json::parse(piece.text, nullptr, false);
  if (!line.is_object()) refuse(place, "it is no object of JSON; --documents says what a text is");
  const auto found = line.find(key);
  if (found == line.end() || !found->is_string())
    refuse(place, fmt::format("it has no text \"{}\"; name its key as --json-key", key));
  return std::move(found->get_ref<std::string&>());
}

}  // namespace

std::vector<std::string> inputFiles(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    if (fs::is_directory(status)) {
      const size_t before = files.size();
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(input))
        if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
      std::sort(files.begin() + static_cast<ptrdiff_t>(before), files.end());
    } else if (fs::is_regular_file(status)) {
      files.push_back(input);
    } else {
      throw train::Failure(train::Exit::kData,
                           fmt::format("cannot read {}: {}", input,
                                       error ? error.message() : "it is no regular file"));
    }
  }
  return files;
}

Documents documentsOf(const std::string& file, Documents asked) {
  if (asked != Documents::kByName) return asked;
  return file.ends_with(".json") || file.ends_with(".jsonl") ? Documents::kJson : Documents::kFiles;
}

void forEachPiece(const std::shared_ptr<const InputFile>& file, bool maySplit, size_t most,
                  const std::function<void(Piece)>& take) {
  if (file->documents == Documents::kFiles)
    forEachPart(file, maySplit, most, take);
  else
    forEachLine(file, take);
}

std::string textOf(const Piece& piece, const std::string& key) {
  const auto byte = static_cast<size_t>(piece.text.data() - piece.file->bytes.text().data());
  train::requireUtf8(piece.text, piece.file->name, piece.line, byte);
  return piece.file->documents == Documents::kJson ? textInJson(piece, key)
                                                   : std::string(piece.text);
}

}  // namespace weft::tokens
