// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "plan/asking.h"
#include "reduce/reduce.h"

namespace weft::plan {

// Which of a few forms of one kind of call is the quickest here and now. The model's choice comes
// first; then some calls run each form in turn, are timed, and the ranks tell each other, so that all
// hold the same numbers and judge alike. A call takes from when the last rank has entered until the
// last one leaves, so a rank that comes late costs no form anything: all clocks are one host's. Where
// ranks share cores, some have done their part before the last one can enter, so there a call takes
// what it takes its ranks in the mean, with what the application of others does meanwhile, which is
// the same in all forms. Again after a while, and ever more seldom, since hypervisors move cores
// about, and which form is the quicker one follows: where the one in use takes longer than it did, by two
// trials, the second soon, as it may have met what others will meet next. One thread at a time.
class Trial {
 public:
  enum class Cores : std::uint8_t { OfTheirOwn, Shared };
  // Calls of each form, of which the last ones count.
  struct Runs {
    std::uint8_t all, counted;
  };
  // The first ones bring its memory into the caches, where the form before has its own, or into being:
  // each lane of it.
  static constexpr Runs kRuns{8, 4};
  // One call that lasts uses all lanes, and what it meets by chance is little of it.
  static constexpr Runs kLongRuns{3, 2};
  static constexpr double kLongNs = 1e6;
  // Of calls that the model thinks take so long.
  static constexpr Runs runsOf(double ns) { return ns < kLongNs ? kRuns : kLongRuns; }

  // Of so many forms, up to kMost; the model has chosen the first. `ofShared`: of calls whose buffers
  // are all shared.
  explicit Trial(std::size_t forms, Cores cores = Cores::OfTheirOwn, bool ofShared = false,
                 Runs runs = kRuns)
      : forms_(static_cast<std::uint8_t>(forms)), cores_(cores), ofShared_(ofShared), runs_(runs) {
    enterAll();
  }

  // Which the next call runs.
  std::uint8_t form() const { return form_; }
  // Is this call, the next one, to be timed?
  bool isTimed() {
    if (quiet_ == 0) return forms_ > 1;
    --quiet_;
    return false;
  }
  // Is it one of the few between trials that ask whether buffers are shared, whatever the form?
  bool isProbe() const { return quiet_ % Asking::kSeldom == 1; }
  // It was timed. `shared`: of one that asked, whether all buffers are, which all ranks know then. Where
  // they are not of this trial's calls, nothing is judged by what calls took.
  void ran(double enteredNs, double leftNs, std::optional<bool> shared);
  // Have all forms run, so that the ranks must tell each other?
  bool isDue() const { return run_ == entered_ * runs_.all; }
  // This rank's, of which each shall become what `togetherBy` says of all ranks'.
  std::span<std::int64_t> times() {
    return {times_.data(), 2 * entered_ * std::size_t{runs_.counted}};
  }
  reduce::RedOp togetherBy() const {
    return cores_ == Cores::Shared ? reduce::RedOp::Avg : reduce::RedOp::Max;
  }
  // They have.
  void judge();

  std::uint8_t forms() const { return forms_; }
  std::uint8_t chosen() const { return chosen_; }
  // What a call of a form took when it was tried last; 0: it was not.
  double ns(std::uint8_t form) const { return ns_[form]; }

  static constexpr std::uint8_t kMost = 6;
  // Calls from one trial to the next: four times as many each time.
  static constexpr std::uint32_t kQuiet = 128, kMostQuiet = 2048;
  // Where one trial has put the form in use in doubt.
  static constexpr std::uint32_t kSoon = 16;
  // What another form must be below, of the time of the one that is in use: calls differ by as much.
  static constexpr double kClear = 0.9;
  // What took more than kFar times as long as the one in use is tried again in the first trials, as any one
  // may have met whatever, and then in one of kAllEvery.
  static constexpr double kFar = 1.5;
  static constexpr std::uint32_t kAllFirst = 3, kAllEvery = 4;

 private:
  void enterAll();
  void enterNear();
  double nsOf(std::size_t place) const;

  const std::uint8_t forms_;
  const Cores cores_;
  const bool ofShared_;
  const Runs runs_;
  std::uint8_t form_ = 0, chosen_ = 0;
  std::array<std::uint8_t, kMost> order_{};  // the forms of this trial
  std::uint8_t entered_ = 0, run_ = 0;       // how many of them, and how many calls it has had
  bool isMixed_ = false;                     // some of them were on other buffers
  bool isDoubtful_ = false;  // the form in use took longer in the last trial than before
  std::uint32_t quiet_ = 0, interval_ = kQuiet, trials_ = 0;
  std::array<double, kMost> ns_{};
  // By place in the order and counted run: when it was entered, when it was left.
  std::array<std::int64_t, 2 * kMost * kRuns.counted> times_{};
};

}  // namespace weft::plan
