// SPDX-License-Identifier: Apache-2.0
// weft-train's vocabularies and texts: a file of word pieces, a zero byte, and a text.
#include "tools/train/vocabulary.h"

#include "fuzz.h"
#include "tools/train/failure.h"

namespace weft::fuzz {

void tryInput(Input input) {
  const std::string_view all = textOf(input);
  const std::size_t end = std::min(all.find('\0'), all.size());
  std::unique_ptr<train::Vocabulary> vocabulary;
  try {
    vocabulary = train::wordPieceVocabulary(fileWith(all.substr(0, end)));
  } catch (const train::Failure&) {
    return;
  }
  std::vector<std::int32_t> tokens;
  const Input text = input.subspan(std::min(end + 1, input.size()));
  vocabulary->encode(text, tokens);
  require(tokens.size() <= text.size(), "a token is of one byte at least");
  for (const std::int32_t token : tokens)
    require(token >= 0 && token < vocabulary->size(), "a token is of the vocabulary");
  for (const std::int32_t word : vocabulary->words())
    require(word >= 0 && word < vocabulary->size(), "a word is of the vocabulary");
}

}  // namespace weft::fuzz
