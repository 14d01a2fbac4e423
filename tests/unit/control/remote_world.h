// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "control/control_link.h"
#include "plan/call.h"
#include "plan/plan.h"
#include "tests/unit/still_transport.h"
#include "transports/gather.h"
#include "watch/watch.h"

// Ranks that share no control pages, as threads or as processes, with a Watch each and nothing to
// transport.
namespace weft::test {
using namespace control;

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Sanitizers slow everything down by about ten times.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowdown = 10;
#else
inline constexpr int kSlowdown = 1;
#endif

// A second or so is promised on a machine that is not busy. However busy it is, what comes sooner than this is not the work of
// a deadline, which is 20 s where a test names none.
inline constexpr double kPromptMs = 15000;

inline constexpr std::uint32_t kMostRanks = 64;

inline double nowMs() {
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

// What ranks have in common besides what they are here to test: memory of all processes.
struct Common {
  struct Part {
    std::size_t bytes = 0;
    std::byte data[1024];
  };
  static constexpr std::size_t kRounds = 4;
  Part parts[kRounds][kMostRanks];
  std::atomic<std::uint32_t> arrived[kRounds];
  std::atomic<std::uint32_t> stage[kMostRanks];  // for tests: how far a rank has come
  std::atomic<std::uint32_t> go{0};              // for tests: how far it may go
  double at[kMostRanks];                         // nowMs() when a rank knew the first error
  char said[kMostRanks][1400];                   // and the first error

  static std::shared_ptr<Common> create() {
    void* const memory =
        ::mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return {new (memory) Common(), [](Common* c) { ::munmap(c, sizeof(Common)); }};
  }
};

template <class Condition>
bool eventually(int ms, Condition&& condition) {
  const Clock::time_point until = Clock::now() + milliseconds(ms);
  while (Clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return condition();
}

inline transport::Exchange exchangeOver(std::shared_ptr<Common> common, std::uint32_t rank,
                                        std::uint32_t ranks) {
  return [=, round = std::size_t{0}](std::span<const std::byte> mine,
                                     std::vector<std::vector<std::byte>>* all) mutable -> Status {
    Common::Part& part = common->parts[round][rank];
    part.bytes = mine.size();
    if (!mine.empty()) std::memcpy(part.data, mine.data(), mine.size());
    common->arrived[round].fetch_add(1, std::memory_order_acq_rel);
    if (!eventually(20000, [&] { return common->arrived[round].load() == ranks; }))
      return Status::error(Code::Timeout, "the test's exchange: not all came");
    all->clear();
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const Common::Part& p = common->parts[round][r];
      all->emplace_back(p.data, p.data + p.bytes);
    }
    ++round;
    return {};
  };
}

// Has pages and moves nothing.
class PagesOnly final : public StillTransport {
 public:
  PagesOnly(std::uint32_t rank, std::uint32_t ranks)
      : rank_(rank), memory_(layout_.size() + transport::kLine, std::byte{0}) {
    new (page()) transport::ControlPage();
    for (std::uint32_t r = 0; r < ranks; ++r)
      mirrors_.push_back(r == rank ? nullptr : std::make_unique<transport::ControlPage>());
  }
  transport::WindowView own() const override { return {page(), layout_}; }
  transport::ControlPage* control(std::uint32_t peer) const override {
    return peer == rank_ ? &own().control() : mirrors_[peer].get();
  }
  bool isMirrored(std::uint32_t peer) const override { return peer != rank_; }

 private:
  // Aligned within memory_.
  std::byte* page() const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return const_cast<std::byte*>(memory_.data()) + (transport::roundUp(address, 64) - address);
  }
  const std::uint32_t rank_;
  std::vector<std::byte> memory_{};
  std::vector<std::unique_ptr<transport::ControlPage>> mirrors_;
};

// Kept for good: a Watch reads the plan of its last call.
inline const plan::Plan& planOf(std::uint64_t count) {
  static std::mutex mutex;
  static std::map<std::uint64_t, plan::Plan> plans;
  const std::lock_guard lock(mutex);
  plan::Plan& plan = plans[count];
  plan::Call call;
  call.collective = schedule::Collective::AllReduce;
  call.type = reduce::DType::F32;
  call.count = count;
  if (plan.count == count) return plan;
  plan.count = count;
  plan.what = plan::packWhat(call);
  plan.fingerprint = plan::fingerprintOf(call, 2, "ring");
  return plan;
}

// One rank with its link, if `opened` is OK.
struct Member {
  Member(std::shared_ptr<Common> shared, std::uint32_t myRank, std::uint32_t ranks,
         std::vector<PeerName> theirNames, transport::Exchange exchange = {},
         int deadlineMs = 10000)
      : common(std::move(shared)),
        rank(myRank),
        names(std::move(theirNames)),
        pages(myRank, ranks) {
    transport::TransportSetup setup = setupOf(deadlineMs);
    if (exchange) setup.exchange = std::move(exchange);
    opened = openControlLink(setup, pages, &link);
    begin();
  }
  // Of a branch of `parent`, of those of its ranks, which meet elsewhere.
  Member(const Member& parent, const std::vector<std::uint32_t>& members,
         std::shared_ptr<Common> shared)
      : common(std::move(shared)),
        rank(static_cast<std::uint32_t>(std::ranges::find(members, parent.rank) - members.begin())),
        pages(rank, static_cast<std::uint32_t>(members.size())) {
    for (const std::uint32_t member : members) {
      names.push_back(parent.names[member]);
      names.back().rank = static_cast<int>(names.size() - 1);
    }
    opened = branch(parent, members);
    begin();
  }
  // As lib/comm does it: in its second exchange, the transport's, nobody can say anything.
  Status branch(const Member& parent, const std::vector<std::uint32_t>& members) {
    const transport::TransportSetup setup = setupOf(10000);
    LinkBranch branch(parent.link.get());
    std::vector<LinkOffer> offers;
    WEFT_TRY(transport::gather(setup, {}, branch.offer(), &offers));
    branch.choose(rank, members, offers);
    WEFT_TRY(transport::agree(setup, {}));
    return branch.open(setup, pages, &link);
  }
  ~Member() { destroy(); }
  void destroy() {
    if (watch) watch::leaveForGood(pages, link.get());
    watch.reset();
    link.reset();
  }

