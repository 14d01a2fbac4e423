// SPDX-License-Identifier: Apache-2.0
// Communicators after so many invocations that their numbers no longer fit into what travels.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "../slow_build.h"
#include "base/threads.h"
#include "comm/create.h"
#include "tests/has_libfabric.h"

namespace weft::comm {
namespace {

constexpr int kRanks = 4;

struct Start {
  const char* transport;
  std::uint64_t before;  // invocations, in which no two ranks have said anything to each other
};
std::ostream& operator<<(std::ostream& out, const Start& c) {
  return out << c.transport << " after " << c.before;
}

class Epochs : public testing::TestWithParam<Start> {
 protected:
  void SetUp() override {
    const std::string transport = GetParam().transport;
    if (transport.find("ofi") != std::string::npos && !test::hasLibfabric())
      GTEST_SKIP() << "no libfabric";
    CommConfig config;
    config.transport = transport;
    config.epochsBefore = GetParam().before;
    const Status made = createAll(kRanks, config, &comms_);
    ASSERT_TRUE(made.ok()) << made.text();
  }
  // Runs `body` as every rank.
  void everybody(const std::function<Status(Communicator&)>& body) {
    const Status status = onThreads(kRanks, [&](std::size_t r) { return body(*comms_[r]); });
    ASSERT_TRUE(status.ok()) << status.text();
  }

 private:
  std::vector<std::shared_ptr<Communicator>> comms_;
};

constexpr std::size_t kLong = std::size_t{1}
                              << (test::kSlowBuild ? 18 : 20);  // bytes, of many invocations

// Each algorithm leaves other pairs silent; the long message takes many invocations.
TEST_P(Epochs, AllReducesAreRight) {
  everybody([](Communicator& comm) -> Status {
    plan::Call call;
    call.collective = schedule::Collective::AllReduce;
    call.type = reduce::DType::F32;
    call.op = reduce::RedOp::Sum;
    for (const std::size_t count : {std::size_t{2}, std::size_t{3000}, kLong / 4})
      for (const char* algorithm : {"ring", "circulant", "mesh", ""})
        for (int round = 0; round < 3; ++round) {
          call.count = count;
          call.algorithm = algorithm;
          const std::vector<float> in(count, static_cast<float>(comm.rank() + 1));
          std::vector<float> out(count, -1);
          WEFT_TRY(comm.run(call, in.data(), out.data(), nullptr, 30000, nullptr));
          EXPECT_EQ(std::ranges::count(out, 10.0f), static_cast<std::ptrdiff_t>(count))
              << algorithm << " x " << count;
        }
    return {};
  });
}

// Enough pieces for every slot of each pair to be used again.
TEST_P(Epochs, MessagesGoRound) {
  everybody([](Communicator& comm) -> Status {
    const auto next = static_cast<std::uint32_t>((comm.rank() + 1) % kRanks);
    const auto last = static_cast<std::uint32_t>((comm.rank() + kRanks - 1) % kRanks);
    for (const std::size_t count : {std::size_t{1}, std::size_t{100}, kLong}) {
      std::vector<std::byte> from(count, static_cast<std::byte>(comm.rank())), to(count);
      Operation exchange;
      exchange.pairs = {{true, next, from.data(), count, reduce::DType::U8},
                        {false, last, to.data(), count, reduce::DType::U8}};
      exchange.isPairs = true;
      exchange.timeoutMs = 30000;
      for (int round = 0; round < 9; ++round) {
        std::ranges::fill(to, std::byte{0xff});
        WEFT_TRY(comm.run(exchange));
        EXPECT_EQ(std::ranges::count(to, static_cast<std::byte>(last)),
                  static_cast<std::ptrdiff_t>(count));
      }
    }
    return {};
  });
}

std::vector<Start> cases() {
  std::vector<const char*> transports{"auto", "faulty:7", "ofi"};
  if (!test::kSlowBuild) transports.push_back("faulty(ofi):8");
  std::vector<Start> all;
  for (const char* transport : transports)
    for (const std::uint64_t before : {(std::uint64_t{1} << 28) - 5, (std::uint64_t{3} << 28) + 9,
                                       (std::uint64_t{1} << 32) - 5, std::uint64_t{1} << 40})
      all.push_back({transport, before});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Epochs, testing::ValuesIn(cases()));

}  // namespace
}  // namespace weft::comm
