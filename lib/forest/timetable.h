// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "forest/graph.h"
#include "forest/pack.h"

namespace weft::forest {

// When a tree's parts set out over an edge, and when they have come, from the time at which its round
// begins.
struct Passage {
  double sent = 0, came = 0;
  // Of passages at one time, the one that depends on the other has the larger.
  std::uint32_t number = 0;
};

// A round of all parts, which begins anew each `roundNs`: each link and each side of a port has a time of
// its own for whatever passes it, in every round the same. Where all goes by it, nothing waits for
// anything but its link, and links that are needed all the time are busy all the time.
struct Timetable {
  double roundNs = 0;
  double longestNs = 0;                        // until all parts of a round have come
  std::vector<std::vector<Passage>> passages;  // by tree and edge
};

// A part of each tree is so many bytes long.
Timetable timetableOf(const Graph& graph, const std::vector<Tree>& trees, double partBytes,
                      double roundNs);

}  // namespace weft::forest
