// SPDX-License-Identifier: Apache-2.0
// Runs seeds of a simulation: simulation_engine FROM [TO] simulates FROM to TO - 1, or FROM alone,
// and tells its story. The first that breaks an invariant ends the run with the command that
// repeats it.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/simulation/engine_simulation.h"

namespace {

using namespace weft::simulation;

// Every so often twice: what is not determined by the seed cannot be repeated.
constexpr std::uint64_t kTwice = 50;

std::string faultOf(std::uint64_t seed, const Outcome& outcome) {
  if (!outcome.fault.empty() || seed % kTwice != 0) return outcome.fault;
  return simulateEngine(seed).trace == outcome.trace ? "" : "a second run went another way";
}

int complain(const char* program, std::uint64_t seed, const Outcome& outcome, const std::string& fault) {
  std::printf("seed %llu: %s\n%s\nto repeat: %s %llu\n", static_cast<unsigned long long>(seed),
              fault.c_str(), outcome.story.c_str(), program, static_cast<unsigned long long>(seed));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::printf("usage: %s SEED | FROM TO\n", argv[0]);
    return 2;
  }
  const std::uint64_t from = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t to = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : from + 1;
  std::uint64_t harmed = 0, failed = 0;
  for (std::uint64_t seed = from; seed < to; ++seed) {
    const Outcome outcome = simulateEngine(seed);
    const std::string fault = faultOf(seed, outcome);
    if (!fault.empty()) return complain(argv[0], seed, outcome, fault);
    if (argc == 2) std::printf("%s\n", outcome.story.c_str());
    harmed += outcome.harmed;
    failed += outcome.failed != 0;
  }
  std::printf("%llu seeds, %llu with harm, %llu with failed calls: all invariants held\n",
              static_cast<unsigned long long>(to - from), static_cast<unsigned long long>(harmed),
              static_cast<unsigned long long>(failed));
  return 0;
}
