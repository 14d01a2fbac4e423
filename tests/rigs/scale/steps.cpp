// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/weft.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <utility>

#include "scale.h"

namespace weft::scale {
namespace {

double cpuMs() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(use.ru_utime) + ms(use.ru_stime);
}

long kibIn(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (long value = 0; word == name && file >> value) return value;
  return -1;
}

// This process's share of the memory that it has: what several map counts for each in part.
long pssKiB() { return kibIn("/proc/self/smaps_rollup", "Pss:"); }
long shmemKiB() { return kibIn("/proc/meminfo", "Shmem:"); }

std::string outcome(weftResult_t result, weftComm_t comm) {
  if (result == weftSuccess) return "";
  return std::string(weftGetErrorString(result)) + ": " + weftGetLastError(comm);
}

// One rank and what it has.
class Rank {
 public:
  Rank(const Options& options, const Board& board, const IdPipe& courier, int rank)
      : options_(options), board_(board), courier_(courier), rank_(rank) {}

  int run();

 private:
  using Body = std::function<std::string()>;
  bool step(Step step, const Body& body);
  std::string create();
  std::string sum(weftComm_t comm, std::size_t bytes) const;
  std::string gather() const;
  std::string split(int color, weftComm_t* comm) const;
  std::string namesCulprit(weftResult_t result, int culprit) const;
  void awaitAll(Step step) const;
  std::string mismatch();
  std::string death() const;
  std::string destroy(weftComm_t* comm) const;

  const Options& options_;
  const Board& board_;
  const IdPipe& courier_;
  const int rank_;
  long pssBefore_ = 0, shmemBefore_ = 0;
  weftComm_t comm_ = nullptr, large_ = nullptr, small_ = nullptr;
};

bool Rank::step(Step step, const Body& body) {
  Note& note = board_.at(rank_, step);
  const double cpu = cpuMs();
  const auto began = std::chrono::steady_clock::now();
  const std::string wrong = body();
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - began;
  note.wallMs = wall.count();
  note.cpuMs = cpuMs() - cpu;
  note.pssKiB = pssKiB() - pssBefore_;
  if (rank_ == 0) note.shmemKiB = shmemKiB() - shmemBefore_;
  std::snprintf(note.wrong, sizeof(note.wrong), "%s", wrong.c_str());
  note.done = true;
  return wrong.empty();
}

std::string Rank::create() {
  weftUniqueId id;
  if (rank_ == 0) {
    if (const weftResult_t made = weftGetUniqueId(&id); made != weftSuccess)
      return outcome(made, nullptr);
    courier_.give(&id, sizeof(id), options_.ranks() - 1);
  } else if (!courier_.take(&id, sizeof(id))) {
    return "no id came";
  }
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.timeoutMs = config.initTimeoutMs = options_.timeoutMs;
  config.transport = options_.transport.c_str();
  return outcome(weftCommInitRankConfig(&comm_, options_.ranks(), id, rank_, &config), nullptr);
}

// Whole numbers, so the sum is exact.
std::string Rank::sum(weftComm_t comm, std::size_t bytes) const {
  int ranks = 0, me = 0;
  weftCommCount(comm, &ranks);
  weftCommUserRank(comm, &me);
  const std::vector<float> in(bytes / sizeof(float), static_cast<float>(me + 1));
  std::vector<float> out(in.size());
  const weftResult_t result =
      weftAllReduce(in.data(), out.data(), in.size(), weftFloat32, weftSum, comm, nullptr, nullptr);
  if (result != weftSuccess) return outcome(result, comm);
  const float expected = static_cast<float>(ranks) * static_cast<float>(ranks + 1) / 2;
  for (const float value : out)
    if (value != expected)
      return "a sum is " + std::to_string(value) + ", not " + std::to_string(expected);
  return "";
}

std::string Rank::gather() const {
  const std::vector<int> in(64, rank_);
  std::vector<int> out(in.size() * static_cast<std::size_t>(options_.ranks()));
  const weftResult_t result =
      weftAllGather(in.data(), out.data(), in.size(), weftInt32, comm_, nullptr, nullptr);
  if (result != weftSuccess) return outcome(result, comm_);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] != static_cast<int>(i / in.size())) return "a block is another rank's";
  return "";
}

