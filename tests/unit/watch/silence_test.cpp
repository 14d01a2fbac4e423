// SPDX-License-Identifier: Apache-2.0
#include "watch/silence.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/text.h"
#include "tests/unit/watch/nobody_remote.h"

namespace weft::watch {
namespace {

using std::chrono::milliseconds;

class Quiet final : public NobodyRemote {
 public:
  std::vector<milliseconds> of;

  explicit Quiet(std::size_t ranks) : of(ranks) {}
  milliseconds silence(std::uint32_t rank) const override { return of[rank]; }
};

std::vector<PeerName> namesOf(int ranks) {
  std::vector<PeerName> names;
  for (int r = 0; r < ranks; ++r) names.push_back({r, text("h", r / 16), 100 + r});
  return names;
}

TEST(Silence, OfOneSaysWhere) {
  const std::vector<PeerName> names = namesOf(32);
  Quiet remote(32);
  Silence silence(names, &remote);
  EXPECT_EQ(silence.words(silence.ranks()), "");
  remote.of[17] = milliseconds(2999);
  EXPECT_FALSE(silence.isOf(17));
  remote.of[17] = milliseconds(4100);
  EXPECT_EQ(silence.words(silence.ranks()),
            "rank 17 (host h1, pid 117) does not answer for 4 s: stopped or overloaded");
}

// 512 ranks that were out of breath once wrote 150,000 lines.
TEST(Silence, OfManyIsOneLineAndToldOnceAWait) {
  const std::vector<PeerName> names = namesOf(1024);
  Quiet remote(1024);
  Silence silence(names, &remote);
  for (std::uint32_t r = 16; r < 1024; ++r) remote.of[r] = milliseconds(3000 + r);
  testing::internal::CaptureStderr();
  logWarn(silence.words(silence.news()));
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "ranks 16-1023 do not answer, for up to 4 s: stopped or overloaded"),
            std::string::npos);
  remote.of[20] = {};
  EXPECT_EQ(silence.news().size(), 0u);
  remote.of[20] = remote.of[3] = milliseconds(5000);  // again, and for the first time
  EXPECT_EQ(silence.news(), std::vector<std::uint32_t>{3});
  silence.beginWait();
  EXPECT_EQ(silence.news().size(), 1009u);
}

TEST(Silence, IsOfNobodyWhereAllShareMemory) {
  const std::vector<PeerName> names = namesOf(4);
  Silence silence(names, nullptr);
  EXPECT_FALSE(silence.isOf(0));
  EXPECT_EQ(silence.news().size(), 0u);
}

}  // namespace
}  // namespace weft::watch
