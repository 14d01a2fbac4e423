// SPDX-License-Identifier: Apache-2.0
// The history file: what earlier healthy runs of the same shape measured, so that a whole job that
// has become slow, where no rank differs from another, is noticed.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/health/evidence.h"

namespace weft::health {

class Baseline {
 public:
  // A file that is not there, or a device, is an empty history. Throws std::runtime_error, with the fix, for one
  // that is something else.
  static Baseline read(const std::string& path);

  // Warnings about figures that are worse than in all earlier runs of as many ranks and hosts, and
  // 1.5 times worse than their median; none before there have been three.
  std::vector<checks::Finding> compare(const Evidence& evidence) const;
  void add(const Evidence& evidence);
  // A reader sees the old or the new history. Throws tools::CannotWrite.
  void write(const std::string& path) const;

 private:
  nlohmann::json runs_ = nlohmann::json::array();
};

// The figures that are compared: seconds for a gigabyte, or microseconds, so that more is worse.
std::map<std::string, double> figuresOf(const Evidence& evidence);

}  // namespace weft::health
