// SPDX-License-Identifier: Apache-2.0
#include "tools/train/megatron_data.h"

#include <gtest/gtest.h>

#include <functional>

#include "dataset.h"
#include "tests/temporary_folder.h"
#include "tools/train/failure.h"

namespace weft::train {
using namespace test;
namespace {

std::string refusalOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), 65);
    return failure.what();
  }
  return "accepted";
}

std::string refusalOf(std::string bytes) {
  return refusalOf([&] {
    static_cast<void>(parseMegatronIndex(
        {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "X"));
  });
}

// The index of two documents with one field changed.
template <class T>
std::string with(std::size_t at, T value) {
  std::string bytes = indexOf({3, 2});
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

TEST(MegatronIndex, IsAsMegatronWritesIt) {
  const std::string bytes = indexOf({3, 2});
  EXPECT_EQ(bytes.size(), 82u);
  EXPECT_EQ(bytes.substr(34), std::string("\3\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0"
                                          "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0",
                                          48));
  EXPECT_EQ(refusalOf(bytes), "accepted");
  EXPECT_EQ(refusalOf(bytes + "mm"), "accepted") << "modes, which are of no use here";
}

TEST(MegatronIndex, SaysWhereItIsWrong) {
  EXPECT_EQ(refusalOf("MMIDIDX"), "X, byte 7: it ends inside of its head of 34 bytes");
  EXPECT_EQ(refusalOf(std::string(40, 'x')),
            "X, byte 0: it does not begin with MMIDIDX: no index of Megatron's");
  EXPECT_EQ(refusalOf(with(9, std::uint64_t{2})), "X, byte 9: version 2; 1 is known");
  EXPECT_EQ(refusalOf(with(17, '\x07')),
            "X, byte 17: type 7 is floating point, which tokens are not");
  EXPECT_EQ(refusalOf(with(17, '\x09')),
            "X, byte 17: type 9 is none that Megatron writes (1 to 5, or 8)");
  EXPECT_EQ(
      refusalOf(indexOf({3, 2}).substr(0, 70)),
      "X, byte 70: it ends here, and its head says that 2 sequences and 3 document entries take "
      "82 bytes: it is cut off, or no index");
  EXPECT_EQ(
      refusalOf(with(18, ~std::uint64_t{0})).find("X, byte 18: 18446744073709551615 sequences"),
      0u);
  EXPECT_EQ(refusalOf(with(34, std::int32_t{-3})), "X, byte 34: sequence 0 has -3 tokens");
  EXPECT_EQ(refusalOf(with(50, std::int64_t{5})),
            "X, byte 50: sequence 1 begins at byte 5, inside of a token of 2");
  EXPECT_EQ(refusalOf(with(66, std::int64_t{7})),
            "X, byte 66: document entry 1 is 7, after 0 and with 2 sequences");
}

class MegatronFiles : public testing::Test {
 protected:
  MegatronFiles() {
    folder_.write("x.idx", indexOf({3, 2}));
    folder_.write("x.bin", tokensOf({1, 2, 3, 40, 50}));
  }
  std::string refusal() const {
    return refusalOf([&] { MegatronData data(folder_ / "x"); });
  }
  TemporaryFolder folder_;
};

TEST_F(MegatronFiles, GiveTheirTokens) {
  for (const char* name : {"x", "x.bin", "x.idx"}) {
    const MegatronData data(folder_ / name);
    EXPECT_EQ(data.tokens(), 5u);
    std::vector<std::int64_t> tokens;
    data.append(0, 1, 2, 51, tokens);
    data.append(1, 0, 2, 51, tokens);
    EXPECT_EQ(tokens, (std::vector<std::int64_t>{2, 3, 40, 50}));
    EXPECT_EQ(refusalOf([&] { data.append(1, 0, 2, 50, tokens); }),
              folder_ /
                  "x.bin, byte 8: token 50 is not below the model's vocabulary of 50; name the "
                  "tokenizer's as --vocab-size");
  }
}

TEST_F(MegatronFiles, AreOfEachOther) {
  folder_.write("x.bin", tokensOf({1, 2, 3, 40}));
  EXPECT_EQ(refusal(), folder_ / "x.bin" +
                           " ends at byte 8, and sequence 1 is bytes 6 to 10 of it (" +
                           (folder_ / "x.idx") + ", byte 50): it is cut off, or of another index");
  folder_.write("x.bin", tokensOf({1, 2, 3, 40, 50, 60}));
  EXPECT_EQ(refusal(), folder_ / "x.bin" + " has 12 bytes, and the sequences of " +
                           (folder_ / "x.idx") + " end at byte 10: it is of another index");
  std::filesystem::remove(folder_ / "x.bin");
  EXPECT_EQ(refusal(), "cannot read " + folder_ / "x.bin: No such file or directory");
  std::filesystem::remove(folder_ / "x.idx");
  EXPECT_EQ(refusal(), "cannot read " + folder_ / "x.idx: No such file or directory");
}

}  // namespace
}  // namespace weft::train
