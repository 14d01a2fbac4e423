// SPDX-License-Identifier: Apache-2.0
// What it costs ranks to meet, without any transport: the bootstrap, the rounds of a creation, the
// control link and a round of questions, in CPU time of a rank and of rank 0's process, which serves
// all. Each rank is a process of this host.
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <random>
#include <span>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "control/control_link.h"
#include "transports/transport.h"

namespace weft {
namespace {

constexpr int kLimitMs = 100'000;
constexpr int kMostRanks = 4096;
constexpr std::size_t kRounds = 8;
// What a rank gives in a round: its own bytes, and those that are much like those of others.
constexpr std::size_t kRecordBytes = 300, kOwnBytes = 24;

enum Step : std::size_t { Join, Rounds, Link, Question, kSteps };
// How the ranks lie: hosts are names.
struct World {
  std::uint32_t ranks, each;
  bool hubs;
};

constexpr const char* kNames[kSteps] = {"join", "8 rounds", "control link", "question"};

// Of all processes.
struct Board {
  std::atomic<bool> hasId{false};
  bootstrap::UniqueId id;
  std::atomic<std::uint32_t> arrived{0};
  std::array<std::array<double, kSteps>, kMostRanks> cpuMs;
  std::array<double, kSteps> wallMs;  // of rank 0
};

double cpuMs() {
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

double nowMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

// One page for oneself and one in place of all mirrors; moves nothing.
class Pages final : public transport::Transport {
 public:
  explicit Pages(std::uint32_t rank, std::uint32_t ranks) : rank_(rank) { layout_.ranks = ranks; }
  const char* name() const override { return "none"; }
  transport::Caps caps() const override { return {}; }
  const transport::WindowLayout& layout() const override { return layout_; }
  transport::WindowView own() const override {
    return {reinterpret_cast<std::byte*>(&own_), layout_};
  }
  transport::ControlPage* control(std::uint32_t peer) const override {
    return peer == rank_ ? &own_ : &mirror_;
  }
  bool isMirrored(std::uint32_t peer) const override { return peer != rank_; }
  transport::PutResult put(const transport::Put&) override { return transport::PutResult::Failed; }
  int poll(transport::Event*, int) override { return 0; }
  std::size_t outstanding() const override { return 0; }
  void sever(std::uint32_t) override {}
  const Status& lastError() const override { return error_; }

 private:
  const std::uint32_t rank_;
  transport::WindowLayout layout_;
  mutable transport::ControlPage own_, mirror_;
  Status error_;
};

class Rank {
 public:
  Rank(Board& board, std::uint32_t rank, const World& world)
      : board_(board), rank_(rank), ranks_(world.ranks), world_(world), pages_(rank, ranks_) {}

  Status run() {
    WEFT_TRY(step(Join, [&] { return join(); }));
    WEFT_TRY(step(Rounds, [&] { return rounds(); }));
    WEFT_TRY(step(Link, [&] { return openLink(); }));
    WEFT_TRY(step(Question, [&] {
      link_->refresh(std::chrono::milliseconds(kLimitMs));
      return barrier();
    }));
    pages_.own().control().left.store(1);
    link_->leave();
    bootstrap_->close();
    return {};
  }

 private:
  template <class Work>
  Status step(Step which, const Work& work) {
    const double cpu = cpuMs(), wall = nowMs();
    WEFT_TRY(work());
    board_.cpuMs[rank_][which] = cpuMs() - cpu;
    if (rank_ == 0) board_.wallMs[which] = nowMs() - wall;
    return {};
  }
  Status join() {
    if (rank_ == 0) {
      WEFT_TRY(bootstrap::createUniqueId(&board_.id, bootstrap::IdScope::ThisProcess));
      board_.hasId = true;
    }
    while (!board_.hasId) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    bootstrap::JoinOptions options;
    options.host = std::to_string(rank_ / world_.each);
    if (!world_.hubs) options.hubFrom = kMostRanks + 1;
    return bootstrap::Bootstrap::join(board_.id, static_cast<int>(ranks_), static_cast<int>(rank_),
                                      "", Deadline::in(kLimitMs), &bootstrap_, options);
  }
  Status gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
    return all == nullptr ? Status() : bootstrap_->allGather(mine, all, Deadline::in(kLimitMs));
  }
  Status rounds() {
    std::mt19937 random(rank_);
    std::vector<std::byte> mine(kRecordBytes, std::byte{1});
    std::vector<std::vector<std::byte>> all;
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < kOwnBytes; ++i) mine[i] = static_cast<std::byte>(random());
      WEFT_TRY(gather(mine, &all));
    }
    return {};
  }
  Status openLink() {
    transport::TransportSetup setup;
    setup.rank = rank_;
    setup.ranks = ranks_;
    setup.names = bootstrap_->ranks();
    setup.exchange = [this](auto mine, auto* all) { return gather(mine, all); };
    setup.timeoutMs = kLimitMs;
    return control::openControlLink(setup, pages_, &link_);
  }
  Status barrier() {
    std::vector<std::vector<std::byte>> none;
    return gather({}, &none);
  }

  Board& board_;
  const std::uint32_t rank_, ranks_;
  const World world_;
  Pages pages_;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;
  std::shared_ptr<watch::RemoteRanks> link_;
};

void print(const Board& board, std::uint32_t ranks) {
  double total = 0, totalOfRoot = 0;
  for (std::size_t step = 0; step < kSteps; ++step) {
    double others = 0;
    for (std::uint32_t r = 1; r < ranks; ++r) others += board.cpuMs[r][step];
    const double root = board.cpuMs[0][step], each = others / (ranks - 1);
    fmt::print("{:>6} {:<14} {:>12.3f} {:>12.1f} {:>12.1f}\n", ranks, kNames[step], each, root,
               board.wallMs[step]);
    total += each;
    totalOfRoot += root;
  }
  fmt::print("{:>6} {:<14} {:>12.3f} {:>12.1f}   {:.3f} ms a rank with its part of rank 0's\n",
             ranks, "all", total, totalOfRoot, total + totalOfRoot / ranks);
}

int measure(const World& world) {
  const std::uint32_t ranks = world.ranks;
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  Board& board = *new (memory) Board();
  (void)std::fflush(stdout);  // or each rank would write it, too
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (::fork() != 0) continue;
    const Status status = Rank(board, r, world).run();
    if (!status.ok()) fmt::print(stderr, "rank {}: {}\n", r, status.text());
    std::exit(status.ok() ? 0 : 1);
  }
  int failed = 0, status = 0;
  while (::wait(&status) > 0) failed += status != 0;
  if (failed == 0) print(board, ranks);
  ::munmap(memory, sizeof(Board));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  CLI::App app{
      "CPU time of ranks that meet: bootstrap, rounds, control link, a round of questions"};
  std::vector<std::uint32_t> sizes{128, 256, 512, 1024};
  app.add_option("ranks", sizes, "how many")->check(CLI::Range(2u, 4096u));
  std::uint32_t each = weft::kMostRanks;
  bool star = false;
  app.add_option("--each", each, "ranks a host, which have a hub; the control link's are by hosts");
  app.add_flag("--star", star, "no hubs");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:>6} {:<14} {:>12} {:>12} {:>12}\n", "ranks", "", "CPU ms each", "of rank 0",
             "wall ms");
  for (const std::uint32_t ranks : sizes)
    if (weft::measure({ranks, each, !star}) != 0) return 1;
  return 0;
}
