// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The parts of weft-scale: processes, the board on which ranks write, and the steps.
namespace weft::scale {

struct Options {
  int hosts = 1;
  int each = 8;
  std::string net = "weft";
  std::string transport = "auto";
  int timeoutMs = 300000;

  int ranks() const { return hosts * each; }
  int odd() const { return ranks() / 3; }         // who calls something else
  int victim() const { return ranks() / 2 + 1; }  // who is killed
};

// What every rank does, one after another. A step is over when all ranks have come to its end.
enum class Step : std::uint8_t {
  Create,
  Sum8,
  Sum4K,
  Sum1M,
  Gather,
  Barrier,
  SplitLarge,  // 8 communicators
  SumLarge,    // 8 bytes, in each
  SplitSmall,  // of 8 ranks
  SumSmall,
  DestroySplits,
  Mismatch,
  CreateAgain,
  Death,
  Destroy,
};
inline constexpr Step kSteps[] = {
    Step::Create,        Step::Sum8,       Step::Sum4K,       Step::Sum1M,      Step::Gather,
    Step::Barrier,       Step::SplitLarge, Step::SumLarge,    Step::SplitSmall, Step::SumSmall,
    Step::DestroySplits, Step::Mismatch,   Step::CreateAgain, Step::Death,      Step::Destroy};

// How one rank fared in one step.
struct Note {
  std::atomic<bool> done{false};
  double wallMs = 0, cpuMs = 0;
  long pssKiB = 0;       // of this process
  long shmemKiB = 0;     // of the machine, as rank 0 finds it: also what nobody has mapped
  char wrong[400] = "";  // what was not as it should be
};

// Memory that all ranks share: a note for each rank and step.
class Board {
 public:
  explicit Board(int ranks);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  Note& at(int rank, Step step) const;
  int ranks() const { return ranks_; }

 private:
  std::size_t bytes() const;
  const int ranks_;
  Note* const notes_;
};

// Carries unique ids from rank 0 to all others.
class IdPipe {
 public:
  IdPipe();
  ~IdPipe();
  IdPipe(const IdPipe&) = delete;
  IdPipe& operator=(const IdPipe&) = delete;
  void give(const void* id, std::size_t bytes, int times) const;
  bool take(void* id, std::size_t bytes) const;

 private:
  int ends_[2] = {-1, -1};
};

// Starts the ranks, each on its host; they end when this process does.
std::vector<pid_t> forkRanks(const Options&, const Board&, const IdPipe&);
// How many did not end with 0.
int awaitAll(const std::vector<pid_t>& ranks);

// All steps of one rank.
int runRank(const Options&, const Board&, const IdPipe&, int rank);

// A line of the table; how many ranks were wrong, told on stderr.
int printStep(const Options&, const Board&, Step);

}  // namespace weft::scale
