// SPDX-License-Identifier: Apache-2.0
#include "rank.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace weft::peers {
namespace {

constexpr std::size_t kAlignment = 2 << 20;
constexpr double kRepeatUs = 6000;        // a steady repeat lasts at least so long
constexpr std::uint32_t kMinRepeats = 3;  // even when the budget is spent
// Before those that count, or as many as the budget has time for: weft finds out in some forty which form is quickest.
constexpr std::uint32_t kWarmCalls = 48;
constexpr std::uint32_t kMaxCalls = 1 << 20;
constexpr std::int64_t kLeadNs = 2000;  // longer than a barrier takes
constexpr int kOrphanCheckMs = 1000;

Timing summarize(std::vector<double> samples, std::uint32_t calls) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front(), samples.back(),
          static_cast<std::uint32_t>(samples.size()), calls};
}

int rankFromEnvironment() {
  for (const char* name : {"WEFT_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  throw std::runtime_error("no rank in the environment; start ranks with weft-peers");
}

void pinThread(const Seat& seat) {
  const Page& page = *seat.page;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core = 0; core < page.coresPerRank; ++core) {
    const auto which = static_cast<std::size_t>(seat.rank * page.coresPerRank + core);
    CPU_SET(static_cast<std::size_t>(page.cores[which % page.coreCount]), &set);
  }
  if (sched_setaffinity(0, sizeof(set), &set) != 0) throw std::runtime_error("cannot pin a rank");
}

// The exit code of a rank's life.
int serveRank(int argc, char** argv, const std::function<int()>& rank,
              const MakeLibrary& makeLibrary) {
  try {
    const Seat seat = takeSeat(argc, argv, rank());
    pinThread(seat);
    const std::unique_ptr<Library> library = makeLibrary(seat);
    RankLoop(seat, *library).serve();
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace

Memory Library::allocate(std::size_t bytes) {
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  Memory memory(std::aligned_alloc(kAlignment, whole), std::free);
  if (!memory) throw std::runtime_error(fmt::format("no memory for a buffer of {} bytes", whole));
  return memory;
}

RankLoop::RankLoop(const Seat& seat, Library& library)
    : seat_(seat),
      library_(library),
      group_(seat.page->groups[static_cast<std::size_t>(seat.group)]),
      state_(group_.states[static_cast<std::size_t>(seat.rank)]) {
  state_.pid = getpid();
}

void RankLoop::serve() {
  std::uint32_t seen = 0;
  finish();  // ready
  while (true) {
    while (group_.command.load() == seen) {
      sleepWhile(group_.command, seen, kOrphanCheckMs);
      if (kill(seat_.page->driver, 0) != 0) return;
    }
    seen = group_.command.load();
    const Job job = group_.job;
    if (job.mode == Mode::Quit) return;
    perform(job);
    finish();
  }
}

void RankLoop::finish() {
  group_.finished.fetch_add(1);
  wakeAll(group_.finished);
}

void RankLoop::perform(const Job& job) {
  library_.enter(job.mode);
  Call call = shapeCall(job.collective, job.bytes, seat_.rank, seat_.ranks);
  const Memory in = library_.allocate(std::max<std::size_t>(1, call.inCount()) * sizeof(float));
  const Memory out = library_.allocate(std::max<std::size_t>(1, call.outCount()) * sizeof(float));
  call.in = static_cast<float*>(in.get());
  call.out = static_cast<float*>(out.get());
  fillInput(call, 0);
  poisonOutput(call);
  library_.prepare(call);
  barrier();
  library_.run(call);
  turn_ = 0;
  if (!verify(call)) return;
  measure(call, job);
}

// Every rank takes part in the decision, so that all go on or all stop.
bool RankLoop::verify(const Call& call) {
  const std::string error = checkOutput(call, turn_);
  if (!error.empty()) {
    std::snprintf(state_.error.data(), state_.error.size(), "%s", error.c_str());
    state_.hasError.store(true);
  }
  barrier();
  for (int rank = 0; rank < seat_.ranks; ++rank) {
    if (group_.states[static_cast<std::size_t>(rank)].hasError.load()) return false;
  }
  return true;
}

void RankLoop::measure(const Call& call, const Job& job) {
  const std::int64_t budgetNs = job.budgetMs * 1000000LL;
  const bool fresh = job.mode == Mode::Fresh;
  static_cast<void>(sample(call, 1, fresh, {kWarmCalls, 1, nowNs() + budgetNs}));
  const std::uint32_t calls = fresh ? 1 : callsPerRepeat(call);
  std::vector<double> samples =
      sample(call, calls, fresh, {job.repeats, kMinRepeats, nowNs() + budgetNs});
  if (verify(call) && seat_.rank == 0) group_.timing = summarize(std::move(samples), calls);
}

// What each repeat of so many calls took.
std::vector<double> RankLoop::sample(const Call& call, std::uint32_t calls, bool fresh,
                                     const Limits& limits) {
  std::vector<double> samples;
  volatile float sink = 0;
  do {
    if (fresh) {
      fillInput(call, ++turn_);
      sink = readOutput(call);
    }
    const auto done = static_cast<std::uint32_t>(samples.size()) + 1;
    last_ = done >= limits.repeats || (done >= limits.least && nowNs() > limits.deadlineNs);
    samples.push_back(timeRepeat(call, calls));
  } while (group_.more.load());
  static_cast<void>(sink);
  return samples;
}

// Microseconds a call, from the earliest start to the latest end over all ranks: the same value on
// every rank.
double RankLoop::timeRepeat(const Call& call, std::uint32_t calls) {
  const std::int64_t start = beginTogether();
  for (std::uint32_t i = 0; i < calls; ++i) library_.run(call);
  state_.endNs = nowNs();
  state_.startNs = start;
  if (seat_.rank == 0) group_.more.store(!last_);
  barrier();
  std::int64_t first = start;
  std::int64_t last = state_.endNs;
  for (int rank = 0; rank < seat_.ranks; ++rank) {
    const RankState& state = group_.states[static_cast<std::size_t>(rank)];
    first = std::min(first, state.startNs);
    last = std::max(last, state.endNs);
  }
  return static_cast<double>(last - first) / 1000.0 / calls;
}

// When this rank begins. Out of a barrier ranks come one after the other, a line's way apart or two,
// and which is first depends on how the library's last call ended: at 8 B that would be most of what
// is measured. So ranks that each have a core agree on a moment (a window, as in Hunold and
// Carpen-Amarie, "Reproducible MPI Benchmarking Is Still Not As Easy As You Think", TPDS 2016).
std::int64_t RankLoop::beginTogether() {
  state_.readyNs = nowNs() + kLeadNs;
  barrier();
  if (!haveOwnCores(*seat_.page)) return nowNs();
  std::int64_t agreed = 0;
  for (int rank = 0; rank < seat_.ranks; ++rank)
    agreed = std::max(agreed, group_.states[static_cast<std::size_t>(rank)].readyNs);
  std::int64_t now = nowNs();
  while (now < agreed) now = nowNs();
  return now;
}

std::uint32_t RankLoop::callsPerRepeat(const Call& call) {
  std::uint32_t calls = 1;
  while (true) {
    const double us = timeRepeat(call, calls) * calls;
    if (us >= kRepeatUs || calls >= kMaxCalls) return calls;
    const double wanted = calls * std::min(10.0, 1.1 * kRepeatUs / std::max(us, 1.0)) + 1;
    calls = std::min(kMaxCalls, static_cast<std::uint32_t>(wanted));
  }
}

// The driver kills the group if a rank is lost, so this needs no deadline of its own.
void RankLoop::barrier() {
  state_.arrived.store(++barriers_, std::memory_order_release);
  for (int rank = 0; rank < seat_.ranks; ++rank) {
    const auto& arrived = group_.states[static_cast<std::size_t>(rank)].arrived;
    while (static_cast<std::int32_t>(arrived.load(std::memory_order_acquire) - barriers_) < 0) {
      sched_yield();
    }
  }
}

Seat takeSeat(int argc, char** argv, int rank) {
  if (argc < 3) throw std::runtime_error("usage: started by weft-peers only");
  Seat seat;
  seat.page = &openPage(argv[1]);
  seat.group = std::atoi(argv[2]);
  seat.rank = rank;
  seat.ranks = seat.page->ranks;
  return seat;
}

int serveProcess(int argc, char** argv, const MakeLibrary& makeLibrary) {
  return serveRank(argc, argv, rankFromEnvironment, makeLibrary);
}

// A rank that fails takes the process along: the others would wait for it.
int serveThreads(int argc, char** argv, const MakeLibrary& makeLibrary) {
  const int ranks = takeSeat(argc, argv, 0).ranks;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const int code = serveRank(
          argc, argv, [rank] { return rank; }, makeLibrary);
      if (code != EXIT_SUCCESS) std::_Exit(code);
    });
  }
  return EXIT_SUCCESS;  // once they are joined
}

}  // namespace weft::peers
