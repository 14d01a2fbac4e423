// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/train/bert_words.h"
#include "tools/train/utf8.h"

namespace weft::train {
namespace {

using List = std::vector<std::string>;

List wordsOf(std::string_view text) {
  List words;
  forEachBertWord(text, [&](std::string_view word, size_t) { words.emplace_back(word); });
  return words;
}

TEST(BertWords, AreThoseOfBertsTokenizer) {
  EXPECT_EQ(wordsOf("Hello, World!  a\u00a0b\u2028c\r\n"),
            (List{"hello", ",", "world", "!", "a", "b", "c"}));
  EXPECT_EQ(wordsOf("don't $5 <a>^`~"),
            (List{"don", "'", "t", "$", "5", "<", "a", ">", "^", "`", "~"}));
  EXPECT_EQ(wordsOf("ÀÉ naïve Ångström İ ǅ"), (List{"ae", "naive", "angstrom", "i", "ǆ"}));
  EXPECT_EQ(wordsOf("日本go 한국 豈"),
            (List{"日", "本", "go", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "豈"}))
      << "ideographs alone, Hangul decomposed";
  EXPECT_EQ(wordsOf("a—b…“c” €"), (List{"a", "—", "b", "…", "“", "c", "”", "€"}));
  EXPECT_EQ(wordsOf(std::string_view("a\0b\u200dc\ufffd\x7f\xff", 11)), List{"abc"})
      << "control characters, and what is no character";
  EXPECT_EQ(wordsOf(""), List{});
}

TEST(BertWords, HaveTheirCharactersCounted) {
  std::vector<size_t> counts;
  forEachBertWord("né 日 😀😀", [&](std::string_view, size_t n) { counts.push_back(n); });
  EXPECT_EQ(counts, (std::vector<size_t>{2, 1, 2}));
}

TEST(Utf8, IsChecked) {
  const auto npos = std::string_view::npos;
  EXPECT_EQ(firstNotUtf8("aé日😀\0"), npos);
  EXPECT_EQ(firstNotUtf8("a\xff"), 1u);
  EXPECT_EQ(firstNotUtf8("ab\xe6\x97"), 2u) << "cut off";
  EXPECT_EQ(firstNotUtf8("\xc0\x80"), 0u) << "too long";
  EXPECT_EQ(firstNotUtf8("\xed\xa0\x80"), 0u) << "half of a pair";
}

}  // namespace
}  // namespace weft::train
