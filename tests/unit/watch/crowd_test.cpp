// SPDX-License-Identifier: Apache-2.0
#include "watch/crowd.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/unit/watch/load_of_test.h"

double weft::watch::loadOfTest = 0;

// Of this program, as tests say.
extern "C" [[gnu::visibility("default")]] int getloadavg(double* load, int) noexcept {
  *load = weft::watch::loadOfTest * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  return weft::watch::loadOfTest < 0 ? -1 : 1;
}

namespace weft::watch {
namespace {

double crowdAt(double load) {
  loadOfTest = load;
  return crowd();
}

TEST(Crowd, IsThreadsACoreWithinBounds) {
  EXPECT_EQ(crowdAt(0.3), 1);
  EXPECT_EQ(crowdAt(3), 3);
  EXPECT_EQ(crowdAt(400), 16);
  EXPECT_EQ(crowdAt(-1), 1) << "where nobody says it";
}

}  // namespace
}  // namespace weft::watch
