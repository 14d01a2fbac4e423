// SPDX-License-Identifier: Apache-2.0
// How the ranks of a process live and end.
#pragma once

#include <weft/weft.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "perf/weft-perf/reporter.h"
#include "perf/weft-perf/team.h"

namespace weft::perf {

// Collects how this process's ranks end. The first failure is the cause: it is printed, and the
// others, which follow from it, are not.
class Outcome {
 public:
  explicit Outcome(const char* program) : program_(program) {}

  // An exit code of perf/common/exit_code.h, and a line for standard error or nothing.
  void settle(int exitCode, const std::string& text = {});
  int exitCode() const { return exitCode_; }

 private:
  const char* program_;
  std::mutex mutex_;
  int exitCode_ = 0;
};

// Settles `outcome` with what `work` returns, an exit code, or with the error that it throws: then
// the reporter, if there is one by then, is told too. Returns whether `work` returned.
bool attempt(Outcome& outcome, const std::unique_ptr<Reporter>& reporter,
             const std::function<int()>& work);

// Makes a team and runs `work` as one rank of it. A rank that fails takes the others along. Returns
// when rank 0 has said what it has to say, whatever this rank's process ends with.
void liveAsRank(Outcome& outcome, const std::unique_ptr<Reporter>& reporter,
                const std::function<std::unique_ptr<Team>()>& join,
                const std::function<int(Team&)>& work);

}  // namespace weft::perf
