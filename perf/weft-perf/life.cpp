// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/life.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "perf/common/exit_code.h"
#include "perf/common/report_file.h"

namespace weft::perf {
namespace {

constexpr std::chrono::milliseconds kTimeToSpeak{500};

// A launcher that sees a rank end with an error ends the others: not before rank 0 has spoken.
void waitForTheReport(Team& team, bool inStep) {
  std::fflush(stdout);
  if (!inStep) {
    if (team.rank() != 0) std::this_thread::sleep_for(kTimeToSpeak);
    return;
  }
  try {
    team.exchange(team.rank());
  } catch (const Error&) {  // a rank died after all; what was found stands
  }
}

}  // namespace

void Outcome::settle(int exitCode, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (exitCode == 0 || exitCode_ != 0) return;
  exitCode_ = exitCode;
  if (!text.empty()) fmt::print(stderr, "{}: {}\n", program_, text);
}

bool attempt(Outcome& outcome, const std::unique_ptr<Reporter>& reporter,
             const std::function<int()>& work) {
  const auto fail = [&](int exitCode, const char* text, const ErrorInfo& error) {
    if (reporter) reporter->failed(text, error);
    outcome.settle(exitCode, text);
    return false;
  };
  try {
    outcome.settle(work());
    return true;
  } catch (const Error& error) {
    return fail(tools::exitCodeOf(error), error.what(), error.info());
  } catch (const tools::CannotWrite& error) {
    outcome.settle(tools::kExitCannotWrite, error.what());
  } catch (const std::exception& error) {
    return fail(tools::kExitInternal, error.what(), {.message = error.what()});
  }
  return false;
}

void liveAsRank(Outcome& outcome, const std::unique_ptr<Reporter>& reporter,
                const std::function<std::unique_ptr<Team>()>& join,
                const std::function<int(Team&)>& work) {
  std::unique_ptr<Team> team;
  const bool ended = attempt(outcome, reporter, [&]() {
    team = join();
    return work(*team);
  });
  if (!team) return;
  if (!ended) team->abort();
  waitForTheReport(*team, ended);
}

}  // namespace weft::perf
