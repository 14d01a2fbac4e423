// SPDX-License-Identifier: Apache-2.0
// What a put of the verbs transport costs between two ranks, for comparison with ib_write_bw and
// ib_write_lat on the same devices: "large BYTES MB/s" and "small BYTES us", one line each, and
// "raw", as small, of a bare write with immediate over the same queue pair.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "courier.h"
#include "transports/verbs/verbs_wire.h"
#include "world.h"

namespace weft::verbs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::uint32_t kInFlight = 32;
constexpr int kRoundTrips = 20;  // of one sample
const transport::WindowLayout kLayout = {.ranks = 2,
                                         .arrivalSlots = kInFlight,
                                         .pairArrivalSlots = 8,
                                         .arenaBytes = kLarge,
                                         .pairBytes = 4096};

// Soft-RoCE's kernel threads may need the core.
void yieldNowAndThen(int polls) {
  if (polls % 256 == 255) ::sched_yield();
}

double microseconds(Clock::duration span) {
  return std::chrono::duration<double, std::micro>(span).count();
}

std::uint64_t argument(char** argv, int i, std::uint64_t fallback) {
  return argv[i] == nullptr ? fallback : std::strtoull(argv[i], nullptr, 10);
}

// The first put connects them, for which both must poll.
void connect(transport::Transport& transport, transport::Rank& rank) {
  transport::Courier courier(transport);
  const std::uint64_t at = transport::arrivalOffset(kLayout, 3, 0);
  courier.send({.peer = 1 - rank.rank, .arrival = at, .flag = 1, .target = transport::kInlined});
  courier.await(*reinterpret_cast<transport::ArrivalSlot*>(transport.own().base() + at), 1);
  courier.drain();
}

// One way, from the first put until the last is answered. Rank 1 waits in the control plane, as the
// passive side of ib_write_bw does.
void large(transport::Transport& transport, transport::Rank& rank, std::uint64_t bytes,
           std::uint64_t count) {
  transport::Courier courier(transport);
  rank.barrier();
  if (rank.rank == 0) {
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < count; ++i)
      courier.send({.peer = 1,
                    .arrival = transport::arrivalOffset(kLayout, 0,
                                                        static_cast<std::uint32_t>(i % kInFlight)),
                    .flag = i + 1,
                    .src = transport.own().arena(),
                    .bytes = bytes,
                    .target = transport::arenaOffset(kLayout, 1, 0)});
    courier.drain();
    const double us = microseconds(Clock::now() - start);
    std::printf("large %llu %.2f MB/s\n", static_cast<unsigned long long>(bytes),
                static_cast<double>(bytes * count) / us * 1e6 / 1048576);
  }
  rank.barrier();
  for (std::uint32_t tag = 0; rank.rank == 1 && tag < std::min<std::uint64_t>(count, kInFlight);
       ++tag)
    courier.await(transport.own().arrivals()[tag],
                  tag + 1 + (count - 1 - tag) / kInFlight * kInFlight);
}

// To and fro; the median of half a round trip. Reading the clock is dear in a virtual machine.
void pingPong(transport::Rank& rank, const char* what, std::uint64_t bytes, std::uint64_t count,
              const std::function<void(std::uint64_t)>& send,
              const std::function<void(std::uint64_t)>& await) {
  std::vector<double> samples;
  rank.barrier();
  for (std::uint64_t trip = 0; trip < count;) {
    const auto start = Clock::now();
    for (int i = 0; i < kRoundTrips; ++i) {
      ++trip;
      if (rank.rank == 1) await(trip);
      send(trip);
      if (rank.rank == 0) await(trip);
    }
    samples.push_back(microseconds(Clock::now() - start) / (2 * kRoundTrips));
  }
  std::sort(samples.begin(), samples.end());
  if (rank.rank == 0)
    std::printf("%s %llu %.2f us\n", what, static_cast<unsigned long long>(bytes),
                samples[samples.size() / 2]);
  rank.barrier();
}

