// SPDX-License-Identifier: Apache-2.0
// The floor: what the memory and the cores allow. The ranks are threads of one process that reach
// every buffer, so a collective is just the loads, adds and stores that nobody can avoid, between
// two flag exchanges (inputs are ready; outputs are complete). argv[3] is the form: plain stores to
// all outputs, nontemporal stores to all outputs, or pull, where each rank stores its own output
// only. Built for the machine's own instructions.
#include <fmt/format.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <sched.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "rank.h"

namespace weft::peers {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kBlock = 2048;  // elements: fits a first-level cache several times

struct Span {
  std::size_t begin;
  std::size_t end;
};

enum class Form { Plain, NonTemporal, Pull };

Form parseForm(std::string_view name) {
  if (name == "plain") return Form::Plain;
  if (name == "nontemporal") return Form::NonTemporal;
  if (name == "pull") return Form::Pull;
  throw std::invalid_argument("the floor's form is plain, nontemporal or pull");
}

// What the threads see of each other.
struct Floor {
  explicit Floor(int n, Form how) : ranks(n), form(how) {}

  struct alignas(64) Flag {
    std::atomic<std::uint32_t> value{0};
  };
  const int ranks;
  const Form form;
  std::array<Flag, kMaxRanks> flags;
  std::array<Call, kMaxRanks> calls;
};

// One thread's part of a rank's work.
class Part {
 public:
  Part(const Floor& floor, std::size_t rank, std::size_t part, std::size_t parts)
      : floor_(floor), rank_(rank), part_(part), parts_(parts) {}

  void run(const Call& call) const {
    if (floor_.form == Form::Pull) {
      pull(call);
    } else {
      push(call);
    }
    if (floor_.form == Form::NonTemporal) hwy::FlushStream();
  }

 private:
  // My share of the sum, or my block, to every output.
  void push(const Call& call) const {
    const std::size_t mine = rank_ * call.block;
    switch (call.collective) {
      case Collective::AllReduce:
        return reduceToAll(share(call.total));
      case Collective::AllGather:
        for (std::size_t to = 0; to < count(); ++to) {
          copyPart(call.in, floor_.calls[to].out + mine, call.block);
        }
        return;
      case Collective::ReduceScatter:
        return reduceBlock(mine, cut(call.block, part_, parts_));
      case Collective::Broadcast:
        return broadcast(share(call.total));
      case Collective::Reduce:
        return reduce(share(call.total), 0, rootsOutput());
      case Collective::Gather:
        return copyPart(call.in, floor_.calls[kRoot].out + mine, call.block);
      case Collective::Scatter:
        for (std::size_t to = 0; call.isRoot() && to < count(); ++to)
          copyPart(call.in + to * call.block, floor_.calls[to].out, call.block);
        return;
      case Collective::AllToAll:
        for (std::size_t to = 0; to < count(); ++to) {
          copyPart(call.in + to * call.block, floor_.calls[to].out + mine, call.block);
        }
        return;
    }
  }

  void reduceBlock(std::size_t block, Span span) const {
    reduce({block + span.begin, block + span.end}, block, outputs(1));
  }

  // The root's buffer goes out from all cores.
  void broadcast(Span span) const {
    for (std::size_t to = 1; to < count(); ++to) {
      copy(floor_.calls[0].out + span.begin, floor_.calls[to].out + span.begin,
           span.end - span.begin);
    }
  }

  // All of my output.
  void pull(const Call& call) const {
    const std::size_t mine = rank_ * call.block;
    switch (call.collective) {
      case Collective::AllReduce:
        return reduce(cut(call.total, part_, parts_), 0, outputs(1));
      case Collective::AllGather:
        for (std::size_t from = 0; from < count(); ++from) {
          copyPart(floor_.calls[from].in, call.out + from * call.block, call.block);
        }
        return;
      case Collective::ReduceScatter:
        return push(call);
      case Collective::Broadcast:
        if (!call.isRoot()) copyPart(floor_.calls[kRoot].out, call.out, call.total);
        return;
      case Collective::Reduce:
        if (call.isRoot()) reduce(cut(call.total, part_, parts_), 0, outputs(1));
        return;
      case Collective::Gather:
        for (std::size_t from = 0; call.isRoot() && from < count(); ++from)
          copyPart(floor_.calls[from].in, call.out + from * call.block, call.block);
        return;
      case Collective::Scatter:
        return copyPart(floor_.calls[kRoot].in + mine, call.out, call.block);
      case Collective::AllToAll:
        for (std::size_t from = 0; from < count(); ++from) {
          copyPart(floor_.calls[from].in + mine, call.out + from * call.block, call.block);
        }
        return;
    }
  }

  // Pointers in a row.
  template <typename Pointer>
  struct Row {
    std::array<Pointer, kMaxRanks> of;
    std::size_t count = 0;
  };

  // Of so many ranks, mine first.
  Row<float*> outputs(std::size_t ranks) const {
    Row<float*> row;
    for (; row.count < ranks; ++row.count) {
      row.of[row.count] = floor_.calls[(rank_ + row.count) % count()].out;
    }
    return row;
  }

  Row<float*> rootsOutput() const { return {{floor_.calls[kRoot].out}, 1}; }

  Row<const float*> inputs() const {
    Row<const float*> row;
    for (std::size_t rank = 0; rank < count(); ++rank) row.of[row.count++] = floor_.calls[rank].in;
    return row;
  }

  // Plain stores to another core's lines stall the loads behind them; a block at a time into my own
  // output and on from there took two thirds of the time at 64 KiB.
  void reduceToAll(Span span) const {
    const Row<float*> out = outputs(count());
    if (floor_.form == Form::NonTemporal) return reduce(span, 0, out);
    for (std::size_t begin = span.begin; begin < span.end; begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, span.end);
      reduce({begin, end}, 0, outputs(1));
      for (std::size_t to = 1; to < count(); ++to) {
        copy(out.of[0] + begin, out.of[to] + begin, end - begin);
      }
    }
  }