  // One call that all ranks would finish at once.
  void call(const plan::Plan& plan) {
    watch->enter(plan, 1000, nullptr);
    watch->leave();
  }
  // A call that never ends but with an error.
  Status stuckIn(const plan::Plan& plan, int timeoutMs, std::uint32_t waitingFor) {
    watch->enter(plan, timeoutMs, nullptr);
    Status status;
    while (status.ok()) {
      status = watch->trouble(waitingFor);
      std::this_thread::sleep_for(milliseconds(1));
    }
    watch->leave();
    note(status);
    return status;
  }
  // Of somebody else.
  void awaitFirstError() {
    EXPECT_TRUE(eventually(20000, [&] { return watch->isBroken(); }));
    note(watch->firstError());
  }
  void note(const Status& status) {
    common->at[rank] = nowMs();
    const std::string& text = status.text();
    std::memcpy(common->said[rank], text.c_str(), text.size() + 1);
  }
  void reached(std::uint32_t stage) { common->stage[rank].store(stage); }
  bool awaitGo(std::uint32_t go) const {
    return eventually(20000, [&] { return common->go.load() >= go; });
  }

  transport::TransportSetup setupOf(int deadlineMs) const {
    transport::TransportSetup setup;
    setup.rank = rank;
    setup.ranks = static_cast<std::uint32_t>(names.size());
    setup.names = names;
    setup.exchange = exchangeOver(common, rank, setup.ranks);
    setup.timeoutMs = deadlineMs;
    return setup;
  }
  void begin() {
    if (opened.ok()) watch = std::make_unique<watch::Watch>(pages, rank, names, "w", link.get());
  }

  std::shared_ptr<Common> common;
  std::uint32_t rank;
  std::vector<PeerName> names;
  PagesOnly pages;
  Status opened;
  std::shared_ptr<watch::RemoteRanks> link;
  std::unique_ptr<watch::Watch> watch;
};

// "h0", "h1", ... with `perHost` ranks each.
inline std::vector<PeerName> namesOf(std::uint32_t ranks, std::uint32_t perHost = 1) {
  std::vector<PeerName> names;
  for (std::uint32_t r = 0; r < ranks; ++r)
    names.push_back({static_cast<int>(r), text("h", r / perHost), 4000 + static_cast<int>(r)});
  return names;
}

using Body = std::function<void(Member&)>;

// Each rank a thread; all have opened their link before any goes on.
inline std::shared_ptr<Common> runThreads(std::uint32_t ranks, const Body& body,
                                          std::uint32_t perHost = 1) {
  const auto common = Common::create();
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Member member(common, r, ranks, namesOf(ranks, perHost));
      ASSERT_TRUE(member.opened.ok()) << member.opened.text();
      body(member);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return common;
}

// Each rank a process, named by its own pid.
class Processes {
 public:
  // `prepare` runs in each process first.
  using Prepare = std::function<void(Common&, std::uint32_t rank)>;
  Processes(std::uint32_t ranks, const Body& body, std::uint32_t ranksPerHost = 1,
            const Prepare& prepare = {})
      : common(Common::create()), perHost(ranksPerHost) {
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const pid_t pid = ::fork();
      if (pid == 0) live(r, ranks, body, prepare);
      pids.push_back(pid);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const pid_t pid : pids) {
      ::kill(pid, SIGCONT);
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  bool allReached(std::uint32_t stage) const {
    return eventually(20000, [&] {
      for (std::size_t r = 0; r < pids.size(); ++r) {
        if (common->stage[r].load() < stage) return false;
      }
      return true;
    });
  }
  bool reached(std::uint32_t rank, std::uint32_t stage, int ms = 20000) const {
    return eventually(ms, [&] { return common->stage[rank].load() >= stage; });
  }
  void harm(std::uint32_t rank, int signal) const { ::kill(pids[rank], signal); }
  std::string said(std::uint32_t rank) const { return common->said[rank]; }

  std::shared_ptr<Common> common;
  const std::uint32_t perHost;
  std::vector<pid_t> pids;

 private:
  [[noreturn]] void live(std::uint32_t rank, std::uint32_t ranks, const Body& body,
                         const Prepare& prepare) {
    if (prepare) prepare(*common, rank);
    std::vector<std::vector<std::byte>> all;
    const pid_t pid = ::getpid();
    transport::Exchange exchange = exchangeOver(common, rank, ranks);
    if (!exchange(std::as_bytes(std::span(&pid, 1)), &all).ok()) ::_exit(3);
    std::vector<PeerName> names = namesOf(ranks, perHost);
    for (std::uint32_t r = 0; r < ranks; ++r)
      std::memcpy(&names[r].pid, all[r].data(), sizeof(pid));
    {
      Member member(common, rank, ranks, names, exchange);
      if (member.opened.ok()) {
        body(member);
      } else {
        member.note(member.opened);
        member.reached(99);
      }
    }
    std::exit(0);
  }
};

inline void expectHas(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << '"' << part << "\" is not in: " << text;
}

// Threads of the control link that are still there.
inline int linkThreads() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    count += std::getline(file, name) && (name.starts_with("weft-ctl-") || name == "weft-control");
  }
  return count;
}

}  // namespace weft::test
