// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <weft/weft.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// Worlds of ranks for tests: threads of this process, or processes forked from it.
namespace weft::testing {

// One rank's view: its number, the number of ranks, its communicator.
struct Rank {
  int rank = 0;
  int ranks = 1;
  weftComm_t comm = nullptr;
};

enum class Kind { Threads, Processes };
std::string nameOf(Kind kind);

// What a world is made of; `transport` as in weftConfig_t, timeouts in ms.
struct World {
  Kind kind = Kind::Threads;
  int ranks = 2;
  const char* transport = "auto";
  int timeoutMs = 20000;
};
weftConfig_t configOf(const World& world);

// Runs `body` on every rank, with a communicator that is destroyed afterwards. Returns what went
// wrong, a line a rank: a rank fails by returning a non-empty text. In processes, gtest's own
// assertions do not reach the parent, so bodies return texts in either kind.
using Body = std::function<std::string(const Rank&)>;
std::vector<std::string> run(const World& world, const Body& body);

// As run(), and joins the texts that are not empty.
std::string failures(const World& world, const Body& body);
std::string failuresIn(const std::vector<std::string>& texts);

// How a rank that calls something ended: "" for success, else the result's name and the last error.
std::string outcome(weftResult_t result, weftComm_t comm);

// fork() when all other threads are asleep: what one of them holds, the allocator of a sanitizer
// for one, the child would wait for in vain.
pid_t forkAtRest();

// Processes while they run, for tests that do them harm. The destructor kills who is left.
class Processes {
 public:
  // Forks `n` processes that call body(rank) and end; what each returns is its text.
  Processes(int n, const std::function<std::string(int)>& body);
  // With a communicator each, as run() does.
  Processes(const World& world, const Body& body);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  void signal(int rank, int number) const;
  // Waits for all. One that was killed has the text "killed by signal N".
  std::vector<std::string> join();

 private:
  std::vector<pid_t> pids_;
  std::vector<int> reports_;
};

// Processes(n, body).join().
std::vector<std::string> forkRanks(int n, const std::function<std::string(int)>& body);

// Carries rank 0's unique id to the other processes of a world; made before they are forked.
class IdCourier {
 public:
  explicit IdCourier(int ranks);
  // Rank 0 makes the id and sends it, the others wait for it. Returns "" or what went wrong.
  std::string exchange(int rank, weftUniqueId* id) const;

 private:
  struct Pipes;
  std::shared_ptr<Pipes> pipes_;
};

// A zeroed T in memory that processes forked later on share with this one.
void* mapShared(std::size_t bytes);
void unmapShared(void* memory, std::size_t bytes);
template <class T>
class Shared {
 public:
  Shared() : value_(new (mapShared(sizeof(T))) T()) {}
  ~Shared() { unmapShared(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

// Milliseconds on a clock that all processes share.
double nowMs();
void sleepMs(double ms);

// Sanitizers make everything several times slower: tests do less, and wait longer.
#ifdef WEFT_TESTS_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
inline constexpr int kSlowdown = kSanitized ? 4 : 1;

// A second is promised, on a machine that is not busy. However busy it is, what ends sooner than this has not waited for the
// deadline of a World, or of a test that waits longer.
inline constexpr double kPromptMs = 10000;

// Ranks, or others, that have come to a place in a test: in a Shared where they are processes.
class Arrivals {
 public:
  void arrive() { ++arrived_; }
  // Until so many have; false: they do not come.
  bool await(int ranks) const;
  // Until all of so many, of which the caller is one, are there.
  bool meet(int ranks) {
    arrive();
    return await(ranks);
  }

 private:
  std::atomic<int> arrived_{0};
};

}  // namespace weft::testing
