// SPDX-License-Identifier: Apache-2.0
// Calls with an epilogue of the caller's: who is given what, and what comes of it.
#include "plan/epilogue.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "comm/create.h"

namespace weft::comm {
namespace {

// Keeps its block's sums, counts how often it was given each element, and makes 10 times the sum,
// or, where nothing is added, 1000 * rank + the element's number.
class Recorder : public plan::Epilogue {
 public:
  Recorder(std::size_t count, float base, bool adds)
      : sums(count, 0), calls(count, 0), base_(base), adds_(adds) {}

  void run(void* result, std::span<const void* const> addends, std::uint64_t first,
           std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      float sum = base_ + static_cast<float>(first + i);
      if (adds_) sum = 0;
      for (const void* addend : addends.first(adds_ ? addends.size() : 0))
        sum += static_cast<const float*>(addend)[i];
      sums[first + i] = sum;
      ++calls[first + i];
      if (result != nullptr) static_cast<float*>(result)[i] = adds_ ? 10 * sum : sum;
    }
  }

  std::vector<float> sums;
  std::vector<int> calls;

 private:
  const float base_;
  const bool adds_;
};

struct Case {
  int ranks;
  std::size_t count;  // of a block
  const char* transport;
  const char* algorithm;
};

class Epilogues : public testing::TestWithParam<Case> {
 protected:
  // Runs `body` as every rank.
  void everybody(const std::function<Status(Communicator&)>& body) {
    CommConfig config;
    config.transport = GetParam().transport;
    config.timeoutMs = 60000;
    std::vector<std::shared_ptr<Communicator>> comms;
    const auto n = static_cast<std::size_t>(GetParam().ranks);
    const Status made = createAll(GetParam().ranks, config, &comms);
    ASSERT_TRUE(made.ok()) << made.text();
    const Status status = onThreads(n, [&](std::size_t r) { return body(*comms[r]); });
    EXPECT_TRUE(status.ok()) << status.text();
  }

  plan::Call call(schedule::Collective collective) const {
    plan::Call c;
    c.collective = collective;
    c.type = reduce::DType::F32;
    c.op = reduce::RedOp::Epilogue;
    c.count = GetParam().count;
    c.algorithm = GetParam().algorithm;
    return c;
  }

  // Element i of rank r's input: small integers, so that sums are exact in any order.
  static float input(std::size_t rank, std::size_t i) {
    return static_cast<float>((i * 7 + rank * 13) % 101);
  }
  std::vector<float> inputs(std::size_t rank) const {
    std::vector<float> all(GetParam().count * static_cast<std::size_t>(GetParam().ranks));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = input(rank, i);
    return all;
  }
  float sum(std::size_t i) const {
    float total = 0;
    for (int r = 0; r < GetParam().ranks; ++r) total += input(static_cast<std::size_t>(r), i);
    return total;
  }
};

TEST_P(Epilogues, ReduceScatterGivesEachElementOnceAndNeedsNoOut) {
  const std::size_t count = GetParam().count;
  everybody([&](Communicator& comm) -> Status {
    const std::vector<float> in = inputs(comm.rank());
    for (int round = 0; round < 3; ++round) {
      Recorder epilogue(count, 0, true);
      WEFT_TRY(comm.run(call(schedule::Collective::ReduceScatter), in.data(), nullptr, epilogue,
                        60000, nullptr));
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(epilogue.calls[i], 1);
        EXPECT_EQ(epilogue.sums[i], sum(comm.rank() * count + i)) << i;
      }
    }
    return {};
  });
}

TEST_P(Epilogues, AllGatherTakesWhatTheEpilogueMakes) {
  const std::size_t count = GetParam().count;
  everybody([&](Communicator& comm) -> Status {
    std::vector<float> out(count * comm.ranks(), -1);
    for (int round = 0; round < 3; ++round) {
      Recorder epilogue(count, 1000.0f * static_cast<float>(comm.rank()), false);
      WEFT_TRY(comm.run(call(schedule::Collective::AllGather), nullptr, out.data(), epilogue, 60000,
                        nullptr));
      EXPECT_EQ(epilogue.calls, std::vector<int>(count, 1));
      for (std::size_t r = 0; r < comm.ranks(); ++r)
        for (std::size_t i = 0; i < count; ++i)
          EXPECT_EQ(out[r * count + i], 1000.0f * static_cast<float>(r) + static_cast<float>(i));
    }
    return {};
  });
}

TEST_P(Epilogues, AllReduceGivesAllRanksWhatEachMakesOfItsBlock) {
  const std::size_t count = GetParam().count;
  everybody([&](Communicator& comm) -> Status {
    const std::vector<float> in = inputs(comm.rank());
    std::vector<float> out(in.size(), -1);
    for (int round = 0; round < 3; ++round) {
      Recorder epilogue(count, 0, true);
      WEFT_TRY(comm.run(call(schedule::Collective::AllReduce), in.data(), out.data(), epilogue,
                        60000, nullptr));
      EXPECT_EQ(epilogue.calls, std::vector<int>(count, 1));
      for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], 10 * sum(i)) << i;
    }
    return {};
  });
}

