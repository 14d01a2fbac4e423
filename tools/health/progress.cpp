// SPDX-License-Identifier: Apache-2.0
#include "tools/health/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace weft::health {
namespace {

constexpr int kWidth = 30;

}  // namespace

Progress::Progress(bool wanted) : on_(wanted && ::isatty(STDERR_FILENO) == 1) {}

void Progress::phase(std::string_view name, double from, double to) {
  name_ = name;
  from_ = from;
  to_ = to;
  drawn_ = -1;
  at(0);
}

void Progress::at(double partOfPhase) {
  const double done = from_ + (to_ - from_) * std::clamp(partOfPhase, 0.0, 1.0);
  const int percent = static_cast<int>(done * 100);
  if (!on_ || percent == drawn_) return;
  drawn_ = percent;
  const int filled = percent * kWidth / 100;
  fmt::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {:3} % {}", "", filled, "", kWidth - filled, percent,
             name_);
  std::fflush(stderr);
}

void Progress::clear() {
  if (on_ && drawn_ >= 0) fmt::print(stderr, "\r\033[K");
  drawn_ = -1;
}

}  // namespace weft::health