std::string Rank::split(int color, weftComm_t* comm) const {
  return outcome(weftCommSplit(comm_, color, rank_, comm, nullptr), comm_);
}

// A call must have failed, and its error must name that rank.
std::string Rank::namesCulprit(weftResult_t result, int culprit) const {
  if (result == weftSuccess) return "succeeded";
  weftErrorInfo_t info = WEFT_ERROR_INFO_INITIALIZER;
  weftGetLastErrorInfo(comm_, &info);
  if (info.rank == culprit) return "";
  return "names rank " + std::to_string(info.rank) + ", not " + std::to_string(culprit) + ": " +
         weftGetLastError(comm_);
}

// Who is still in a call when others end the communicator hears of it in that call.
void Rank::awaitAll(Step step) const {
  for (int rank = 0; rank < options_.ranks(); ++rank)
    for (int ms = 0; !board_.at(rank, step).done && ms < options_.timeoutMs; ++ms) ::usleep(1000);
}

std::string Rank::mismatch() {
  awaitAll(Step::DestroySplits);
  float value[4] = {1, 2, 3, 4};
  const std::size_t count = rank_ == options_.odd() ? 3 : 2;
  const weftResult_t result =
      weftAllReduce(value, value, count, weftFloat32, weftSum, comm_, nullptr, nullptr);
  return namesCulprit(result, options_.odd());
}

std::string Rank::death() const {
  awaitAll(Step::CreateAgain);
  if (rank_ == options_.victim()) ::kill(::getpid(), SIGKILL);
  float value = 1;
  const weftResult_t result =
      weftAllReduce(&value, &value, 1, weftFloat32, weftSum, comm_, nullptr, nullptr);
  return namesCulprit(result, options_.victim());
}

std::string Rank::destroy(weftComm_t* comm) const {
  return outcome(weftCommDestroy(std::exchange(*comm, nullptr)), nullptr);
}

int Rank::run() {
  int version = 0;
  weftGetVersion(&version);
  pssBefore_ = pssKiB();
  shmemBefore_ = shmemKiB();
  const bool good =
      step(Step::Create, [&] { return create(); }) &&
      step(Step::Sum8, [&] { return sum(comm_, 8); }) &&
      step(Step::Sum4K, [&] { return sum(comm_, 4096); }) &&
      step(Step::Sum1M, [&] { return sum(comm_, 1 << 20); }) &&
      step(Step::Gather, [&] { return gather(); }) &&
      step(Step::Barrier, [&] { return outcome(weftBarrier(comm_, nullptr, nullptr), comm_); }) &&
      step(Step::SplitLarge, [&] { return split(rank_ % 8, &large_); }) &&
      step(Step::SumLarge, [&] { return sum(large_, 8); }) &&
      step(Step::SplitSmall, [&] { return split(rank_ / 8, &small_); }) &&
      step(Step::SumSmall, [&] { return sum(small_, 8); }) &&
      step(Step::DestroySplits, [&] { return destroy(&large_) + destroy(&small_); }) &&
      step(Step::Mismatch, [&] { return mismatch(); }) && destroy(&comm_).empty() &&
      step(Step::CreateAgain, [&] { return create(); }) &&
      step(Step::Death, [&] { return death(); }) &&
      step(Step::Destroy, [&] { return destroy(&comm_); });
  return good ? 0 : 1;
}

}  // namespace

int runRank(const Options& options, const Board& board, const IdPipe& courier, int rank) {
  return Rank(options, board, courier, rank).run();
}

}  // namespace weft::scale
