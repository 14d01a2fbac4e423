// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/kernels.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

#include "tools/checks/kinds.h"
#include "tools/checks/reference.h"

namespace weft::checks {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kCounts[] = {1, 37, 1027};  // below, around and beyond a vector; all odd

struct Case {
  weftDataType_t type;
  weftRedOp_t op;
  std::size_t count;
  std::uint64_t seed;
};

struct Failure {
  weftResult_t result = weftSuccess;  // not success: weft could not; else a wrong result
  std::string what, fix;
};

Failure lastFailure(weftResult_t result, weftComm_t comm) {
  const ErrorInfo error = lastErrorInfo(comm);
  return {result, error.message, error.fix};
}

// The communicators of all ranks, made by the thread that destroys them.
class Ranks {
 public:
  explicit Ranks(const char* transport) {
    weftConfig_t config = WEFT_CONFIG_INITIALIZER;
    config.timeoutMs = config.initTimeoutMs = 20000;
    config.transport = transport;
    config.commName = "self-test";
    result_ = weftCommInitAllConfig(comms_.data(), kRanks, nullptr, &config);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    for (weftComm_t comm : comms_) weftCommDestroy(comm);
  }
  weftResult_t result() const { return result_; }
  weftComm_t operator[](int rank) const { return comms_[static_cast<std::size_t>(rank)]; }

 private:
  std::array<weftComm_t, kRanks> comms_{};
  weftResult_t result_;
};

std::optional<Failure> runCase(weftComm_t comm, int rank, const Case& c) {
  const std::vector<std::byte> input = inputOf(c.type, c.op, c.count, c.seed, rank);
  std::vector<std::byte> output(input.size());
  const weftResult_t result =
      weftAllReduce(input.data(), output.data(), c.count, c.type, c.op, comm, nullptr, nullptr);
  if (result != weftSuccess) return lastFailure(result, comm);
  const std::vector<std::byte> expected = resultOf(c.type, c.op, c.count, c.seed, kRanks);
  const auto [wrong, right] = std::ranges::mismatch(output, expected);
  if (wrong == output.end()) return {};
  const auto byte = static_cast<std::size_t>(wrong - output.begin());
  return Failure{weftSuccess,
                 fmt::format("{} of {} {} values: byte {} is {:#04x} instead of {:#04x}",
                             nameOf(c.op), c.count, nameOf(c.type), byte,
                             static_cast<unsigned>(*wrong), static_cast<unsigned>(*right)),
                 {}};
}

// Every rank runs all cases; one that fails leaves the others to their error.
std::optional<Failure> runCases(weftComm_t comm, int rank, std::uint64_t seed) {
  for (int type = 0; type < weftNumTypes; ++type) {
    for (int op = 0; op < weftNumOps; ++op) {
      if (op >= weftBand && type >= weftFloat16) continue;  // of integers only
      for (const std::size_t count : kCounts) {
        const Case c{static_cast<weftDataType_t>(type), static_cast<weftRedOp_t>(op), count,
                     ++seed};
        if (auto failure = runCase(comm, rank, c)) {
          if (failure->result == weftSuccess) weftCommAbort(comm);
          return failure;
        }
      }
    }
  }
  return {};
}

void pinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

// A wrong result goes before the errors that it caused on the other ranks.
std::optional<Failure> runOn(int core, std::uint64_t seed, const char* transport) {
  std::array<std::optional<Failure>, kRanks> failures;
  const auto ranks = [&] {
    pinTo(core);  // before the communicators are made: they look at how many cores they have
    const Ranks comms(transport);
    if (comms.result() != weftSuccess) {
      failures[0] = lastFailure(comms.result(), nullptr);
      return;
    }
    std::vector<std::jthread> threads;  // they inherit the core
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        failures[static_cast<std::size_t>(rank)] = runCases(comms[rank], rank, seed);
      });
    threads.clear();
  };
  std::jthread(ranks).join();
  std::optional<Failure> worst;
  for (const auto& failure : failures) {
    if (failure && (!worst || failure->result == weftSuccess)) worst = failure;
  }
  return worst;
}

void blame(const Failure& failure, int core, HostReport& report) {
  const auto add = [&](KindName kind, std::string what, std::string fix = {}) {
    report.findings.push_back(
        makeFinding(kind, report.culprit(), std::move(what), 1, std::move(fix)));
  };
  if (failure.result == weftSuccess)
    add("kernel-wrong", fmt::format("on core {}: {}", core, failure.what));
  else if (failure.result == weftInvalidArgument || failure.result == weftInvalidUsage)
    add("env-invalid", failure.what, failure.fix);
  else
    add("selftest-failed", failure.what, failure.fix);
}

}  // namespace

void checkKernels(std::vector<int> cores, double seconds, HostReport& report,
                  const char* transport) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  // The first communicators of a process measure the machine, which must not happen on one core.
  if (const Ranks first(transport); first.result() != weftSuccess)
    return blame(lastFailure(first.result(), nullptr), -1, report);
  auto seed = static_cast<std::uint64_t>(start.time_since_epoch().count());
  std::ranges::shuffle(cores, std::mt19937_64(seed));
  std::size_t tested = 0;
  std::optional<Failure> failure;
  while (!failure && tested < cores.size() &&
         (tested == 0 || Clock::now() - start < std::chrono::duration<double>(seconds))) {
    failure = runOn(cores[tested++], seed += 1000, transport);
  }
  if (failure) blame(*failure, cores[tested - 1], report);
  report.add("kernels.cores-tested", static_cast<double>(tested), "");
}

}  // namespace weft::checks
