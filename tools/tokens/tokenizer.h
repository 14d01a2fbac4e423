// SPDX-License-Identifier: Apache-2.0
// The byte-level BPE of GPT-2 (Radford and others, 2019) and of NeoX: a text is split by a regular expression, and
// the bytes of each piece are joined to tokens. Special tokens are not looked for: a text that mentions
// <|endoftext|> does not end there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/tokens/byte_pairs.h"
#include "tools/tokens/pattern.h"
#include "tools/tokens/vocabulary_files.h"

namespace weft::tokens {

// Of use to several threads at once, each with an Encoder.
class Tokenizer {
 public:
  // Throws train::Failure if the files are not of each other.
  explicit Tokenizer(const VocabularyFiles& files);

  // Rows that an embedding needs: one more than the largest id.
  int64_t size() const { return size_; }
  std::optional<int32_t> idOf(const std::string& token) const;

  // The bytes of a token, which may be a part of a character; null for an id that is none.
  const std::string* bytesOfToken(int32_t id) const;

  // What a text is split into, before its bytes are joined.
  std::vector<std::string_view> piecesOf(std::string_view text) const {
    return pieces_.matchesIn(text);
  }

  // Whether a text may be cut behind the end of a line, where two characters of ASCII that are no space stand around
  // it: then its parts have the tokens of the whole.
  bool splitsAtLines() const { return splitsAtLines_; }

 private:
  friend class Encoder;

  void addBytes(const VocabularyFiles& files);
  void addMerges(const VocabularyFiles& files);
  void addWords(const VocabularyFiles& files);
  void checkIsWhole(const VocabularyFiles& files) const;
  void checkNeedsNoMerge(const VocabularyFiles& files) const;
  void name(int32_t id, std::string bytes);

  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, std::string> bytes_;  // of each id
  std::array<int32_t, 256> idOfByte_{};
  BytePairs pairs_;
  size_t merges_ = 0;
  Pattern pieces_;
  std::optional<Pattern> rawWords_, normalizedWords_;  // added tokens, before and after NFC
  std::unordered_map<std::string, int32_t> words_;
  bool composes_;
  bool splitsAtLines_ = true;
  int64_t size_ = 0;
};

// Remembers the tokens of pieces that it has met. Of one thread.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Appends the tokens of a text, which must be UTF-8.
  void encode(std::string_view text, std::vector<int32_t>& tokens);

 private:
  void encodeNormalized(std::string_view text, std::vector<int32_t>& tokens);
  void encodePieces(std::string_view text, std::vector<int32_t>& tokens);
  void encodePiece(std::string_view piece, std::vector<int32_t>& tokens);

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  const Tokenizer& tokenizer_;
  std::unordered_map<std::string, std::vector<int32_t>, Hash, std::equal_to<>> known_;
  std::vector<int32_t> symbols_;
};

}  // namespace weft::tokens
