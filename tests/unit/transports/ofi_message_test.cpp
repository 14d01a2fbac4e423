// SPDX-License-Identifier: Apache-2.0
// Where the payload of a message goes: nowhere but into the region that it names.
#include "transports/ofi/message.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::ofi {
namespace {

class OfiMessage : public testing::Test {
 protected:
  bool fits(std::uint32_t region, std::uint64_t target, std::uint32_t bytes, std::size_t payload) {
    const Header header{.bytes = bytes, .target = target, .region = region};
    return placeOf(header, sizeof(Header) + payload, regions_).data() != nullptr;
  }
  std::vector<std::byte> window_ = std::vector<std::byte>(100),
                         bounce_ = std::vector<std::byte>(50);
  std::vector<std::span<std::byte>> regions_{window_, bounce_};
};

TEST_F(OfiMessage, FitsToTheLastByte) {
  EXPECT_TRUE(fits(0, 0, 100, 100));
  EXPECT_TRUE(fits(1, 49, 1, 1));
  EXPECT_TRUE(fits(0, 100, 0, 0));
}

TEST_F(OfiMessage, GoesNowhereElse) {
  EXPECT_FALSE(fits(2, 0, 1, 1)) << "no such region";
  EXPECT_FALSE(fits(0, 100, 1, 1)) << "behind it";
  EXPECT_FALSE(fits(1, 0, 51, 51)) << "longer than it";
  EXPECT_FALSE(fits(0, ~std::uint64_t{0}, 1, 1)) << "around the end of all memory";
  EXPECT_FALSE(fits(0, 0, 2, 1)) << "says more than has come";
  EXPECT_FALSE(fits(0, 0, 0, 1)) << "says less";
}

TEST_F(OfiMessage, HasAWholeHeader) {
  Header header, read;
  header.secret = 42;
  const auto bytes = std::as_bytes(std::span(&header, 1));
  EXPECT_TRUE(readHeader(bytes, 42, &read));
  EXPECT_FALSE(readHeader(bytes.first(sizeof(Header) - 1), 42, &read));
  EXPECT_FALSE(readHeader({}, 42, &read));
}

}  // namespace
}  // namespace weft::ofi
