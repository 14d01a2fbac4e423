// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "comm/create.h"

namespace weft::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The other rank joins late, and then does nothing more: the set-up has what is left of the deadline.
TEST(Join, HasOneDeadlineForAllOfACreation) {
  constexpr milliseconds kDeadline{6000}, kLate{3000};
  CommConfig config;
  bootstrap::UniqueId id;
  std::unique_ptr<bootstrap::Bootstrap> idle;
  Clock::time_point joined;
  ASSERT_TRUE(bootstrap::createUniqueId(&id, bootstrap::IdScope::ThisProcess).ok());
  config.initTimeoutMs = kDeadline.count();
  std::thread other([&] {
    std::this_thread::sleep_for(kLate);
    EXPECT_TRUE(
        bootstrap::Bootstrap::join(id, 2, 1, semanticConfig(config), Deadline::in(60000), &idle)
            .ok());
    joined = Clock::now();
  });
  std::shared_ptr<Communicator> made;
  const Status status = joinCommunicator(id, 2, 0, config, Deadline::in(kDeadline.count()), &made);
  const Clock::time_point ended = Clock::now();
  other.join();
  EXPECT_EQ(status.code(), Code::Timeout);
  EXPECT_NE(status.text().find("set-up round 1 timed out"), std::string::npos) << status.text();
  EXPECT_LT(ended - joined, kDeadline) << "the set-up had a deadline of its own";
}

}  // namespace
}  // namespace weft::comm
