// SPDX-License-Identifier: Apache-2.0
// What a call costs besides its bytes: finding a cached plan, compiling one, and a whole call on a
// communicator of one rank, where nobody is waited for.
#include <benchmark/benchmark.h>
#include <weft/weft.h>

#include <cstdlib>

#include "perf/common/benchmarks.h"
#include "plan/arrivals.h"
#include "plan/cache.h"
#include "tune/calibrate.h"

namespace {

weft::plan::Tuning tuning(std::uint32_t ranks) {
  weft::plan::Tuning t;
  t.ranks = ranks;
  static const weft::tune::Machine machine = weft::tune::estimated(weft::tune::calibrate().machine);
  t.costs.machine = machine;
  t.costs.arenaBytes = 1 << 20;
  t.costs.stagingBytes = 256 << 10;
  return t;
}

weft::plan::BindTarget target(std::uint32_t ranks) {
  return {.rank = 0,
          .ranks = ranks,
          .arrivalSlots = ranks * weft::plan::arrivalsPerPeer(tuning(ranks)),
          .budget = {1 << 20, 256 << 10}};
}

weft::plan::Call allReduce(std::uint64_t count) {
  weft::plan::Call call;
  call.collective = weft::schedule::Collective::AllReduce;
  call.type = weft::reduce::DType::F32;
  call.count = count;
  return call;
}

void findPlan(benchmark::State& state) {
  weft::plan::PlanCache cache(tuning(8), target(8));
  const weft::plan::Call call = allReduce(1024);
  for (auto _ : state) {
    const weft::plan::Plan* plan = nullptr;
    if (!cache.find(call, &plan).ok()) state.SkipWithError("no plan");
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(findPlan);

void compilePlan(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  weft::plan::Decision decision;
  if (!weft::plan::decide(allReduce(1 << 20), tuning(ranks), &decision).ok()) std::abort();
  for (auto _ : state) {
    std::unique_ptr<weft::plan::Plan> plan;
    if (!weft::plan::bindSchedule(decision.schedule, allReduce(1 << 20), target(ranks), &plan).ok())
      state.SkipWithError("no plan");
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(compilePlan)->Arg(2)->Arg(8)->Arg(32);

void decideAnew(benchmark::State& state) {
  weft::plan::Tuning shared = tuning(static_cast<std::uint32_t>(state.range(0)));
  shared.direct = shared.shares = true;
  for (auto _ : state) {
    weft::plan::Decision decision;
    if (!weft::plan::decide(allReduce(1 << 16), shared, &decision).ok())
      state.SkipWithError("no plan");
    benchmark::DoNotOptimize(decision);
  }
}
BENCHMARK(decideAnew)->Arg(2)->Arg(8)->Arg(64)->Arg(256);

void callAlone(benchmark::State& state) {
  weftComm_t comm = nullptr;
  if (weftCommInitAll(&comm, 1, nullptr) != weftSuccess) std::abort();
  float in[2] = {1, 2}, out[2];
  for (auto _ : state) {
    if (weftAllReduce(in, out, 2, weftFloat, weftSum, comm, nullptr, nullptr) != weftSuccess)
      state.SkipWithError(weftGetLastError(comm));
    benchmark::ClobberMemory();
  }
  weftCommDestroy(comm);
}
BENCHMARK(callAlone);

}  // namespace

int main(int argc, char** argv) {
  return weft::tools::runBenchmarks("weft-bench-launch", argc, argv);
}
