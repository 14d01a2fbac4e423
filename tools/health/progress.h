// SPDX-License-Identifier: Apache-2.0
// A bar on stderr while the tests run, if that is a terminal.
#pragma once

#include <string_view>

namespace weft::health {

class Progress {
 public:
  explicit Progress(bool wanted);  // drawn only if stderr is a terminal as well
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  // A phase takes this part of the whole, 0 to 1.
  void phase(std::string_view name, double from, double to);
  void at(double partOfPhase);
  void clear();

 private:
  bool on_;
  std::string_view name_;
  double from_ = 0, to_ = 0;
  int drawn_ = -1;
};

}  // namespace weft::health
