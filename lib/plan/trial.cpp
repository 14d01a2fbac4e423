// SPDX-License-Identifier: Apache-2.0
#include "plan/trial.h"

#include <algorithm>

namespace weft::plan {

// The one in use first.
void Trial::enterAll() {
  for (entered_ = 0; entered_ < forms_; ++entered_)
    order_[entered_] = static_cast<std::uint8_t>((chosen_ + entered_) % forms_);
}

void Trial::enterNear() {
  enterAll();
  const auto isFar = [this](std::uint8_t form) { return ns_[form] > kFar * ns_[chosen_]; };
  const auto near = std::remove_if(order_.begin(), order_.begin() + entered_, isFar);
  entered_ = static_cast<std::uint8_t>(near - order_.begin());
}

void Trial::ran(double enteredNs, double leftNs, std::optional<bool> shared) {
  isMixed_ = isMixed_ || shared.value_or(ofShared_) != ofShared_;
  const std::uint32_t place = run_ / runs_.all, again = run_ % runs_.all;
  if (const std::uint32_t warm = runs_.all - runs_.counted; again >= warm) {
    const std::size_t at = 2 * (place * std::size_t{runs_.counted} + again - warm);
    const double from =
        cores_ == Cores::Shared ? enteredNs : 0;  // no mean of clocks, which are long
    times_[at] = static_cast<std::int64_t>(enteredNs - from);
    times_[at + 1] = static_cast<std::int64_t>(leftNs - from);
  }
  ++run_;
  if (!isDue()) form_ = order_[run_ / runs_.all];
}

// The lower median: any call may meet whatever else the host does, and one that comes after a pause,
// which a trial may last across, finds cold caches, too.
double Trial::nsOf(std::size_t place) const {
  const std::int64_t* const of = &times_[2 * place * runs_.counted];
  std::array<std::int64_t, kRuns.counted> took{};
  for (std::size_t i = 0; i < runs_.counted; ++i) took[i] = of[2 * i + 1] - of[2 * i];
  const auto median = took.begin() + runs_.counted / 2 - 1;
  std::nth_element(took.begin(), median, took.begin() + runs_.counted);
  return static_cast<double>(*median);
}

void Trial::judge() {
  const double before = ns_[chosen_];
  std::uint8_t best = chosen_;
  for (std::size_t place = 0; place < entered_; ++place) {
    const std::uint8_t form = order_[place];
    ns_[form] = nsOf(place);  // the one in use comes first
    if (ns_[form] < ns_[best] && ns_[form] < kClear * ns_[chosen_]) best = form;
  }
  if (isMixed_) best = chosen_;
  const bool hasRisen = before > 0 && kClear * ns_[chosen_] > before;
  isDoubtful_ = best != chosen_ && hasRisen && !isDoubtful_;
  if (!isDoubtful_) chosen_ = best;
  form_ = chosen_;
  run_ = 0;
  isMixed_ = false;
  if (isDoubtful_) {
    quiet_ = kSoon;
    return enterAll();
  }
  quiet_ = interval_;
  interval_ = std::min(4 * interval_, kMostQuiet);
  if (++trials_ < kAllFirst || trials_ % kAllEvery == 0)
    enterAll();
  else
    enterNear();
}

}  // namespace weft::plan
