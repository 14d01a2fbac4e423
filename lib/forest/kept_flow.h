// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "forest/max_flow.h"

namespace weft::forest {

using Units = std::int32_t;

// Maximum flows of whole units that are asked for again and again, while few capacities change: the last
// one to a sink is mended. The ways that this takes are few and short, and where there is none one side
// of the cut is small, as a rule; so they are looked for from both ends at once.
class KeptFlow : public MaxFlow<Units> {
 public:
  using MaxFlow::MaxFlow;

  struct Kept {
    std::vector<std::pair<std::uint32_t, Units>> used;  // edges, and what is on them
    Units amount = 0;
  };
  // As run(). What was kept of the last flow from this source to this sink becomes this one.
  Units runFrom(Kept* kept, std::uint32_t source, std::uint32_t sink, Units enough);

  struct Found {
    Units flow = 0, more = 0;
  };
  // The same; and how many more, up to `most`, come if edge `open` carries any number. Those are not kept.
  Found runFrom(Kept* kept, std::uint32_t source, std::uint32_t sink, Units enough,
                std::uint32_t open, Units most);

 private:
  void resume(Kept* kept, std::uint32_t source, std::uint32_t sink, Units enough);
  void mend(std::uint32_t overfull, Kept* kept, std::uint32_t source, std::uint32_t sink);
  Units findFew(std::uint32_t from, std::uint32_t to, Units enough);
  std::uint32_t findJoint(std::uint32_t from, std::uint32_t to);
  Units putOver(std::uint32_t joint, std::uint32_t from, std::uint32_t to, Units most);

  struct Mark {
    std::uint64_t search = 0;
    std::uint32_t edge = kUnreached;  // by which a vertex was reached, or reaches on
  };
  std::uint64_t search_ = 0;
  std::vector<Mark> marks_;  // by vertex
  std::array<std::vector<std::uint32_t>, 2> fronts_;
  std::vector<std::uint32_t> overfull_, path_;
};

}  // namespace weft::forest
