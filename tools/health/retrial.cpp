// SPDX-License-Identifier: Apache-2.0
#include "tools/health/retrial.h"

#include <algorithm>

namespace weft::health {
namespace {

constexpr double kLeniency = 0.8;
constexpr int kLeastTelling = 4;  // trials

double better(Measure measure, double one, double other) {
  return measure == Measure::Latency ? std::min(one, other) : std::max(one, other);
}

}  // namespace

bool Retrial::isStillSlow(const Tolerance& tolerance, double value, double usual) {
  suspect_.value = better(suspect_.measure, suspect_.value, value);
  suspect_.usual = better(suspect_.measure, suspect_.usual, usual);
  Suspect reference = suspect_;
  reference.value = usual;
  if (!tolerance.exceededBy(reference, kLeniency)) ++telling_;
  return tolerance.exceededBy(suspect_, kLeniency);
}

bool Retrial::isConfirmed() const {
  return suspect_.measure == Measure::Bandwidth || telling_ >= kLeastTelling;
}

}  // namespace weft::health
