// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "scale.h"

namespace weft::scale {
namespace {

const char* nameOf(Step step) {
  static constexpr const char* kNames[] = {
      "creation",         "all-reduce 8 B", "all-reduce 4 KiB", "all-reduce 1 MiB",
      "all-gather 256 B", "barrier",        "split into 8",     "all-reduce 8 B",
      "split into 8s",    "all-reduce 8 B", "destroy both",     "mismatch",
      "creation again",   "death",          "destroy"};
  return kNames[static_cast<std::size_t>(step)];
}

bool mayBeUndone(const Options& options, int rank, Step step) {
  return rank == options.victim() && step >= Step::Death;
}

// The step before this one failed, or was not come to: the reason is told there.
bool followsFromEarlier(const Board& board, int rank, Step step) {
  if (step == kSteps[0]) return false;
  const Note& before = board.at(rank, static_cast<Step>(static_cast<int>(step) - 1));
  return !before.done || before.wrong[0] != 0;
}

}  // namespace

int printStep(const Options& options, const Board& board, Step step) {
  constexpr int kMostTold = 4;
  double wall = 0, cpu = 0, most = 0;
  std::vector<long> pss;
  int wrong = 0;
  for (int rank = 0; rank < board.ranks(); ++rank) {
    if (mayBeUndone(options, rank, step)) continue;
    const Note& note = board.at(rank, step);
    wall = std::max(wall, note.wallMs);
    cpu += note.cpuMs;
    most = std::max(most, note.cpuMs);
    pss.push_back(note.pssKiB);
    if (note.done && note.wrong[0] == 0) continue;
    if (++wrong <= kMostTold && !followsFromEarlier(board, rank, step))
      std::fprintf(stderr, "weft-scale: %s, rank %d: %s\n", nameOf(step), rank,
                   note.done ? note.wrong : "not come to it");
  }
  std::nth_element(pss.begin(), pss.begin() + static_cast<long>(pss.size() / 2), pss.end());
  std::printf("  %-22s %10.1f %12.3f %12.1f %12ld %14ld%s\n", nameOf(step), wall,
              cpu / static_cast<double>(pss.size()), most, pss[pss.size() / 2],
              board.at(0, step).shmemKiB / board.ranks(), wrong == 0 ? "" : "  WRONG");
  return wrong;
}

}  // namespace weft::scale