TEST_P(Epilogues, AllReduceInPlace) {
  const std::size_t count = GetParam().count;
  everybody([&](Communicator& comm) -> Status {
    std::vector<float> data = inputs(comm.rank());
    Recorder epilogue(count, 0, true);
    WEFT_TRY(comm.run(call(schedule::Collective::AllReduce), data.data(), data.data(), epilogue,
                      60000, nullptr));
    for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], 10 * sum(i)) << i;
    return {};
  });
}

std::string nameOf(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  std::string name =
      text(c.transport, "_", *c.algorithm ? c.algorithm : "chosen", "_", c.ranks, "x", c.count);
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    All, Epilogues,
    testing::Values(Case{1, 100, "auto", ""}, Case{2, 1, "auto", ""}, Case{3, 1000, "auto", ""},
                    Case{4, 70001, "auto", ""}, Case{2, 200000, "auto", "shared"},
                    Case{3, 200000, "auto", "mesh"}, Case{4, 10, "auto", "mesh"},
                    Case{3, 5000, "auto", "ring"}, Case{4, 5000, "auto", "circulant"},
                    Case{5, 100000, "auto", "two-level"}, Case{4, 30000, "faulty:7", "mesh"},
                    Case{3, 30000, "ofi", ""}),
    nameOf);

// Does something to the call that it is part of, once, and counts how often it runs.
class Saboteur : public plan::Epilogue {
 public:
  explicit Saboteur(std::function<void()> deed) : deed_(std::move(deed)) {}
  void run(void*, std::span<const void* const>, std::uint64_t, std::size_t count) override {
    bytes += count * sizeof(float);
    if (deed_) std::exchange(deed_, {})();
  }
  std::size_t bytes = 0;

 private:
  std::function<void()> deed_;
};

struct Sabotage {
  Status status[2];
  std::size_t bytes[2] = {};  // that the epilogues were given
};

// A reduce-scatter of 64 MiB a rank; rank 0 does the deed when its first sums are complete.
Sabotage sabotage(const std::function<void(Communicator&)>& deed) {
  constexpr std::size_t kCount = 8 << 20;
  CommConfig config;
  config.timeoutMs = 60000;
  std::vector<std::shared_ptr<Communicator>> comms;
  EXPECT_TRUE(createAll(2, config, &comms).ok());
  Sabotage seen;
  const Status ran = onThreads(2, [&](std::size_t r) -> Status {
    const std::vector<float> in(2 * kCount, 1);
    plan::Call call;
    call.collective = schedule::Collective::ReduceScatter;
    call.type = reduce::DType::F32;
    call.op = reduce::RedOp::Epilogue;
    call.count = kCount;
    Saboteur epilogue(r == 0 ? [&] { deed(*comms[0]); } : std::function<void()>());
    seen.status[r] = comms[r]->run(call, in.data(), nullptr, epilogue, 60000, nullptr);
    seen.bytes[r] = epilogue.bytes;
    return {};
  });
  EXPECT_TRUE(ran.ok()) << ran.text();
  return seen;
}

TEST(Epilogue, AnAbortEndsACallThatAlwaysHasSomethingToDo) {
  const Sabotage seen = sabotage([](Communicator& comm) { (void)comm.abort(); });
  EXPECT_EQ(seen.status[0].code(), Code::Aborted) << seen.status[0].text();
  EXPECT_LE(seen.bytes[0], std::size_t{4} << 20) << "of 32 MiB";
}

TEST(Epilogue, AnExceptionFailsTheCallOnAllRanks) {
  const Sabotage seen = sabotage([](Communicator&) { throw std::bad_alloc(); });
  for (const Status& status : seen.status)
    EXPECT_EQ(status.code(), Code::OutOfMemory) << status.text();
}

// An epilogue is a part of the call like everything else.
TEST(Epilogue, RanksThatDisagreeAboutItHearSo) {
  CommConfig config;
  config.timeoutMs = 60000;
  std::vector<std::shared_ptr<Communicator>> comms;
  ASSERT_TRUE(createAll(2, config, &comms).ok());
  const Status status = onThreads(2, [&](std::size_t r) {
    std::vector<float> in(200, 1), out(100);
    plan::Call call;
    call.collective = schedule::Collective::ReduceScatter;
    call.type = reduce::DType::F32;
    call.op = r == 0 ? reduce::RedOp::Epilogue : reduce::RedOp::Sum;
    call.count = 100;
    Recorder epilogue(100, 0, true);
    return r == 0 ? comms[r]->run(call, in.data(), out.data(), epilogue, 60000, nullptr)
                  : comms[r]->run(call, in.data(), out.data(), nullptr, 60000, nullptr);
  });
  EXPECT_EQ(status.code(), Code::Mismatch) << status.text();
}

}  // namespace
}  // namespace weft::comm
