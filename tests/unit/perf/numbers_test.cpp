// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/numbers.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace weft::perf {
namespace {

TEST(Fitted, DropsDecimalsToFit) {
  EXPECT_EQ(fitted(0, 7), "   0.00");
  EXPECT_EQ(fitted(3.456, 7), "   3.46");
  EXPECT_EQ(fitted(9999.99, 7), "9999.99");
  EXPECT_EQ(fitted(12345.67, 7), "12345.7");
  EXPECT_EQ(fitted(123456.7, 7), " 123457");
  EXPECT_EQ(fitted(1234567, 7), "1234567");
  EXPECT_EQ(fitted(12345678, 7), "1.2e+07");
  EXPECT_EQ(fitted(123.456, 6), "123.46");
  EXPECT_EQ(fitted(1234.56, 6), "1234.6");
  EXPECT_EQ(fitted(1234567, 6), " 1e+06");
}

TEST(Fitted, RoundingUpNeverWidens) {
  EXPECT_EQ(fitted(9999.996, 7), "10000.0");
  EXPECT_EQ(fitted(99999.96, 7), " 100000");
  EXPECT_EQ(fitted(999.996, 6), "1000.0");
  for (double value = 0.001; value < 1e15; value *= 1.37) {
    EXPECT_EQ(fitted(value, 7).size(), 7u) << value;
    EXPECT_EQ(fitted(value, 6).size(), 6u) << value;
  }
}

TEST(ParseSize, UnitsAre1024Based) {
  EXPECT_EQ(parseSize("0"), 0u);
  EXPECT_EQ(parseSize("8"), 8u);
  EXPECT_EQ(parseSize("4k"), 4096u);
  EXPECT_EQ(parseSize("1.5K"), 1536u);
  EXPECT_EQ(parseSize("256M"), 256u << 20);
  EXPECT_EQ(parseSize("16G"), std::size_t{16} << 30);
}

TEST(ParseSize, RejectsWhatIsNoSize) {
  for (const char* bad : {"", "M", "-1", "+8", "8X", "8MB", "8 M", " 8", "nan", "inf", "1e30"}) {
    EXPECT_THROW(parseSize(bad), std::invalid_argument) << bad;
  }
}

TEST(SizeSweep, MultipliesOrAdds) {
  EXPECT_EQ(sizeSweep(8, 128, 1, 4), (std::vector<std::size_t>{8, 32, 128}));
  EXPECT_EQ(sizeSweep(8, 127, 1, 4), (std::vector<std::size_t>{8, 32}));
  EXPECT_EQ(sizeSweep(1, 10, 4, 1), (std::vector<std::size_t>{1, 5, 9}));
  EXPECT_EQ(sizeSweep(7, 7, 0, 1), (std::vector<std::size_t>{7}));
}

TEST(SizeSweep, LeavesZeroAndEndsAtOverflow) {
  EXPECT_EQ(sizeSweep(0, 20, 1, 2), (std::vector<std::size_t>{0, 8, 16}));
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(sizeSweep(most / 2, most, 1, 3).size(), 1u);
}

TEST(MemoryText, PicksTheUnit) {
  EXPECT_EQ(memoryText(0), "0.00 B");
  EXPECT_EQ(memoryText(1536), "1.50 KB");
  EXPECT_EQ(memoryText(20u << 20), "20.0 MB");
  EXPECT_EQ(memoryText(std::size_t{300} << 30), "300 GB");
}

}  // namespace
}  // namespace weft::perf
