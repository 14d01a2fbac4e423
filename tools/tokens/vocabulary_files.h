// SPDX-License-Identifier: Apache-2.0
// A byte-level BPE as it is published: GPT-2's vocab.json (an object: token -> id) with merges.txt (after a line
// "#version: 0.2" a pair of tokens a line, in the order of their ranks), or a tokenizer.json of Hugging Face's,
// such as NeoX's, which holds both, and tokens that are no product of merges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace weft::tokens {

struct AddedToken {
  std::string text;  // as it stands in a text
  int32_t id = 0;
  bool special = false;    // a mark, such as the end of a text, which a text only seems to have
  bool normalized = true;  // is looked for after the text was brought to a normal form
};

struct VocabularyFiles {
  std::string name;                              // the file with the ids, for errors
  std::string mergesName;                        // that with the merges, which may be the same
  std::unordered_map<std::string, int32_t> ids;  // of tokens, in letters for bytes
  struct Merge {
    std::string left, right;
    std::string place;  // file and line, or number, for errors
  };
  std::vector<Merge> merges;
  std::vector<AddedToken> added;
  bool composes = false;  // texts are brought to NFC
};

// Both throw train::Failure with file and line, or entry, of what is wrong.
VocabularyFiles readVocabularyAndMerges(const std::string& vocabulary, const std::string& merges);
VocabularyFiles readTokenizerFile(const std::string& file);

}  // namespace weft::tokens
