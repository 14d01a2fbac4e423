// SPDX-License-Identifier: Apache-2.0
// A second look at a suspect, trial by trial, beside a link that is as usual. Pure.
//
// A link is as fast as it ever was: what else runs on the host only makes it slower. A late link is
// one that was late beside the usual link: a trial in which that one is late as well tells of the
// scheduler. (Of bandwidth, the best of several trials is enough: a transfer takes many turns.)
#pragma once

#include "tools/health/blame.h"

namespace weft::health {

class Retrial {
 public:
  explicit Retrial(const Suspect& suspect) : suspect_(suspect) {}

  // After a trial that measured `value` and, for the usual link, `usual`; no if it is acquitted.
  bool isStillSlow(const Tolerance& tolerance, double value, double usual);

  bool isConfirmed() const;  // whether enough trials told something

  const Suspect& suspect() const { return suspect_; }  // with the best values so far

 private:
  Suspect suspect_;
  int telling_ = 0;
};

}  // namespace weft::health
