// SPDX-License-Identifier: Apache-2.0
// A regular expression of PCRE2, over characters of UTF-8 with Unicode's properties.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace weft::tokens {

// Of use to several threads at once.
class Pattern {
 public:
  // Of the program's own making: one that cannot be compiled is a std::logic_error.
  explicit Pattern(const std::string& expression);

  // What it matches, from left to right. `text` is UTF-8, and must outlive them.
  std::vector<std::string_view> matchesIn(std::string_view text) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

// One that matches these words as they are: the leftmost, and of several there the longest.
Pattern patternOfWords(std::vector<std::string> words);

}  // namespace weft::tokens
