// SPDX-License-Identifier: Apache-2.0
// Runs seeds of a simulation: `simulation engine FROM TO` runs FROM to TO - 1, `simulation engine
// SEED` one and tells its story. The first that breaks an invariant ends the run with the command
// that repeats it.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "net/service_threads.h"
#include "tests/simulation/engine_simulation.h"
#include "tests/simulation/remote_simulation.h"

namespace {

using namespace weft::simulation;

using Simulate = Outcome (*)(std::uint64_t seed);

// Every so often twice: what does not follow from the seed alone cannot be repeated.
constexpr std::uint64_t kTwice = 50;

Outcome run(Simulate simulate, std::uint64_t seed) {
  Outcome outcome = simulate(seed);
  if (outcome.fault.empty() && seed % kTwice == 0 && simulate(seed).trace != outcome.trace)
    outcome.fault = "a second run of the same seed went another way";
  return outcome;
}

int runAll(Simulate simulate, std::uint64_t from, std::uint64_t to, const char* repeat) {
  std::uint64_t harmed = 0, failed = 0;
  for (std::uint64_t seed = from; seed < to; ++seed) {
    const Outcome outcome = run(simulate, seed);
    if (!outcome.fault.empty() || to == from + 1) std::printf("%s\n", outcome.story.c_str());
    if (!outcome.fault.empty()) {
      std::printf("seed %" PRIu64 ": %s\nto repeat: %s %" PRIu64 "\n", seed, outcome.fault.c_str(),
                  repeat, seed);
      return 1;
    }
    harmed += outcome.harmed;
    failed += outcome.failed != 0;
  }
  std::printf("%" PRIu64 " seeds, %" PRIu64 " with harm, %" PRIu64
              " with failed calls: all invariants held\n",
              to - from, harmed, failed);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (argc < 3 || argc > 4 || (kind != "engine" && kind != "remote")) {
    std::printf("usage: %s engine|remote SEED | engine|remote FROM TO\n", argv[0]);
    return 2;
  }
  ::setenv("WEFT_DEBUG", "error", 0);  // who is late is no news here
  const std::uint64_t from = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t to = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : from + 1;
  (void)weft::net::ServiceThreads::get();  // before there are fibers
  return runAll(kind == "engine" ? simulateEngine : simulateRemote, from, to,
                (std::string(argv[0]) + " " + kind).c_str());
}
