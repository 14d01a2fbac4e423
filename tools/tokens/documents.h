// SPDX-License-Identifier: Apache-2.0
// Texts, cut into pieces that can be encoded side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tokens/options.h"
#include "tools/train/mapped_file.h"

namespace weft::tokens {

struct InputFile {
  std::string name;
  Documents documents;  // not kByName
  train::MappedFile bytes;
};

// A document or a part of one, as it stands in its file.
struct Piece {
  std::string_view text;
  bool endsDocument;
  std::shared_ptr<const InputFile> file;
  size_t line;  // in which it begins, from 1
};

// All regular files of the options, those below a folder in the order of their paths. Throws train::Failure for one
// that is not there.
std::vector<std::string> inputFiles(const std::vector<std::string>& inputs);
Documents documentsOf(const std::string& file, Documents asked);

// Calls `take` for the pieces of a file in their order. Documents of more than `most` bytes are cut between lines, if
// `maySplit` says that they may be (Tokenizer::splitsAtLines).
void forEachPiece(const std::shared_ptr<const InputFile>& file, bool maySplit, size_t most,
                  const std::function<void(Piece)>& take);

// The text of a piece: for JSON the value of `key`, else the piece itself. Throws train::Failure, with file and line,
// if it is no such JSON or no UTF-8.
std::string textOf(const Piece& piece, const std::string& key);

}  // namespace weft::tokens
