// SPDX-License-Identifier: Apache-2.0
// What a cut cable costs an all-reduce: one rank, whom the environment tells who it is, as
// weft-perf's. Rank 0 pulls the cable between the cards 0 and 1, the communicator goes on, and each
// of `ALGORITHM...` ("auto": none is asked for) is timed, in turns.
//
//   rxe_detour_perf BYTES ROUNDS ALGORITHM...
//
// Rank 0 prints a line each: the median, in ms, of the whole mesh and of each algorithm afterwards.
#include <weft/weft.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kCallsOfTheCut = 10;  // some of which may fail
constexpr std::size_t kSmall = 4096;

using Clock = std::chrono::steady_clock;

class Bench {
 public:
  Bench(weftComm_t comm, std::size_t floats) : comm_(comm), in_(floats), out_(floats) {
    weftCommUserRank(comm, &rank_);
    weftCommCount(comm, &ranks_);
  }
  int rank() const { return rank_; }

  // Milliseconds; below 0: it failed or its result is wrong.
  double sum(std::size_t floats, const std::string& algorithm) {
    for (std::size_t k = 0; k < floats; ++k) in_[k] = static_cast<float>(rank_ + valueAt(k));
    weftOpts_t opts = WEFT_OPTS_INITIALIZER;
    if (algorithm != "auto") opts.algorithm = algorithm.c_str();
    weftBarrier(comm_, nullptr, nullptr);
    const Clock::time_point began = Clock::now();
    const weftResult_t result =
        weftAllReduce(in_.data(), out_.data(), floats, weftFloat, weftSum, comm_, nullptr, &opts);
    const std::chrono::duration<double, std::milli> took = Clock::now() - began;
    if (result != weftSuccess) {
      error_ = weftGetLastError(comm_);
      return -1;
    }
    return isRight(floats) ? took.count() : -1;
  }
  const std::string& error() const { return error_; }

 private:
  static int valueAt(std::size_t k) { return static_cast<int>(k % 1021); }
  bool isRight(std::size_t floats) {
    const int ofRanks = ranks_ * (ranks_ - 1) / 2;
    for (std::size_t k = 0; k < floats; ++k)
      if (out_[k] != static_cast<float>(ofRanks + ranks_ * valueAt(k))) {
        error_ = "element " + std::to_string(k) + " of the sum is wrong";
        return false;
      }
    return true;
  }

  weftComm_t comm_;
  int rank_ = 0, ranks_ = 1;
  std::vector<float> in_, out_;
  std::string error_;
};

double medianOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// One warm-up, then as many rounds, each of all algorithms.
bool time(Bench& bench, const std::string& when, std::size_t floats, int rounds,
          const std::vector<std::string>& algorithms) {
  std::vector<std::vector<double>> times(algorithms.size());
  for (int round = 0; round <= rounds; ++round)
    for (std::size_t a = 0; a < algorithms.size(); ++a) {
      const double ms = bench.sum(floats, algorithms[a]);
      if (ms < 0) {
        std::printf("rank %d, %s, %s: %s\n", bench.rank(), when.c_str(), algorithms[a].c_str(),
                    bench.error().c_str());
        return false;
      }
      if (round != 0) times[a].push_back(ms);
    }
  for (std::size_t a = 0; a < algorithms.size() && bench.rank() == 0; ++a)
    std::printf("%s %s %.1f ms\n", when.c_str(), algorithms[a].c_str(), medianOf(times[a]));
  return true;
}

void explain(weftComm_t comm, std::size_t floats, int rank) {
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  std::string lines(4000, '\0');
  weftCommExplain(comm, "all_reduce", floats, weftFloat, weftSum, &opts, lines.data(),
                  lines.size());
  if (rank == 0) std::printf("%s\n", lines.c_str());
}

int run(weftComm_t comm, std::size_t bytes, int rounds, const std::vector<std::string>& ways) {
  const std::size_t floats = bytes / sizeof(float);
  Bench bench(comm, floats);
  if (!time(bench, "whole", floats, rounds, {"auto"})) return 1;
  if (bench.rank() == 0 && std::system("cable 0 1 down") != 0) return 1;
  for (int call = 0; call < kCallsOfTheCut; ++call) bench.sum(kSmall, "auto");
  explain(comm, floats, bench.rank());
  return time(bench, "cut", floats, rounds, ways) ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 64;
  weftComm_t comm = nullptr;
  if (weftCommInitFromEnv(&comm, nullptr) != weftSuccess) {
    std::printf("%s\n", weftGetLastError(nullptr));
    return 1;
  }
  const int code = run(comm, std::strtoull(words[1], nullptr, 10), std::atoi(words[2]),
                       std::vector<std::string>(words + 3, words + count));
  weftCommDestroy(comm);
  return code;
}
