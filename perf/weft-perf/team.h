// SPDX-License-Identifier: Apache-2.0
// The ranks of a run, and how they tell each other things that are not measured.
#pragma once

#include <vector>
#include <weft/weft.hpp>

#include "perf/weft-perf/options.h"

namespace weft::perf {

// Joins this process's ranks: from the launcher if there is one, times those of -t and -g. Returned
// in rank order; each is to be used by a thread of its own.
std::vector<Communicator> joinRanks(const Options& options);

// One rank's view: `world` are all ranks, `group` those that communicate with each other in the
// test, which are all of them unless NCCL_TESTS_SPLIT says otherwise.
class Team {
 public:
  explicit Team(Communicator world);
  // With the groups of the ranks of equal color, in which they are in the order of the keys.
  Team(Communicator world, int color, int key);

  int rank() const { return world_.rank(); }
  int color() const { return color_; }
  Communicator& world() { return world_; }
  Communicator& group() { return split_ ? split_ : world_; }
  void abort() noexcept;

  // What every rank of the world says, in rank order. Collective; T is a plain struct.
  template <class T>
  std::vector<T> exchange(const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(world_.size()));
    gatherBytes(&mine, all.data(), sizeof(T));
    return all;
  }
  // The same of as many elements on each.
  template <class T>
  std::vector<T> exchange(const std::vector<T>& mine) {
    std::vector<T> all(mine.size() * static_cast<std::size_t>(world_.size()));
    gatherBytes(mine.data(), all.data(), mine.size() * sizeof(T));
    return all;
  }

 private:
  void gatherBytes(const void* mine, void* all, std::size_t bytes);

  Communicator world_;
  Communicator split_;
  int color_ = 0;
};

// The group of a rank: text is "MOD 2", "AND 0x3", "DIV 4" or "OR 0b10", with &, |, % and / as
// other spellings. Throws std::invalid_argument.
int splitColor(const std::string& text, int rank);

}  // namespace weft::perf
