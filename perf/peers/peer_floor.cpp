// SPDX-License-Identifier: Apache-2.0
// The floor: what the memory and the cores allow. The ranks are threads of one process that reach
// every buffer, so a collective is just the loads, adds and stores that nobody can avoid, between
// two flag exchanges (inputs are ready; outputs are complete). argv[3] is plain or nontemporal: how
// the outputs are stored. Built for the machine's own instructions.
#include <fmt/format.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <sched.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "rank.h"

namespace weft::peers {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct Span {
  std::size_t begin;
  std::size_t end;
};

// What the threads see of each other.
struct Floor {
  explicit Floor(int n, bool nt) : ranks(n), nonTemporal(nt) {}

  struct alignas(64) Flag {
    std::atomic<std::uint32_t> value{0};
  };
  const int ranks;
  const bool nonTemporal;
  std::array<Flag, kMaxRanks> flags;
  std::array<Call, kMaxRanks> calls;
};

class FloorRank : public Library {
 public:
  FloorRank(Floor& floor, int rank)
      : floor_(floor),
        rank_(static_cast<std::size_t>(rank)),
        spins_(floor.ranks > static_cast<int>(std::thread::hardware_concurrency()) ? 0 : 1000) {}

  void prepare(const Call& call) override {
    floor_.calls[rank_] = call;
    exchange();
  }

  void run(const Call& call) override {
    exchange();
    work(call);
    if (floor_.nonTemporal) hwy::FlushStream();
    exchange();
  }

 private:
  void exchange() {
    floor_.flags[rank_].value.store(++turn_, std::memory_order_release);
    for (std::size_t rank = 0; rank < count(); ++rank) await(floor_.flags[rank].value);
  }

  void await(const std::atomic<std::uint32_t>& flag) const {
    for (int spin = 0; static_cast<std::int32_t>(flag.load(std::memory_order_acquire) - turn_) < 0;
         ++spin) {
      if (spin < spins_) {
        hwy::Pause();
      } else {
        sched_yield();
      }
    }
  }

  void work(const Call& call) {
    const std::size_t mine = rank_ * call.block;
    switch (call.collective) {
      case Collective::AllReduce:
        return reduce(share(call.total), 0, true);
      case Collective::AllGather:
        for (std::size_t to = 0; to < count(); ++to) {
          copy(call.in, floor_.calls[to].out + mine, call.block);
        }
        return;
      case Collective::ReduceScatter:
        return reduce({mine, mine + call.block}, mine, false);
      case Collective::Broadcast:
        return broadcast(share(call.total));
      case Collective::AllToAll:
        for (std::size_t to = 0; to < count(); ++to) {
          copy(call.in + to * call.block, floor_.calls[to].out + mine, call.block);
        }
        return;
    }
  }

  // The root's buffer goes out from all cores.
  void broadcast(Span span) {
    for (std::size_t to = 1; to < count(); ++to) {
      copy(floor_.calls[0].out + span.begin, floor_.calls[to].out + span.begin,
           span.end - span.begin);
    }
  }

  // Sums [begin, end) of all inputs and stores it at begin - shift: of every output, or of mine.
  void reduce(Span span, std::size_t shift, bool everywhere) {
    const hn::ScalableTag<float> wide;
    std::size_t i = span.begin;
    for (; i + hn::Lanes(wide) <= span.end; i += hn::Lanes(wide)) {
      auto sum = hn::LoadU(wide, floor_.calls[0].in + i);
      for (std::size_t from = 1; from < count(); ++from) {
        sum = hn::Add(sum, hn::LoadU(wide, floor_.calls[from].in + i));
      }
      forOutputs(everywhere, [&](float* out) { storeAt(wide, sum, out + (i - shift)); });
    }
    for (; i < span.end; ++i) {
      float sum = floor_.calls[0].in[i];
      for (std::size_t from = 1; from < count(); ++from) sum += floor_.calls[from].in[i];
      forOutputs(everywhere, [&](float* out) { out[i - shift] = sum; });
    }
  }

  template <typename Action>
  void forOutputs(bool everywhere, Action action) {
    if (!everywhere) return action(floor_.calls[rank_].out);
    for (std::size_t to = 0; to < count(); ++to) action(floor_.calls[to].out);
  }

  template <typename Tag>
  void storeAt(Tag tag, hn::Vec<Tag> value, float* to) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(to) % sizeof(value) == 0;
    if (floor_.nonTemporal && aligned) return hn::Stream(value, tag, to);
    hn::StoreU(value, tag, to);
  }

  void copy(const float* from, float* to, std::size_t elements) const {
    if (!floor_.nonTemporal) {
      std::memcpy(to, from, elements * sizeof(float));
      return;
    }
    const hn::ScalableTag<float> wide;
    std::size_t i = 0;
    for (; i + hn::Lanes(wide) <= elements; i += hn::Lanes(wide)) {
      storeAt(wide, hn::LoadU(wide, from + i), to + i);
    }
    for (; i < elements; ++i) to[i] = from[i];
  }

  // This thread's share of a vector, cut at cache lines.
  Span share(std::size_t total) const {
    const std::size_t line = 16;
    const std::size_t lines = (total + line - 1) / line;
    const std::size_t begin = lines * rank_ / count() * line;
    const std::size_t end = lines * (rank_ + 1) / count() * line;
    return {std::min(begin, total), std::min(end, total)};
  }

  std::size_t count() const { return static_cast<std::size_t>(floor_.ranks); }

  Floor& floor_;
  const std::size_t rank_;
  const int spins_;
  std::uint32_t turn_ = 0;
};

void serveThread(int argc, char** argv, Floor& floor, int rank) {
  const Seat seat = takeSeat(argc, argv, rank);
  pinThread(seat);
  FloorRank library(floor, rank);
  RankLoop(seat, library).serve();
}

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  using namespace weft::peers;
  try {
    const int ranks = takeSeat(argc, argv, 0).ranks;
    Floor floor(ranks, argc > 3 && std::string(argv[3]) == "nontemporal");
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] { serveThread(argc, argv, floor, rank); });
    }
    for (std::thread& thread : threads) thread.join();
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return EXIT_FAILURE;
  }
}
