// SPDX-License-Identifier: Apache-2.0
// The words that BERT's uncased WordPiece cuts: those of BasicTokenizer (Devlin and others, 2018), with one difference:
// a sigma at the end of a word is folded as any other.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace weft::train {

// Calls `take` for each word of a text, in UTF-8, with its number of characters. Control characters are left out, spaces
// divide words, ideographs and punctuation (category P, and what ASCII has besides letters and digits) are words of
// their own; letters are folded to lower case, decomposed (NFD), and lose their marks (Mn). Bytes that are not UTF-8 are
// left out as well.
void forEachBertWord(std::string_view text,
                     const std::function<void(std::string_view word, size_t characters)>& take);

}  // namespace weft::train
