// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/tokens/byte_letters.h"
#include "tools/tokens/failures.h"
#include "tools/train/utf8.h"

namespace weft::tokens {
namespace {

// GPT-2's, with Unicode's White_Space for \s, to which PCRE2 adds U+180E.
constexpr const char* kPieces =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{wspace}\p{L}\p{N}]+)"
    R"(|\p{wspace}+(?!\P{wspace})|\p{wspace}+)";

// Tokens that no merge makes: marks, and rows kept for later. Known vocabularies have less than half as many.
constexpr size_t kMostOthers = 1024;

// What is remembered: most pieces of a text are short and come again.
constexpr size_t kLongestKnown = 64, kMostKnown = size_t{1} << 18;

// "<|endoftext|>" and "<s>": no merge makes them, though they are of letters for bytes.
bool looksLikeMark(std::string_view token) {
  return token.size() > 2 && token.starts_with('<') && token.ends_with('>');
}

// The others are in no text; NeoX's vocabulary does not have them.
bool isInUtf8(size_t byte) { return byte < 0xc0 || (byte > 0xc1 && byte < 0xf5); }

// Calls word(...) for each word of the pattern in a text, and rest(...) for what lies between.
template <class Word, class Rest>
void splitAt(const std::optional<Pattern>& words, std::string_view text, const Word& word,
             const Rest& rest) {
  if (!words) return rest(text);
  const char* done = text.data();
  for (const std::string_view found : words->matchesIn(text)) {
    if (found.data() > done) rest(std::string_view(done, static_cast<size_t>(found.data() - done)));
    word(found);
    done = found.data() + found.size();
  }
  const char* const end = text.data() + text.size();
  if (end > done) rest(std::string_view(done, static_cast<size_t>(end - done)));
}

}  // namespace

Tokenizer::Tokenizer(const VocabularyFiles& files)
    : ids_(files.ids), pieces_(kPieces), composes_(files.composes) {
  for (const auto& [token, id] : ids_) name(id, bytesOf(token).value_or(token));
  addBytes(files);
  addMerges(files);
  checkIsWhole(files);
  if (files.merges.empty()) checkNeedsNoMerge(files);
  addWords(files);
}

void Tokenizer::name(int32_t id, std::string bytes) {
  bytes_.insert_or_assign(id, std::move(bytes));
  size_ = std::max(size_, int64_t{id} + 1);
}

void Tokenizer::addBytes(const VocabularyFiles& files) {
  for (size_t byte = 0; byte < idOfByte_.size(); ++byte) {
    const std::string letter = letterOf(static_cast<uint8_t>(byte));
    const std::optional<int32_t> id = idOf(letter);
    if (!id && isInUtf8(byte))
      refuse(files.name, fmt::format("it has no token \"{}\" for the byte {}: it is cut off, or "
                                     "not of a byte-level BPE",
                                     letter, byte));
    idOfByte_[byte] = id.value_or(-1);
  }
}

void Tokenizer::addMerges(const VocabularyFiles& files) {
  for (const auto& [left, right, place] : files.merges) {
    for (const std::string& token : {left, right, left + right})
      if (!idOf(token))
        refuse(place, fmt::format("\"{} {}\" needs the token \"{}\", which {} does not have: they "
                                  "are not of each other",
                                  left, right, token, files.name));
    if (!pairs_.add(*idOf(left), *idOf(right), *idOf(left + right)))
      refuse(place, fmt::format("\"{} {}\" is there a second time", left, right));
    ++merges_;
  }
}

void Tokenizer::checkIsWhole(const VocabularyFiles& files) const {
  const size_t made = idOfByte_.size() + merges_, all = ids_.size();
  if (all <= made + std::min(kMostOthers, made)) return;
  refuse(files.name,
         fmt::format("it has {} tokens, and bytes and merges make {}: the merges are cut off, or "
                     "of another vocabulary",
                     all, made));
}

// The formats permit no merges at all, which is right where all tokens are bytes and marks: any other would be in
// no text.
void Tokenizer::checkNeedsNoMerge(const VocabularyFiles& files) const {
  const auto needsOne = [&](const std::string& token) {
    return bytesOf(token).value_or("").size() > 1 && !looksLikeMark(token) &&
           std::ranges::count(files.added, token, &AddedToken::text) == 0;
  };
  std::optional<std::string> first;
  for (const auto& [token, id] : files.ids)
    if (needsOne(token) && (!first || token < *first)) first = token;
  if (!first) return;
  refuse(files.mergesName,
         fmt::format("it has no merges, and the token \"{}\" of {} needs one: it is empty or cut "
                     "off; name the file that was published with that vocabulary",
                     *first, files.name));
}

void Tokenizer::addWords(const VocabularyFiles& files) {
  std::vector<std::string> raw, normalized;
  for (const AddedToken& token : files.added) {
    ids_.insert_or_assign(token.text, token.id);
    name(token.id, token.text);
    if (token.special) continue;
    words_.insert_or_assign(token.text, token.id);
    (token.normalized ? normalized : raw).push_back(token.text);
    if (token.text.find('\n') != std::string::npos) splitsAtLines_ = false;
  }
  if (!raw.empty()) rawWords_ = patternOfWords(raw);
  if (!normalized.empty()) normalizedWords_ = patternOfWords(normalized);
}

std::optional<int32_t> Tokenizer::idOf(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Tokenizer::bytesOfToken(int32_t id) const {
  const auto found = bytes_.find(id);
  return found == bytes_.end() ? nullptr : &found->second;
}

void Encoder::encode(std::string_view text, std::vector<int32_t>& tokens) {
  splitAt(
      tokenizer_.rawWords_, text,
      [&](std::string_view word) { tokens.push_back(tokenizer_.words_.at(std::string(word))); },
      [&](std::string_view rest) {
        if (tokenizer_.composes_)
          encodeNormalized(train::composed(rest), tokens);
        else
          encodeNormalized(rest, tokens);
      });
}

void Encoder::encodeNormalized(std::string_view text, std::vector<int32_t>& tokens) {
  splitAt(
      tokenizer_.normalizedWords_, text,
      [&](std::string_view word) { tokens.push_back(tokenizer_.words_.at(std::string(word))); },
      [&](std::string_view rest) { encodePieces(rest, tokens); });
}

void Encoder::encodePieces(std::string_view text, std::vector<int32_t>& tokens) {
  for (const std::string_view piece : tokenizer_.piecesOf(text)) encodePiece(piece, tokens);
}

void Encoder::encodePiece(std::string_view piece, std::vector<int32_t>& tokens) {
  const auto known = known_.find(piece);
  if (known != known_.end()) {
    tokens.insert(tokens.end(), known->second.begin(), known->second.end());
    return;
  }
  symbols_.clear();
  for (const char byte : piece)
    symbols_.push_back(tokenizer_.idOfByte_[static_cast<unsigned char>(byte)]);
  tokenizer_.pairs_.join(symbols_);
  tokens.insert(tokens.end(), symbols_.begin(), symbols_.end());
  if (piece.size() <= kLongestKnown && known_.size() < kMostKnown) known_.emplace(piece, symbols_);
}

}  // namespace weft::tokens
