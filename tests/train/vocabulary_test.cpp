// SPDX-License-Identifier: Apache-2.0
#include "tools/train/vocabulary.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "tools/train/failure.h"

namespace weft::train {
namespace {

using test::TemporaryFolder;

std::vector<int32_t> encode(const Vocabulary& vocabulary, const std::string& text) {
  std::vector<int32_t> tokens;
  vocabulary.encode({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, tokens);
  return tokens;
}

TEST(Vocabulary, ABytesTokenIsItsValue) {
  const auto bytes = byteVocabulary();
  EXPECT_EQ(encode(*bytes, "aZ\xff"), (std::vector<int32_t>{'a', 'Z', 255}));
  EXPECT_EQ(bytes->size(), 260);
  EXPECT_EQ(bytes->words().size(), 256u);
  EXPECT_EQ(bytes->marks().mask, 259);
}

TEST(Vocabulary, AWordIsItsLongestPieces) {
  const TemporaryFolder folder;
  // 0 [PAD], 1 [UNK], 2 [CLS], 3 [SEP], 4 [MASK], 5 un, 6 ##aff, 7 ##able, 8 ##a, 9 !, 10 the
  const auto pieces = wordPieceVocabulary(folder.write(
      "vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n##a\n!\nthe\n"));
  EXPECT_EQ(pieces->size(), 11);
  EXPECT_EQ(pieces->words(), (std::vector<int32_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(pieces->marks().separator, 3);
  EXPECT_EQ(encode(*pieces, "The unaffable"), (std::vector<int32_t>{10, 5, 6, 7}));
  EXPECT_EQ(encode(*pieces, " UNA!!\n"), (std::vector<int32_t>{5, 8, 9, 9}));
  EXPECT_EQ(encode(*pieces, "the unx the"), (std::vector<int32_t>{10, 1, 10}));
  EXPECT_EQ(encode(*pieces, "THÉ Uñ—"), (std::vector<int32_t>{10, 5, 1}));
  EXPECT_EQ(encode(*pieces, " \t"), std::vector<int32_t>{});
}

// Looked for in each length at each byte, such a line would take minutes.
TEST(Vocabulary, ATooLongWordIsNotLookedFor) {
  const TemporaryFolder folder;
  const std::string line(4000, 'a');
  const auto pieces = wordPieceVocabulary(
      folder.write("vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n" + line + "\n"));
  EXPECT_EQ(encode(*pieces, line), std::vector<int32_t>{1});
  EXPECT_EQ(encode(*pieces, line.substr(0, 100)).size(), 100u);
  EXPECT_EQ(encode(*pieces, line.substr(0, 101)).size(), 1u);
}

TEST(Vocabulary, AFingerprintTellsFilesApart) {
  const TemporaryFolder folder;
  const std::string marks = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  const auto one = wordPieceVocabulary(folder.write("one", marks + "a\nb\n")),
             same = wordPieceVocabulary(folder.write("same", marks + "a\nb\n")),
             other = wordPieceVocabulary(folder.write("other", marks + "b\na\n"));
  EXPECT_EQ(one->fingerprint(), same->fingerprint());
  EXPECT_NE(one->fingerprint(), other->fingerprint());
}

TEST(Vocabulary, AFileWithoutMarksIsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder.write("vocab", "[PAD]\n[CLS]\n[SEP]\nthe\n");
  for (const auto& [path, sentence] :
       {std::pair{file, file + " is no vocabulary of BERT: it has no line [MASK]"},
        std::pair{std::string("/nowhere"),
                  std::string("cannot read /nowhere: No such file or directory")}}) {
    try {
      wordPieceVocabulary(path);
      FAIL();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.what(), sentence);
      EXPECT_EQ(failure.code(), 65);
    }
  }
}

}  // namespace
}  // namespace weft::train
