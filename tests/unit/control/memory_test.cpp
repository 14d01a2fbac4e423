// SPDX-License-Identifier: Apache-2.0
// Threads of a control link that have no memory for a moment: nobody takes them for ranks that have ended,
// and nothing of theirs stays.
#include <gtest/gtest.h>

#include "remote_world.h"
#include "tests/ranks/failing_allocator.h"

namespace weft::control {
namespace {

using namespace weft::test;
using weft::testing::failAllocationOf;
using weft::testing::stopFailing;

constexpr std::uint32_t kTwoHosts = 4;  // ranks

// What the link is for: a question, and something that all give.
Status useLink(Member& m) {
  WEFT_TRY(m.opened);
  m.call(planOf(10));
  m.link->refresh(milliseconds(20));
  std::vector<std::vector<std::byte>> all;
  return m.link->gather(std::as_bytes(std::span(&m.rank, 1)), &all, Deadline::in(20000));
}

std::vector<Status> statusesOfRanks() {
  const auto common = Common::create();
  std::vector<Status> statuses(kTwoHosts);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < kTwoHosts; ++r)
    threads.emplace_back([&, r] {
      Member member(common, r, kTwoHosts, namesOf(kTwoHosts, 2));
      statuses[r] = useLink(member);
    });
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Who is just coming to a server that fails finds it closed.
bool isTrue(const std::string& text, bool ofServer) {
  if (has(text, "out of memory")) return true;
  return ofServer &&
         (has(text, "the control server of rank 0") || has(text, "connection was closed") ||
          has(text, "rank 0 (host h0, pid 4000) has ended: its connection closed"));
}

class WithoutMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(WithoutMemory, TheTruthIsTold) {
  const bool ofServer = std::string(GetParam()) == "weft-ctl-server";
  int told = 0;
  bool failed = true;
  for (std::int64_t n = 1; failed; n += 1 + n / 2) {
    failAllocationOf(GetParam(), n);
    const std::vector<Status> statuses = statusesOfRanks();
    EXPECT_TRUE(eventually(20000, [] { return linkThreads() == 0; })) << n;
    failed = stopFailing();
    for (const Status& status : statuses) {
      EXPECT_TRUE(status.ok() || isTrue(status.text(), ofServer)) << n << ": " << status.text();
      told += has(status.text(), "out of memory") ? 1 : 0;
    }
  }
  EXPECT_GT(told, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, WithoutMemory,
                         ::testing::Values("weft-control", "weft-ctl-server", "weft-ctl-relay"),
                         [](const auto& at) {
                           std::string name = at.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace weft::control
