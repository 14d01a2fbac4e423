// SPDX-License-Identifier: Apache-2.0
// What a call costs besides its bytes: finding a cached plan, compiling one, and a whole call on a
// communicator of one rank, where nobody is waited for.
#include <benchmark/benchmark.h>
#include <weft/weft.h>

#include <cstdlib>

#include "plan/cache.h"
#include "tune/calibrate.h"

namespace {

weft::Tuning tuning(std::uint32_t ranks) {
  weft::Tuning t;
  t.ranks = ranks;
  static const weft::Machine machine = weft::calibrate().machine;
  t.ground.machine = machine;
  t.ground.arenaBytes = 1 << 20;
  t.ground.landingBytes = 256 << 10;
  return t;
}

weft::BindTarget target(std::uint32_t ranks) {
  return {
      .rank = 0, .ranks = ranks, .tags = ranks * (4 * ranks + 16), .budget = {1 << 20, 256 << 10}};
}

weft::Call allReduce(std::uint64_t count) {
  weft::Call call;
  call.collective = weft::Collective::AllReduce;
  call.type = weft::DType::F32;
  call.count = count;
  return call;
}

void findPlan(benchmark::State& state) {
  weft::PlanCache cache(tuning(8), target(8));
  const weft::Call call = allReduce(1024);
  for (auto _ : state) {
    const weft::Plan* plan = nullptr;
    if (!cache.find(call, &plan).ok()) state.SkipWithError("no plan");
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(findPlan);

void compilePlan(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  weft::Schedule schedule;
  if (!weft::choose(allReduce(1 << 20), tuning(ranks), &schedule).ok()) std::abort();
  for (auto _ : state) {
    std::unique_ptr<weft::Plan> plan;
    if (!weft::bindSchedule(schedule, allReduce(1 << 20), target(ranks), &plan).ok())
      state.SkipWithError("no plan");
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(compilePlan)->Arg(2)->Arg(8)->Arg(32);

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

BENCHMARK_MAIN();