void small(transport::Transport& transport, transport::Rank& rank, std::uint64_t bytes,
           std::uint64_t count) {
  const std::uint64_t at = transport::arrivalOffset(kLayout, 2, 0);
  const auto& arrival = *reinterpret_cast<transport::ArrivalSlot*>(transport.own().base() + at);
  transport::Event events[8];
  std::byte source[transport::kInlineBytes] = {};
  const auto await = [&](std::uint64_t word) {
    for (int polls = 0; arrival.flag.load(std::memory_order_acquire) != word; ++polls) {
      yieldNowAndThen(polls);
      transport.poll(events, 8);
    }
  };
  const auto send = [&](std::uint64_t word) {
    const transport::Put put{.peer = 1 - rank.rank,
                             .arrival = at,
                             .flag = word,
                             .src = source,
                             .bytes = bytes,
                             .target = transport::kInlined};
    while (transport.put(put) == transport::PutResult::Again) transport.poll(events, 8);
  };
  pingPong(rank, "small", bytes, count, send, await);
  transport::Courier(transport).drain();
}

// Past wire and transport: nothing but the post, and the queue.
void raw(verbs::Connection& connection, transport::Transport& transport, transport::Rank& rank,
         std::uint64_t bytes, std::uint64_t count) {
  ibv_cq* const queue = connection.domain().queues()[0].get();
  const auto take = [&] {
    ibv_wc done[4];
    bool noticed = false;
    const int got = queue->context->ops.poll_cq(queue, 4, done);
    for (int i = 0; i < got; ++i) {
      if ((done[i].wr_id & verbs::Connection::kReceive) == 0) {
        connection.complete(done[i].wr_id, [](std::uint64_t) {});
        continue;
      }
      noticed = true;
      if (connection.renew() != 0) std::abort();
    }
    return noticed;
  };
  const wire::WireWrite write{
      .peer = 1 - rank.rank, .src = transport.own().arena(), .bytes = bytes};
  pingPong(
      rank, "raw", bytes, count,
      [&](std::uint64_t) {
        const auto& target = connection.way().target(write.region);
        const std::uint32_t key = connection.domain().memory().localKey(write.src);
        if (connection.post(write, target, key) != 0) std::abort();
      },
      [&](std::uint64_t) {
        for (int polls = 0; !take(); ++polls) yieldNowAndThen(polls);
      });
  while (!connection.idle()) take();
}

int run(char** argv) {
  const std::uint64_t largeBytes = argument(argv, 1, kLarge), largeCount = argument(argv, 2, 64);
  const std::uint64_t smallBytes = argument(argv, 3, 8), smallCount = argument(argv, 4, 1000);
  int failures = 0;
  verbs::VerbsWire* wire = nullptr;
  transport::Fabric fabric = transport::verbsFabric();
  fabric.wire = [&, make = fabric.wire](const wire::WireSetup& setup,
                                        std::unique_ptr<wire::Wire>* out) {
    const Status status = make(setup, out);
    wire = static_cast<verbs::VerbsWire*>(out->get());
    return status;
  };
  const auto outcomes = transport::runRanks(fabric, 2, [&](transport::Rank& rank) {
    const auto transport = rank.make(kLayout);
    connect(*transport, rank);
    large(*transport, rank, std::min<std::uint64_t>(largeBytes, kLarge), largeCount);
    small(*transport, rank, std::min<std::uint64_t>(smallBytes, transport::kInlineBytes),
          smallCount);
    raw(*wire->connections()[0], *transport, rank, smallBytes, smallCount);
    std::fflush(stdout);
  });
  for (const transport::Outcome& outcome : outcomes) {
    if (outcome.failure.empty() && outcome.signal == 0) continue;
    std::printf("failed: %s (signal %d)\n", outcome.failure.c_str(), outcome.signal);
    ++failures;
  }
  return failures;
}

}  // namespace
}  // namespace weft::verbs

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  arguments.resize(8, nullptr);
  return weft::verbs::run(arguments.data()) == 0 ? 0 : 1;
}
