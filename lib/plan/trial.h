// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::plan {

// Which of a few forms of one kind of call is the quickest here and now. The model's choice comes
// first; then some calls run each form in turn, are timed, and the ranks tell each other (by a
// maximum, so that all hold the same numbers and judge alike). A call takes from when the last rank
// has entered until the last one leaves, so a rank that comes late costs no form anything: all
// clocks are one host's. Again after a while, and ever more seldom, since hypervisors move cores
// about, and which form is the quicker one follows. One thread at a time.
class Trial {
 public:
  // Of so many forms, up to kMost; the model has chosen the first.
  explicit Trial(std::size_t forms) : forms_(static_cast<std::uint8_t>(forms)) { enterAll(); }

  // Which the next call runs.
  std::uint8_t form() const { return form_; }
  // Is this call, the next one, to be timed?
  bool isTimed() {
    if (quiet_ == 0) return true;
    --quiet_;
    return false;
  }
  // It was timed. `shared`: it ran on buffers that all are, which all ranks know.
  void ran(double enteredNs, double leftNs, bool shared);
  // Have all forms run, so that the ranks must tell each other?
  bool isDue() const { return run_ == entered_ * kRuns; }
  // This rank's, of which each shall become the maximum of all ranks'.
  std::span<std::int64_t> times() { return {times_.data(), 2 * entered_ * std::size_t{kCounted}}; }
  // They have.
  void judge();

  std::uint8_t forms() const { return forms_; }
  std::uint8_t chosen() const { return chosen_; }
  // What a call of a form took when it was tried last; 0: it was not.
  double ns(std::uint8_t form) const { return ns_[form]; }

  static constexpr std::uint8_t kMost = 6;
  // Of each form: the first ones bring its memory into the caches, where the form before has its own.
  static constexpr std::uint8_t kRuns = 5, kCounted = 3;
  // Calls from one trial to the next: four times as many each time.
  static constexpr std::uint32_t kQuiet = 128, kMostQuiet = 2048;
  // What another form must be below, of the time of the one that is in use: calls differ by as much.
  static constexpr double kClear = 0.9;
  // What took more than kFar times as long as the one in use is tried again in one trial of kAllEvery.
  static constexpr double kFar = 1.5;
  static constexpr std::uint32_t kAllEvery = 4;

 private:
  void enterAll();
  void enterNear();
  double nsOf(std::size_t place) const;

  const std::uint8_t forms_;
  std::uint8_t form_ = 0, chosen_ = 0;
  std::array<std::uint8_t, kMost> order_{};  // the forms of this trial
  std::uint8_t entered_ = 0, run_ = 0;       // how many of them, and how many calls it has had
  bool isMixed_ = false;    // some of its calls were on shared buffers, and some not
  bool wasShared_ = false;  // its last call
  std::uint32_t quiet_ = 0, interval_ = kQuiet, trials_ = 0;
  std::array<double, kMost> ns_{};
  // By place in the order and counted run: when it was entered, when it was left.
  std::array<std::int64_t, 2 * kMost * kCounted> times_{};
};

}  // namespace weft::plan
