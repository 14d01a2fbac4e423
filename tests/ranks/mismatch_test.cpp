// SPDX-License-Identifier: Apache-2.0
// Ranks that call different things all get one error that names both calls, and no result.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "world.h"

namespace weft::testing {
namespace {

struct MismatchedCall {
  const char* name;
  std::function<weftResult_t(const Rank&, const float* in, float* out)> make;
  bool isRooted = false;
};

constexpr std::size_t kCount = 1000;
constexpr std::size_t kRoom = 4 * kCount * 8;

const std::vector<MismatchedCall>& calls() {
  static const std::vector<MismatchedCall> all = {
      {"allreduce",
       [](const Rank& r, const float* in, float* out) {
         return weftAllReduce(in, out, kCount, weftFloat, weftSum, r.comm, nullptr, nullptr);
       }},
      {"other count",
       [](const Rank& r, const float* in, float* out) {
         return weftAllReduce(in, out, kCount + 1, weftFloat, weftSum, r.comm, nullptr, nullptr);
       }},
      {"zero count",
       [](const Rank& r, const float* in, float* out) {
         return weftAllReduce(in, out, 0, weftFloat, weftSum, r.comm, nullptr, nullptr);
       }},
      {"large count",
       [](const Rank& r, const float* in, float* out) {
         return weftAllReduce(in, out, kRoom, weftFloat, weftSum, r.comm, nullptr, nullptr);
       }},
      {"other type",
       [](const Rank& r, const float* in, float* out) {
         return weftAllReduce(in, out, kCount, weftInt32, weftSum, r.comm, nullptr, nullptr);
       }},
      {"other op",
       [](const Rank& r, const float* in, float* out) {
         return weftAllReduce(in, out, kCount, weftFloat, weftMax, r.comm, nullptr, nullptr);
       }},
      {"other algorithm",
       [](const Rank& r, const float* in, float* out) {
         weftOpts_t opts = WEFT_OPTS_INITIALIZER;
         opts.algorithm = "ring";
         return weftAllReduce(in, out, kCount, weftFloat, weftSum, r.comm, nullptr, &opts);
       }},
      {"broadcast from 0",
       [](const Rank& r, const float* in, float* out) {
         return weftBroadcast(in, out, kCount, weftFloat, 0, r.comm, nullptr, nullptr);
       },
       true},
      {"broadcast from 1",
       [](const Rank& r, const float* in, float* out) {
         return weftBroadcast(in, out, kCount, weftFloat, 1, r.comm, nullptr, nullptr);
       },
       true},
      {"short broadcast from 0",
       [](const Rank& r, const float* in, float* out) {
         return weftBroadcast(in, out, 2, weftFloat, 0, r.comm, nullptr, nullptr);
       },
       true},
      {"short broadcast from 1",
       [](const Rank& r, const float* in, float* out) {
         return weftBroadcast(in, out, 2, weftFloat, 1, r.comm, nullptr, nullptr);
       },
       true},
      {"reduce",
       [](const Rank& r, const float* in, float* out) {
         return weftReduce(in, out, kCount, weftFloat, weftSum, 0, r.comm, nullptr, nullptr);
       },
       true},
      {"allgather",
       [](const Rank& r, const float* in, float* out) {
         return weftAllGather(in, out, kCount, weftFloat, r.comm, nullptr, nullptr);
       }},
      {"reducescatter",
       [](const Rank& r, const float* in, float* out) {
         return weftReduceScatter(in, out, kCount, weftFloat, weftSum, r.comm, nullptr, nullptr);
       }},
      {"gather",
       [](const Rank& r, const float* in, float* out) {
         return weftGather(in, out, kCount, weftFloat, 0, r.comm, nullptr, nullptr);
       },
       true},
      {"scatter",
       [](const Rank& r, const float* in, float* out) {
         return weftScatter(in, out, kCount, weftFloat, 0, r.comm, nullptr, nullptr);
       },
       true},
      {"alltoall",
       [](const Rank& r, const float* in, float* out) {
         return weftAlltoAll(in, out, kCount, weftFloat, r.comm, nullptr, nullptr);
       }},
      {"barrier",
       [](const Rank& r, const float*, float*) { return weftBarrier(r.comm, nullptr, nullptr); }},
  };
  return all;
}

// Of a rooted call a rank may be through before the others come: then the next call tells it, or the
// end.
weftResult_t callOrNext(const Rank& r, const MismatchedCall& call, const float* in, float* out) {
  const weftResult_t result = call.make(r, in, out);
  if (result != weftSuccess || !call.isRooted) return result;
  return r.rank % 2 == 0 ? weftCommFinalize(r.comm) : weftBarrier(r.comm, nullptr, nullptr);
}

// Rank `odd` makes call b, the others call a. Empty if every rank got the mismatch, and the same
// text.
std::string checkPair(const World& world, const MismatchedCall& a, const MismatchedCall& b,
                      int odd) {
  const std::vector<std::string> texts = run(world, [&](const Rank& r) -> std::string {
    std::vector<float> in(kRoom, 1.0f), out(kRoom, -7.0f);
    const weftResult_t result = callOrNext(r, r.rank == odd ? b : a, in.data(), out.data());
    if (result == weftSuccess) return "succeeded";
    if (result != weftMismatch) return outcome(result, r.comm);
    const std::string text = weftGetLastError(r.comm);
    if (weftBarrier(r.comm, nullptr, nullptr) != weftMismatch)
      return "the first error did not stay";
    return "mismatch: " + text;
  });
  for (const std::string& text : texts) {
    if (text.rfind("mismatch: mismatched collective #1", 0) != 0 || text != texts[0])
      return std::string(a.name) + " against " + b.name + ": " + text + " | " + texts[0];
  }
  return "";
}

class Mismatch : public ::testing::TestWithParam<std::tuple<Kind, int>> {};

TEST_P(Mismatch, EveryPairOfCallsIsToldApartOnEveryRank) {
  const auto [kind, ranks] = GetParam();
  const World world{kind, ranks};
  // Starting many ranks is slow, above all as processes: then a few of the calls against all others.
  const bool isSlow =
      kSanitized ? kind == Kind::Processes || ranks > 2 : kind == Kind::Processes && ranks > 2;
  const std::size_t first = isSlow ? 2 : calls().size();
  for (std::size_t i = 0; i < first; ++i) {
    const MismatchedCall& a = calls()[i];
    for (const MismatchedCall& b : calls()) {
      if (&a == &b) continue;
      const std::string failed = checkPair(world, a, b, ranks - 1);
      ASSERT_EQ(failed, "");
    }
  }
}

std::string nameOfParam(const ::testing::TestParamInfo<std::tuple<Kind, int>>& info) {
  return nameOf(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Worlds, Mismatch,
                         ::testing::Values(std::tuple{Kind::Threads, 2},
                                           std::tuple{Kind::Threads, 3},
                                           std::tuple{Kind::Processes, 2},
                                           std::tuple{Kind::Processes, 4}),
                         nameOfParam);

// The text names both calls with their arguments.
TEST(MismatchText, NamesBothCalls) {
  const std::vector<std::string> texts = run({Kind::Threads, 3}, [](const Rank& r) -> std::string {
    std::vector<float> in(2000, 1.0f), out(2000);
    const weftRedOp_t op = r.rank == 2 ? weftMax : weftSum;
    return outcome(
        weftAllReduce(in.data(), out.data(), 1000, weftFloat, op, r.comm, nullptr, nullptr),
        r.comm);
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("ranks 0-1 called all_reduce(count=1000, float, sum)"), std::string::npos)
        << text;
    EXPECT_NE(text.find("rank 2 called all_reduce(count=1000, float, max)"), std::string::npos)
        << text;
  }
}

TEST(MismatchText, NamesBitwiseOperations) {
  const std::vector<std::string> texts = run({Kind::Threads, 2}, [](const Rank& r) -> std::string {
    const int in = 1;
    int out = 0;
    const weftRedOp_t op = r.rank == 0 ? weftBand : weftBxor;
    return outcome(weftAllReduce(&in, &out, 1, weftInt32, op, r.comm, nullptr, nullptr), r.comm);
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("all_reduce(count=1, int32, band)"), std::string::npos) << text;
    EXPECT_NE(text.find("all_reduce(count=1, int32, bxor)"), std::string::npos) << text;
  }
}

// Of uneven calls in which each rank passes its own counts: both counts, or both calls.
TEST(MismatchText, NamesBothCounts) {
  const std::vector<std::string> texts =
      run({Kind::Processes, 3}, [](const Rank& r) -> std::string {
        const std::size_t counts[] = {5, 6, 7}, wrong[] = {5, 4, 7};
        std::vector<float> in(7), out(18);
        return outcome(weftGatherV(in.data(), counts[r.rank], out.data(), wrong, nullptr, weftFloat,
                                   0, r.comm, nullptr, nullptr) == weftSuccess
                           ? weftBarrier(r.comm, nullptr, nullptr)
                           : weftMismatch,
                       r.comm);
      });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("mismatched counts in gather_v(float, root=0) #1"), std::string::npos)
        << text;
    EXPECT_NE(text.find(" sends 6 elements to "), std::string::npos) << text;
    EXPECT_NE(text.find(", which expects 4"), std::string::npos) << text;
  }
}

TEST(MismatchText, NamesAnotherCallThanTheUnevenOne) {
  for (const int other : {0, 1}) {
    const std::vector<std::string> texts =
        run({Kind::Threads, 2}, [other](const Rank& r) -> std::string {
          const std::size_t counts[] = {1, 1};
          std::vector<float> in(2), out(2);
          if (r.rank == 0)
            return outcome(weftAlltoAllV(in.data(), counts, nullptr, out.data(), counts, nullptr,
                                         weftFloat, r.comm, nullptr, nullptr),
                           r.comm);
          if (other == 0)
            return outcome(weftAllReduce(in.data(), out.data(), 1, weftFloat, weftSum, r.comm,
                                         nullptr, nullptr),
                           r.comm);
          (void)weftGatherV(in.data(), 1, out.data(), counts, nullptr, weftFloat, 0, r.comm,
                            nullptr,
                            nullptr);  // whoever sends to the root may be through
          return outcome(weftCommFinalize(r.comm), r.comm);
        });
    for (const std::string& text : texts)
      EXPECT_NE(text.find("rank 0 called alltoallv(float)"), std::string::npos) << text;
  }
}

// Order: the same two calls, swapped on one rank.
TEST(MismatchText, OrderIsPartOfTheCall) {
  const std::string failed = failures({Kind::Processes, 2}, [](const Rank& r) -> std::string {
    std::vector<float> in(64, 1.0f), out(128);
    const auto gather = [&] {
      return weftAllGather(in.data(), out.data(), 64, weftFloat, r.comm, nullptr, nullptr);
    };
    const auto reduce = [&] {
      return weftAllReduce(in.data(), out.data(), 64, weftFloat, weftSum, r.comm, nullptr, nullptr);
    };
    const weftResult_t first = r.rank == 0 ? gather() : reduce();
    return first == weftMismatch ? "" : "got " + outcome(first, r.comm);
  });
  EXPECT_EQ(failed, "");
}

TEST(MismatchText, SendAndReceiveOfDifferentCounts) {
  const std::vector<std::string> texts = run({Kind::Threads, 2}, [](const Rank& r) -> std::string {
    std::vector<float> data(200);
    const weftResult_t result =
        r.rank == 0 ? weftSend(data.data(), 100, weftFloat, 1, r.comm, nullptr, nullptr)
                    : weftRecv(data.data(), 200, weftFloat, 0, r.comm, nullptr, nullptr);
    if (result != weftSuccess) return outcome(result, r.comm);
    // A send may be over before its receiver has looked; the error reaches the next call.
    return outcome(weftBarrier(r.comm, nullptr, nullptr), r.comm);
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("send(count=100, float)"), std::string::npos) << text;
    EXPECT_NE(text.find("recv(count=200, float)"), std::string::npos) << text;
  }
}

TEST(MismatchText, AMessageOfACollectiveIsNoAnswerToAReceive) {
  const std::vector<std::string> texts = run({Kind::Threads, 2}, [](const Rank& r) -> std::string {
    std::vector<float> data(4);
    const weftResult_t result =
        r.rank == 0 ? weftGatherV(data.data(), 4, nullptr, nullptr, nullptr, weftFloat, 1, r.comm,
                                  nullptr, nullptr)
                    : weftRecv(data.data(), 4, weftFloat, 0, r.comm, nullptr, nullptr);
    if (result != weftSuccess) return outcome(result, r.comm);
    return outcome(weftCommFinalize(r.comm), r.comm);
  });
  EXPECT_NE(texts[1].find("called send(count=4, float, of a collective) to rank 1"),
            std::string::npos)
      << texts[1];
}

}  // namespace
}  // namespace weft::testing
