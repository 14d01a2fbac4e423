// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/clock.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/checks/kinds.h"
#include "tools/checks/system_files.h"

namespace weft::checks {
namespace {

constexpr double kMostStep = 0.02;      // s; what is slewed instead takes longer
constexpr double kMostDrift = 2000e-6;  // NTP slews by 500 ppm at most
constexpr double kMostCost = 0.5e-6;    // s; tens of ns without a system call

double now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

ClockReading readOnce() {
  ClockReading reading;
  reading.steady = now(CLOCK_MONOTONIC);
  reading.real = now(CLOCK_REALTIME);
  reading.raw = now(CLOCK_MONOTONIC_RAW);
  reading.uncertainty = now(CLOCK_MONOTONIC) - reading.steady;
  return reading;
}

}  // namespace

// The tightest of some: a reading may be interrupted.
ClockReading readClocks() {
  ClockReading best = readOnce();
  for (int i = 0; i < 50; ++i) {
    const ClockReading next = readOnce();
    if (next.uncertainty < best.uncertainty) best = next;
  }
  return best;
}

void compareClocks(const ClockReading& before, const ClockReading& after, HostReport& report) {
  const double passed = after.steady - before.steady;
  if (passed <= 0) return;
  const double doubt = before.uncertainty + after.uncertainty;
  const double step = (after.real - before.real) - passed;
  const double drift = passed / (after.raw - before.raw) - 1;
  report.add("clock.step", step * 1e3, "ms");
  report.add("clock.drift", drift * 1e6, "ppm");
  if (std::abs(step) > kMostStep + doubt)
    report.findings.push_back(makeFinding(
        "clock-unsteady", report.culprit(),
        fmt::format("the time of day jumped by {:.3f} s within {:.1f} s", step, passed), 0.5));
  else if (std::abs(drift) > kMostDrift + doubt / passed)
    report.findings.push_back(makeFinding(
        "clock-unsteady", report.culprit(),
        fmt::format("the clock runs {:.0f} ppm off the processor's counter", drift * 1e6), 0.3));
}

double clockCost() {
  constexpr int kCalls = 1000;
  double best = std::numeric_limits<double>::max();
  for (int batch = 0; batch < 20; ++batch) {
    const double start = now(CLOCK_MONOTONIC);
    for (int i = 0; i < kCalls; ++i) now(CLOCK_MONOTONIC);
    best = std::min(best, (now(CLOCK_MONOTONIC) - start) / kCalls);
  }
  return best;
}

void checkClockCost(double seconds, const std::string& root, HostReport& report) {
  const std::string source =
      readLine(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  report.add("clock.source", source.empty() ? "not known" : source);
  report.add("clock.cost", seconds * 1e9, "ns");
  if (seconds <= kMostCost) return;
  report.findings.push_back(
      makeFinding("clock-slow", report.culprit(),
                  fmt::format("reading the clock takes {:.0f} ns (clock source {})", seconds * 1e9,
                              source.empty() ? "not known" : source),
                  0.3));
}

void stampClock(HostReport& report) { report.add("clock.stamp", now(CLOCK_REALTIME), "s"); }

}  // namespace weft::checks
