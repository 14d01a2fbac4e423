// SPDX-License-Identifier: Apache-2.0
// From measurements of all links to who is slow: a host, a rank, or one link. Pure.
//
// Links are compared with others of their kind alone (inside a host or between hosts, and by what
// carries them). A host or a rank is slow if even its *best* link is far worse than the median of
// the others' best; that way a bad link does not accuse those at its ends, and a bad host does not
// accuse those it talks to. What is explained by a culprit is set aside, and the rest is looked at
// again: hosts first, then ranks, then links. Medians are not moved by less than half of bad ones.
#pragma once

#include <string>
#include <vector>

#include "tools/health/crew.h"
#include "tools/health/matrix.h"

namespace weft::health {

enum class Scope { Host, Rank, Link };
enum class Measure { Bandwidth, Latency };

// What carries data between two ranks, in a few words; by from * ranks + to.
using Ways = std::vector<std::string>;

struct Suspect {
  Scope scope = Scope::Link;
  Measure measure = Measure::Bandwidth;
  int culprit = 0;  // the number of a host, or a rank; of a link the sender
  int from = 0;     // the link that shows it: the best one of a host or rank
  int to = 0;
  int usualFrom = 0;  // a link of the same kind that is as usual, to compare with
  int usualTo = 0;
  bool memory = false;  // the link is memory that ranks share, not a wire
  double value = 0;     // GB/s or microseconds of the first link
  double usual = 0;     // and of the median

  double ratio() const {  // how many times worse
    return measure == Measure::Latency ? value / usual : usual / value;
  }
};

// How much worse than usual is too much: more than kernels, schedulers and neighbours explain.
struct Tolerance {
  double slower = 2;        // times less bandwidth of a wire
  double slowerMemory = 8;  // or through memory: pages, caches and the scheduler make four
  double later = 3;         // times the latency, and so much more:
  double microseconds = 100;
  int trials = 5;  // and so often at least it is looked at again

  static Tolerance onBusyHosts() { return {2, 16, 3, 1000, 8}; }
  bool exceededBy(const Suspect& suspect, double leniency = 1) const;
};

std::vector<Suspect> findSuspects(const Matrix& matrix, const std::vector<Member>& members,
                                  const Ways& ways, const Tolerance& tolerance = {});

}  // namespace weft::health
