// SPDX-License-Identifier: Apache-2.0
#include "tune/calibration.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

#include "base/text.h"

namespace weft::tune {
namespace {

// Rounds agree if no figure differs by more. Calls that take twice as long contradict them.
constexpr double kSameFigure = 1.8;

std::string timeOf(std::int64_t when) {
  const std::time_t seconds = when;
  std::tm utc{};
  std::array<char, 32> digits{};
  gmtime_r(&seconds, &utc);
  std::strftime(digits.data(), digits.size(), "%Y-%m-%d %H:%M UTC", &utc);
  return digits.data();
}

}  // namespace

Calibration with(const Calibration& before, const Round& round, std::int64_t now) {
  Calibration after = before;
  if (before.rounds >= Calibration::kKept) std::shift_left(after.kept.begin(), after.kept.end(), 1);
  after.kept[std::min(before.rounds, Calibration::kKept - 1)] = round.machine;
  after.rounds = before.rounds + 1;
  after.complete = before.complete || round.complete;
  after.settled = round.quiet && round.complete && before.complete &&
                  differenceOf(before.machine(), round.machine) <= kSameFigure;
  after.when = now;
  return after;
}

Calibration doubted(const Calibration& before) { return {.doubts = before.doubts + 1}; }

// A clock may also have been set back.
Calibration at(std::int64_t now, const Calibration& before) {
  Calibration after = before;
  if (before.rounds == 0 || std::abs(now - before.when) < Calibration::kHoldsSeconds) return after;
  after.rounds = std::min(before.rounds, Calibration::kKept);
  after.doubts = 0;
  after.settled = false;
  return after;
}

std::string historyOf(const Calibration& calibration) {
  const std::uint32_t rounds = calibration.rounds;
  return text("measured ", timeOf(calibration.when), ", ",
              rounds == 1 ? "one round" : text(rounds, " rounds"),
              calibration.settled ? ", settled"
              : calibration.provisional()
                  ? ", provisional: measured again for the next communicator"
                  : ", on a machine that is never quiet",
              calibration.complete ? "" : ", some costs between cores estimated",
              calibration.doubts == 0
                  ? ""
                  : text(", anew because calls did not take what it said (", calibration.doubts,
                         calibration.doubts == 1 ? " time)" : " times)"));
}

}  // namespace weft::tune
