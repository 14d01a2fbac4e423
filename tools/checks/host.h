// SPDX-License-Identifier: Apache-2.0
// The checks of one host: what it is and what is wrong with it, without a job.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/checks/finding.h"

namespace weft::checks {

// A measured or read value: a number with its unit, or text.
struct Fact {
  std::string name;  // "memory.bandwidth", "nic.eth0.mtu"
  double value = 0;
  std::string text;  // if it is no number
  std::string unit;  // "GB/s", "bytes"
};

struct HostReport {
  std::string host;
  std::vector<Fact> facts;
  std::vector<Finding> findings;

  std::string culprit() const { return "host " + host; }
  void add(std::string name, double value, std::string unit);
  void add(std::string name, std::string text);
  const Fact* find(std::string_view name) const;  // nullptr if it is not known
};

inline constexpr double kHostSeconds = 6;
inline constexpr double kQuickHostSeconds = 1.5;

struct HostOptions {
  double seconds = kHostSeconds;  // what the checks that measure share between them
  std::string root;               // stands before /proc, /sys and /dev, for tests
};

// What is being done, and which part of all is done, 0 to 1. From the caller's thread.
using Progress = std::function<void(double done, std::string_view what)>;

// Runs all checks. One process of each host calls it while the others of the host sleep: it keeps
// all usable cores busy. It may be killed at any time and leaves nothing behind.
HostReport checkHost(const HostOptions& options, const Progress& progress = {});

// Records what this host's clock says. Hosts that do it at the same moment (after a barrier) can be
// compared by compareHosts.
void stampClock(HostReport& report);

}  // namespace weft::checks
