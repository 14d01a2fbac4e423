// SPDX-License-Identifier: Apache-2.0
// weft-perf: times and checks collectives, in the manner of nccl-tests.
#include <fmt/format.h>
#include <cstdlib>

#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "perf/weft-perf/options.h"
#include "perf/weft-perf/run.h"
#include "perf/weft-perf/team.h"
#include "tools/common/local_ranks.h"

namespace weft::perf {
namespace {

int exitCodeOf(weftResult_t result) {
  switch (result) {
    case weftInvalidArgument:
    case weftInvalidUsage:
      return kExitUsage;
    case weftMismatch:
      return kExitMismatch;
    case weftRemoteError:
    case weftTimeout:
    case weftAborted:
      return kExitPeerLost;
    default:
      return kExitInternal;
  }
}

// Collects how this process's ranks end. The first failure is the cause: it is printed, and the
// others, which follow from it, are not.
class Outcome {
 public:
  void wrong() { settle(kExitWrong, {}); }

  void failed(weftResult_t result, const std::string& text) { settle(exitCodeOf(result), text); }

  int exitCode() const { return exitCode_; }

 private:
  void settle(int code, const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (exitCode_ != 0) return;
    exitCode_ = code;
    if (!text.empty()) fmt::print(stderr, "weft-perf: {}\n", text);
  }

  std::mutex mutex_;
  int exitCode_ = 0;
};

// One rank from its communicator to its end. A rank that fails takes the others along.
void liveAsRank(const Options& options, Communicator comm, Reporter* reporter, Outcome& outcome) {
  std::unique_ptr<Team> team;
  const auto fail = [&](weftResult_t result, const std::string& text) {
    outcome.failed(result, text);
    if (team) team->abort();
    if (reporter != nullptr) reporter->failed(text);
  };
  try {
    team = std::make_unique<Team>(std::move(comm));
    if (!runRank(options, *team, reporter)) outcome.wrong();
  } catch (const Error& error) {
    fail(error.result(), error.what());
  } catch (const std::exception& error) {
    fail(weftInternalError, error.what());
  }
}

int runRanks(const Options& options, int argc, char** argv) {
  Outcome outcome;
  try {
    std::vector<Communicator> comms = joinRanks(options);
    std::unique_ptr<Reporter> reporter;
    if (comms.front().rank() == 0) reporter = std::make_unique<Reporter>(options, argc, argv);
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < comms.size(); ++i) {
      others.emplace_back(liveAsRank, std::cref(options), std::move(comms[i]), nullptr,
                          std::ref(outcome));
    }
    liveAsRank(options, std::move(comms.front()), reporter.get(), outcome);
    for (std::thread& thread : others) thread.join();
  } catch (const Error& error) {
    outcome.failed(error.result(), error.what());
  } catch (const std::exception& error) {
    outcome.failed(weftInternalError, error.what());
  }
  return outcome.exitCode();
}

}  // namespace

int main(int argc, char** argv) {
  std::variant<Options, int> parsed = parseOptions(argc, argv);
  if (const int* exitCode = std::get_if<int>(&parsed)) return *exitCode;
  const Options& options = std::get<Options>(parsed);
  if (!options.topology.empty()) ::setenv("WEFT_TOPO_FILE", options.topology.c_str(), 1);
  if (options.localProcesses > 0) return tools::runLocalRanks(options.localProcesses, argv);
  return runRanks(options, argc, argv);
}

}  // namespace weft::perf

int main(int argc, char** argv) { return weft::perf::main(argc, argv); }
