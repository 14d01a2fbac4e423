// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "tune/machine.h"

namespace weft::tune {

// One measurement of a machine.
struct Round {
  Machine machine;
  bool complete = false;  // the cores could be had on which ranks meet
  bool quiet = false;     // its tries agreed and nothing pushed it off its core
};

// What the rounds so far say together, of this process and of those before it. It is provisional
// until a later, quiet round bears it out. Plain data: rank 0 tells its own to all.
struct Calibration {
  static constexpr std::uint32_t kKept = 4;
  // A machine that is never quiet is not measured for ever, nor one whose calls never take what
  // the model expects.
  static constexpr std::uint32_t kMostRounds = 16, kMostDoubts = 3;
  static constexpr std::int64_t kHoldsSeconds = 3600;

  std::array<Machine, kKept> kept{};  // the latest rounds, the last of them last
  std::uint32_t rounds = 0;
  std::uint32_t doubts = 0;  // how often all was measured anew because calls disagreed
  bool complete = false;
  bool settled = false;
  std::int64_t when = 0;  // of the last round, in seconds since 1970

  std::span<const Machine> measured() const {
    return std::span(kept).first(rounds < kKept ? rounds : kKept);
  }
  Machine machine() const { return typicalOf(measured()); }  // see estimated()
  bool provisional() const { return !settled && rounds < kMostRounds; }
  friend bool operator==(const Calibration&, const Calibration&) = default;
};
static_assert(std::is_trivially_copyable_v<Calibration>);

// The calibration with one round more.
Calibration with(const Calibration& before, const Round& round, std::int64_t now);

// Nothing is known any more but that it was doubted.
Calibration doubted(const Calibration& before);

// What it is worth at a later time. Hypervisors move cores, and other work comes and goes: after an hour it
// is provisional again, and may be doubted again; its rounds hold until later ones have taken their place.
Calibration at(std::int64_t now, const Calibration& before);

// "measured 2026-01-31 12:00 UTC, 3 rounds, settled"
std::string historyOf(const Calibration& calibration);

}  // namespace weft::tune