  // Sums [begin, end) of all inputs and stores it at begin - shift of the outputs.
  void reduce(Span span, std::size_t shift, const Row<float*> out) const {
    const Row<const float*> in = inputs();
    const hn::ScalableTag<float> wide;
    std::size_t i = span.begin;
    for (; i + hn::Lanes(wide) <= span.end; i += hn::Lanes(wide)) {
      auto sum = hn::LoadU(wide, in.of[0] + i);
      for (std::size_t from = 1; from < in.count; ++from) {
        sum = hn::Add(sum, hn::LoadU(wide, in.of[from] + i));
      }
      for (std::size_t to = 0; to < out.count; ++to) storeAt(wide, sum, out.of[to] + (i - shift));
    }
    for (; i < span.end; ++i) {
      float sum = in.of[0][i];
      for (std::size_t from = 1; from < in.count; ++from) sum += in.of[from][i];
      for (std::size_t to = 0; to < out.count; ++to) out.of[to][i - shift] = sum;
    }
  }

  template <typename Tag>
  void storeAt(Tag tag, hn::Vec<Tag> value, float* to) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(to) % sizeof(value) == 0;
    if (floor_.form == Form::NonTemporal && aligned) return hn::Stream(value, tag, to);
    hn::StoreU(value, tag, to);
  }

  void copyPart(const float* from, float* to, std::size_t elements) const {
    const Span span = cut(elements, part_, parts_);
    copy(from + span.begin, to + span.begin, span.end - span.begin);
  }

  void copy(const float* from, float* to, std::size_t elements) const {
    if (floor_.form != Form::NonTemporal) {
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

  // This thread's share of a vector that all ranks work on.
  Span share(std::size_t total) const {
    return cut(total, rank_ * parts_ + part_, count() * parts_);
  }

  // Piece `which` of so many, cut at cache lines.
  static Span cut(std::size_t total, std::size_t which, std::size_t pieces) {
    const std::size_t line = 16;
    const std::size_t lines = (total + line - 1) / line;
    const std::size_t begin = lines * which / pieces * line;
    const std::size_t end = lines * (which + 1) / pieces * line;
    return {std::min(begin, total), std::min(end, total)};
  }

  std::size_t count() const { return static_cast<std::size_t>(floor_.ranks); }

  const Floor& floor_;
  const std::size_t rank_;
  const std::size_t part_;
  const std::size_t parts_;
};

// The further threads of a rank. They spin while calls follow each other, and sleep else.
class Team {
 public:
  explicit Team(std::vector<Part> parts) : parts_(std::move(parts)) {
    for (const Part& part : parts_) threads_.emplace_back([this, &part] { serve(part); });
  }

  ~Team() {
    call_ = nullptr;
    next();
  }

  void begin(const Call& call) {
    call_ = &call;
    done_.store(0, std::memory_order_relaxed);
    next();
  }

  void await() const {
    while (done_.load(std::memory_order_acquire) < parts_.size()) hwy::Pause();
  }

 private:
  void next() {
    turn_.fetch_add(1);
    turn_.notify_all();
  }

  void serve(const Part& part) {
    for (std::uint32_t seen = 0;;) {
      for (int spin = 0; spin < 20000 && turn_.load(std::memory_order_acquire) == seen; ++spin)
        hwy::Pause();
      turn_.wait(seen);
      ++seen;
      if (call_ == nullptr) return;
      part.run(*call_);
      done_.fetch_add(1, std::memory_order_release);
    }
  }

  const std::vector<Part> parts_;
  const Call* call_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> turn_{0};
  alignas(64) std::atomic<std::size_t> done_{0};
  std::vector<std::jthread> threads_;
};

std::vector<Part> furtherParts(const Floor& floor, std::size_t rank, std::size_t parts) {
  std::vector<Part> further;
  for (std::size_t part = 1; part < parts; ++part) further.emplace_back(floor, rank, part, parts);
  return further;
}

class FloorRank : public Library {
 public:
  FloorRank(Floor& floor, const Seat& seat)
      : floor_(floor),
        rank_(static_cast<std::size_t>(seat.rank)),
        spins_(haveOwnCores(*seat.page) ? 1000 : 0),
        mine_(floor, rank_, 0, threadsOf(*seat.page)),
        team_(furtherParts(floor, rank_, threadsOf(*seat.page))) {}

  void prepare(const Call& call) override {
    floor_.calls[rank_] = call;
    exchange();
  }

  void run(const Call& call) override {
    exchange();
    team_.begin(call);
    mine_.run(call);
    team_.await();
    exchange();
  }

 private:
  static std::size_t threadsOf(const Page& page) {
    return haveOwnCores(page) ? static_cast<std::size_t>(page.coresPerRank) : 1;
  }

  void exchange() {
    floor_.flags[rank_].value.store(++turn_, std::memory_order_release);
    for (int rank = 0; rank < floor_.ranks; ++rank)
      await(floor_.flags[static_cast<std::size_t>(rank)].value);
  }

  // Ranks that share a core yield at once.
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

  Floor& floor_;
  const std::size_t rank_;
  const int spins_;
  std::uint32_t turn_ = 0;
  const Part mine_;
  Team team_;
};

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  using namespace weft::peers;
  try {
    Floor floor(takeSeat(argc, argv, 0).ranks, parseForm(argc > 3 ? argv[3] : ""));
    return serveThreads(argc, argv, [&floor](const Seat& seat) {
      return std::make_unique<FloorRank>(floor, seat);
    });
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return EXIT_FAILURE;
  }
}
