// SPDX-License-Identifier: Apache-2.0
// What a put of the verbs transport costs between two ranks, for comparison with ib_write_bw and
// ib_write_lat on the same devices: "large BYTES MB/s" and "small BYTES us", one line each.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "courier.h"
#include "world.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::uint32_t kWindow = 32;
constexpr int kRoundTrips = 20;  // of one sample
const SegmentLayout kLayout = {2, kWindow, 8, kLarge, 4096};

double microseconds(Clock::duration span) {
  return std::chrono::duration<double, std::micro>(span).count();
}

std::uint64_t argument(char** argv, int i, std::uint64_t fallback) {
  return argv[i] == nullptr ? fallback : std::strtoull(argv[i], nullptr, 10);
}

// One way, from the first put until the last is answered. Rank 1 waits in the control plane, as the
// passive side of ib_write_bw does.
void large(Transport& transport, Rank& rank, std::uint64_t bytes, std::uint64_t count) {
  Courier courier(transport);
  rank.barrier();
  if (rank.rank == 0) {
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < count; ++i)
      courier.send({.peer = 1,
                    .cell = cellOffset(kLayout, 0, static_cast<std::uint32_t>(i % kWindow)),
                    .word = i + 1,
                    .src = transport.own().arena(),
                    .bytes = bytes,
                    .target = arenaOffset(kLayout, 1, 0)});
    courier.drain();
    const double us = microseconds(Clock::now() - start);
    std::printf("large %llu %.2f MB/s\n", static_cast<unsigned long long>(bytes),
                static_cast<double>(bytes * count) / us * 1e6 / 1048576);
  }
  rank.barrier();
  for (std::uint32_t tag = 0; rank.rank == 1 && tag < std::min<std::uint64_t>(count, kWindow);
       ++tag)
    courier.await(transport.own().cells()[tag], tag + 1 + (count - 1 - tag) / kWindow * kWindow);
}

// To and fro; the median of half a round trip. Reading the clock is dear in a virtual machine.
void small(Transport& transport, Rank& rank, std::uint64_t bytes, std::uint64_t count) {
  const std::uint64_t at = cellOffset(kLayout, 2, 0);
  const auto& cell = *reinterpret_cast<Cell*>(transport.own().base() + at);
  Event events[8];
  std::byte source[kInlineBytes] = {};
  // Yields now and then, as soft-RoCE's kernel threads may need the core.
  const auto waitFor = [&](std::uint64_t word) {
    for (int polls = 0; cell.word.load(std::memory_order_acquire) != word; ++polls) {
      if (polls % 256 == 255) ::sched_yield();
      transport.poll(events, 8);
    }
  };
  const auto roundTrip = [&](std::uint64_t word) {
    if (rank.rank == 1) waitFor(word);
    const Put put{.peer = 1 - rank.rank,
                  .cell = at,
                  .word = word,
                  .src = source,
                  .bytes = bytes,
                  .target = kInCell};
    while (transport.put(put) == PutResult::Again) transport.poll(events, 8);
    if (rank.rank == 0) waitFor(word);
  };
  std::vector<double> samples;
  rank.barrier();
  for (std::uint64_t word = 0; word < count;) {
    const auto start = Clock::now();
    for (int i = 0; i < kRoundTrips; ++i) roundTrip(++word);
    samples.push_back(microseconds(Clock::now() - start) / (2 * kRoundTrips));
  }
  std::sort(samples.begin(), samples.end());
  if (rank.rank == 0)
    std::printf("small %llu %.2f us\n", static_cast<unsigned long long>(bytes),
                samples[samples.size() / 2]);
  Courier(transport).drain();
}

int run(char** argv) {
  const std::uint64_t largeBytes = argument(argv, 1, kLarge), largeCount = argument(argv, 2, 64);
  const std::uint64_t smallBytes = argument(argv, 3, 8), smallCount = argument(argv, 4, 1000);
  int failures = 0;
  const auto outcomes = runRanks(verbsFabric(), 2, [&](Rank& rank) {
    const auto transport = rank.make(kLayout);
    large(*transport, rank, std::min<std::uint64_t>(largeBytes, kLarge), largeCount);
    small(*transport, rank, std::min<std::uint64_t>(smallBytes, kInlineBytes), smallCount);
    rank.barrier();
    std::fflush(stdout);
  });
  for (const Outcome& outcome : outcomes) {
    if (outcome.failure.empty() && outcome.signal == 0) continue;
    std::printf("failed: %s (signal %d)\n", outcome.failure.c_str(), outcome.signal);
    ++failures;
  }
  return failures;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  arguments.resize(8, nullptr);
  return weft::run(arguments.data()) == 0 ? 0 : 1;
}
