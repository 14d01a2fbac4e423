// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "forest/graph.h"
#include "forest/pack.h"
#include "forest/timetable.h"

namespace weft::forest {

// Trees over which roots send their bytes to all ranks as fast as the links allow, or back over which
// sums come to the roots. Immutable once grown.
struct Forest {
  std::uint32_t ranks = 0;
  std::vector<std::uint32_t> roots;
  std::uint32_t parts = 1;  // of each root's bytes, of equal size
  std::vector<Tree> trees;
  // A segment has so many rounds, each of all parts: more is under way then than segments.
  std::uint32_t rounds = 1;
  Timetable timetable;  // of a round
  double rate = 0;      // bytes a nanosecond of each root, if nothing but links takes time
  double bestRate = 0;  // the most that there can be, whatever is sent how
  // How long the busiest link had better be busy with a segment: then the latencies of a tree are hidden
  // behind what follows, and a rank has time to send all that it forwards.
  double segmentNs = 0;

  // What rounding to whole parts of links costs, of the time.
  double lost() const { return bestRate / rate - 1; }
};

// How many parts there may be, of one root and of all roots together, and what is known of the ranks.
struct Limits {
  std::uint32_t parts = 16, leastParts = 1;
  std::uint32_t allParts = 512;
  std::uint32_t rounds = 8;  // with four segments under way, enough to keep links busy
  double messageNs = 1e3;    // of a rank's time, for each message
};

// Trees from all of `roots`, which have equally many bytes: throughput-optimal but for rounding
// (ForestColl, arXiv 2402.06787: the rate by maximum flows, switches removed by edge splitting, trees
// packed). Of several numbers of parts the one that rounding costs least, the smallest of those within
// half a percent. A pure function, so that all ranks grow the same trees. InvalidArgument if some rank
// is not reached, or nothing but memory joins the ranks.
Status grow(const Graph& graph, const std::vector<std::uint32_t>& roots, const Limits& limits,
            Forest* out);

// The links of a job, and the trees from all ranks, which take longest to grow.
struct Links {
  Graph graph;
  Limits limits;
  Forest fromAll;

  // From all ranks; errors are those of grow().
  static Status make(Graph graph, const Limits& limits, Links* out);
  // These and, of up to 32 ranks, some with more parts, as long as rounding costs little: up to eight. Pairs
  // of ranks share full ports in other ways then, and which way is quicker, only a run tells.
  static Status makeSome(const Graph& graph, const Limits& limits,
                         std::vector<std::shared_ptr<const Links>>* out);
};

// From each rank straight to all others: what is grown where links are not known.
Forest stars(std::uint32_t ranks, const std::vector<std::uint32_t>& roots);

}  // namespace weft::forest
