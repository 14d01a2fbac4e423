// SPDX-License-Identifier: Apache-2.0
#include "base/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <vector>

namespace weft {
namespace {

using Sizes = std::initializer_list<std::size_t>;
constexpr std::size_t kPage = 4096, kMost = 300000;

class Copy : public testing::Test {
 protected:
  void SetUp() override {
    std::mt19937 random(7);
    std::generate(source_.begin(), source_.end(), [&] { return std::byte(random()); });
  }

  // From the source's begin to so many bytes above it, modulo a page; nothing beside is touched.
  void expectCopies(std::size_t above, std::size_t bytes) {
    std::fill(target_.begin(), target_.end(), std::byte{0});
    const auto first = reinterpret_cast<std::uintptr_t>(source_.data()) + above;
    const auto space = reinterpret_cast<std::uintptr_t>(target_.data() + 1);
    std::byte* const to = target_.data() + 1 + (first - space) % kPage;
    copyBytes(to, source_.data(), bytes);
    EXPECT_TRUE(std::equal(to, to + bytes, source_.begin())) << above << ", " << bytes;
    EXPECT_EQ(to[-1], std::byte{0}) << above << ", " << bytes;
    EXPECT_EQ(to[bytes], std::byte{0}) << above << ", " << bytes;
  }

 private:
  std::vector<std::byte> source_ = std::vector<std::byte>(kMost);
  std::vector<std::byte> target_ = std::vector<std::byte>(kMost + 2 * kPage);
};

TEST_F(Copy, MovesEveryByteWhereverBuffersLie) {
  for (const std::size_t above : Sizes{0, 1, 8, 15, 16, 31, 32, 100, 4095})
    for (const std::size_t bytes : Sizes{0, 1, 1023, 1024, 1025, 5000, 131072, 131079, 300000})
      expectCopies(above, bytes);
}

TEST_F(Copy, OfNothingAsksForNoBuffers) {
  std::byte one{7};
  copyBytes(&one, nullptr, 0);
  copyBytes(nullptr, &one, 0);
  EXPECT_EQ(one, std::byte{7});
}

// glibc takes `rep movsb` from 2 KiB on at the earliest.
TEST_F(Copy, IsInShortPiecesWhereTheTargetIsALittleAbove) {
  const std::vector<std::byte> memory(3 * kPage);
  const std::byte* const at = memory.data();
  for (const std::size_t above : Sizes{1, 16, 63, 4097, 4159})
    EXPECT_LT(pieceOfCopy(at + above, at), 2048u) << above;
  for (const std::size_t above : Sizes{0, 64, 100, 4095, 4096})
    EXPECT_GT(pieceOfCopy(at + above, at), 2048u) << above;
}

}  // namespace
}  // namespace weft
