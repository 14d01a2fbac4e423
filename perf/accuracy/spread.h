// SPDX-License-Identifier: Apache-2.0
// An interval that knows how wrong the model is: predictions and measurements of other machines say
// how far apart they are, and 90 % of what was measured there lies between the 5th and the 95th
// percentile of their ratio. (Split conformal prediction; Lei et al., arXiv 1604.04173, with another
// machine in the place of a part of the same sample: so it holds as far as machines are alike.)
#pragma once

#include <array>
#include <vector>

#include "perf/accuracy/verdict.h"

namespace weft::accuracy {

// Measured over predicted.
struct Ratios {
  double low = 1, high = 1;
};

class Spread {
 public:
  explicit Spread(const std::vector<Verdict>& elsewhere);
  // Of points of its kind: short or long messages, steady or fresh, ranks with a core each or
  // without. 1 to 1 where there was none elsewhere.
  const Ratios& of(const Verdict& verdict) const;

 private:
  std::array<Ratios, 8> ratios_;
};

// Gives the choices' intervals at least that spread, and counts anew what lies inside.
void widen(const Spread& spread, std::vector<Verdict>* verdicts);

}  // namespace weft::accuracy
