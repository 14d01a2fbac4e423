// SPDX-License-Identifier: Apache-2.0
// What BERT's tokens are: bytes and four marks, or the word pieces of a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::train {

class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  // Appends the tokens of a text.
  virtual void encode(std::span<const uint8_t> text, std::vector<int32_t>& tokens) const = 0;

  struct Marks {
    int32_t pad, start, separator, mask;
  };
  const Marks& marks() const { return marks_; }
  // All tokens but the marks, to draw one from.
  const std::vector<int32_t>& words() const { return words_; }
  int64_t size() const { return size_; }
  uint64_t fingerprint() const { return fingerprint_; }

 protected:
  Marks marks_{};
  std::vector<int32_t> words_;
  int64_t size_ = 0;
  uint64_t fingerprint_ = 0;  // of its file
};

// A byte is the token of its value; the marks follow.
std::unique_ptr<Vocabulary> byteVocabulary();

// BERT's uncased WordPiece: one piece a line, its number the token. A word (bert_words.h) is the longest piece
// that it begins with, then the longest that goes on, or unknown as a whole.
// Throws Failure if the file cannot be read or lacks a mark.
std::unique_ptr<Vocabulary> wordPieceVocabulary(const std::string& file);

}  // namespace weft::train
