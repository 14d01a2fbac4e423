// SPDX-License-Identifier: Apache-2.0
// The ops of calls, as a traced communicator keeps them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "steps.h"
#include "world.h"

namespace weft::testing {
namespace {

using Spans = std::vector<weftOpSpan_t>;

constexpr std::size_t kCount = 300000;

weftResult_t sum(const Rank& r, std::vector<float>* values) {
  return weftAllReduce(values->data(), values->data(), values->size(), weftFloat, weftSum, r.comm,
                       nullptr, nullptr);
}

// The spans of a sum, and how many ops it had.
Spans traced(Steps& steps, const Rank& r, std::size_t room, std::size_t* made) {
  Spans spans(room);
  std::vector<float> values(kCount, 1);
  steps.ok(weftCommTraceStart(r.comm, spans.data(), room), "start");
  steps.ok(sum(r, &values), "sum");
  steps.ok(weftCommTraceStop(r.comm, made), "stop");
  steps.expect(values.back() == static_cast<float>(r.ranks), "wrong");
  return spans;
}

std::size_t countOf(const Spans& spans, const char* name) {
  return static_cast<std::size_t>(std::ranges::count_if(spans, [&](const weftOpSpan_t& span) {
    return std::string_view(weftOpName(span.kind)) == name;
  }));
}

class Trace : public ::testing::TestWithParam<World> {};

TEST_P(Trace, HasEachOpOfACall) {
  EXPECT_EQ(
      failures(GetParam(),
               [](const Rank& r) {
                 Steps steps;
                 std::size_t made = 0, again = 0;
                 Spans spans = traced(steps, r, 100000, &made);
                 steps.expect(made > 0 && made < spans.size(), "ops");
                 spans.resize(std::min(made, spans.size()));
                 for (const weftOpSpan_t& span : spans) {
                   steps.expect(span.beginNs <= span.endNs, "an op that ends first");
                   steps.expect(span.peer >= 0 && span.peer < r.ranks, "a peer");
                   steps.expect(std::string_view(weftOpName(span.kind)) != "unknown op", "a kind");
                 }
                 steps.expect(countOf(spans, "Wait") > 0, "nothing is waited for");
                 // A little room: the first are kept, and all are counted.
                 const Spans few = traced(steps, r, 2, &again);
                 steps.expect(again == made, "the same call has other ops");
                 steps.expect(few[0].op == spans[0].op && few[0].endNs > spans[0].endNs, "first");
                 return steps.failed();
               }),
      "");
}

TEST_P(Trace, IsBegunAndEndedInTurn) {
  EXPECT_EQ(
      failures(
          GetParam(),
          [](const Rank& r) {
            Steps steps;
            weftOpSpan_t span{};
            std::size_t made = 0;
            const auto refused = [&](weftResult_t got, weftResult_t wanted, const char* text) {
              steps.expect(got == wanted && std::string_view(weftGetLastError(r.comm)).find(text) !=
                                                std::string::npos,
                           weftGetLastError(r.comm));
            };
            refused(weftCommTraceStop(r.comm, &made), weftInvalidUsage, "is not traced");
            refused(weftCommTraceStart(r.comm, &span, 0), weftInvalidArgument, "room is 0");
            refused(weftCommTraceStart(r.comm, nullptr, 1), weftInvalidArgument, "spans is NULL");
            steps.ok(weftCommTraceStart(r.comm, &span, 1), "start");
            refused(weftCommTraceStart(r.comm, &span, 1), weftInvalidUsage, "is traced already");
            refused(weftCommTraceStop(r.comm, nullptr), weftInvalidArgument, "made is NULL");
            steps.ok(weftCommTraceStop(r.comm, &made), "stop");
            steps.expect(made == 0, "ops without a call");
            std::vector<float> values(10, 1);
            steps.ok(sum(r, &values), "a sum that is not traced");
            return steps.failed();
          }),
      "");
}

INSTANTIATE_TEST_SUITE_P(Worlds, Trace,
                         ::testing::Values(World{Kind::Threads, 3}, World{Kind::Processes, 2}),
                         [](const auto& world) {
                           return nameOf(world.param.kind) + std::to_string(world.param.ranks);
                         });

}  // namespace
}  // namespace weft::testing
