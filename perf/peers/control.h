// SPDX-License-Identifier: Apache-2.0
// The harness's own meeting place: one shared page between the driver and the ranks of every
// library under test. No library takes part in starting or timing its own repeats.
//
// The driver sends one job at a time to one group (one library in one configuration). All other
// groups sleep in a futex, so they cost nothing; the driver sleeps too until the group is done.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "workload.h"

namespace weft::peers {

inline constexpr int kMaxRanks = 16;
inline constexpr int kMaxGroups = 24;
inline constexpr int kMostCores = 1024;

enum class Mode : std::uint32_t { Steady, Fresh, Quit };

struct Job {
  Mode mode = Mode::Steady;
  Collective collective = Collective::AllReduce;
  std::uint64_t bytes = 0;
  std::uint32_t repeats = 0;   // at most so many
  std::uint32_t budgetMs = 0;  // no further repeat after so long
};

struct Timing {  // microseconds a call
  double median = 0;
  double min = 0;
  double max = 0;
  std::uint32_t repeats = 0;
  std::uint32_t calls = 0;  // in one repeat
};

struct alignas(64) RankState {
  std::atomic<std::uint32_t> arrived{0};  // barriers that this rank has entered
  std::int64_t readyNs = 0;               // what the repeat is to wait for, on account of this rank
  std::int64_t startNs = 0;               // of the repeat; CLOCK_MONOTONIC, shared by all processes
  std::int64_t endNs = 0;
  pid_t pid = 0;
  std::atomic<bool> hasError{false};
  std::array<char, 256> error{};
};

struct Group {
  alignas(64) std::atomic<std::uint32_t> command{0};  // bumped for each job; ranks sleep on it
  alignas(64) std::atomic<std::uint32_t> finished{
      0};                                     // ranks that are done; the driver sleeps on it
  alignas(64) std::atomic<bool> more{false};  // rank 0's word: another repeat
  Job job;
  Timing timing;
  std::array<RankState, kMaxRanks> states;
};

struct Page {
  pid_t driver = 0;
  int ranks = 0;
  int coresPerRank = 1;                 // of each rank's threads
  std::size_t coreCount = 0;            // of this machine, that we may use
  std::array<int, kMostCores> cores{};  // these; rank r has those from r x coresPerRank on
  std::array<Group, kMaxGroups> groups;
};

// Is there a core for each thread of each rank?
bool haveOwnCores(const Page& page);

// Opens the page at `path` (made by PageOwner). Throws std::system_error.
Page& openPage(const std::string& path);

// Creates the page as a memfd. Ranks reach it through /proc, so it has no name to clean up.
class PageOwner {
 public:
  PageOwner(int ranks, int coresPerRank);
  ~PageOwner();
  PageOwner(const PageOwner&) = delete;
  PageOwner& operator=(const PageOwner&) = delete;

  Page& page() { return *page_; }
  std::string path() const;

 private:
  int fd_;
  Page* page_;
};

// Futexes between processes. sleepWhile returns when *word may differ from `seen`, or after `ms`.
void sleepWhile(const std::atomic<std::uint32_t>& word, std::uint32_t seen, int ms);
void wakeAll(const std::atomic<std::uint32_t>& word);

std::int64_t nowNs();

}  // namespace weft::peers
