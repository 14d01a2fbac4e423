// SPDX-License-Identifier: Apache-2.0
#include "tools/health/collectives.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include "perf/common/median.h"
#include "tools/health/skew.h"

namespace weft::health {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kMostDelay{1000};
constexpr std::size_t kMostPasses = 200;

enum class Kind { AllReduce, AllGather, ReduceScatter };
constexpr const char* kNames[] = {"all_reduce", "all_gather", "reduce_scatter"};

// Element i of a rank's input is a line through a hash of i, so that the sum over ranks is one too,
// and a rank that checks needs no more time for a thousand ranks than for two. Sums of floats are
// of small whole numbers, exact in any order.
template <class T>
class Inputs {
 public:
  Inputs(std::uint64_t seed, int ranks) : seed_(static_cast<std::uint32_t>(seed)) {
    std::mt19937_64 random(seed);
    for (int rank = 0; rank < ranks; ++rank) {
      factors_.push_back(std::is_integral_v<T> ? static_cast<std::uint32_t>(random()) | 1 : 1);
      offsets_.push_back(static_cast<std::uint32_t>(random()) & kMask);
      factorSum_ += factors_.back();
      offsetSum_ += offsets_.back();
    }
  }
  T of(int rank, std::size_t i) const {
    const auto index = static_cast<std::size_t>(rank);
    return static_cast<T>(factors_[index] * hash(i) + offsets_[index]);
  }
  T sum(std::size_t i) const { return static_cast<T>(factorSum_ * hash(i) + offsetSum_); }

 private:
  static constexpr std::uint32_t kMask = std::is_integral_v<T> ? 0xffffffffu : 1023u;
  std::uint32_t hash(std::size_t i) const {
    const std::uint32_t x = (static_cast<std::uint32_t>(i) ^ seed_) * 0x9e3779b1u;
    return (x ^ (x >> 15)) & kMask;
  }

  std::uint32_t seed_;
  std::vector<std::uint32_t> factors_, offsets_;
  std::uint32_t factorSum_ = 0, offsetSum_ = 0;
};

class Tester {
 public:
  Tester(Crew& crew, const CollectiveOptions& options)
      : crew_(crew),
        options_(options),
        delays_(options.seed + static_cast<std::uint64_t>(crew.rank())),
        send_(options.largest),
        recv_(options.largest) {
    for (const Kind kind : {Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter})
      for (std::size_t bytes = 64; bytes <= options.largest; bytes *= 16)
        rows_.push_back({kind, elementsOf(bytes), {}, 0, 0});
  }

  // Every row once. Ranks of odd passes come late at random; even ones are timed.
  void pass(std::size_t number) {
    for (Row& row : rows_) {
      const std::uint64_t seed = options_.seed + 1000003 * number;
      if (number % 4 < 2)
        run<std::uint32_t>(row, seed, number % 2 == 1);
      else
        run<float>(row, seed, number % 2 == 1);
    }
  }

  CollectiveReport report();

 private:
  struct Row {
    Kind kind;
    std::size_t count;  // elements of the larger buffer, a multiple of the ranks
    std::vector<double> seconds;
    double wrong;
    int repeats;
  };

  std::size_t elementsOf(std::size_t bytes) const {
    const auto ranks = static_cast<std::size_t>(crew_.size());
    return std::max(bytes / sizeof(std::uint32_t) / ranks, std::size_t{1}) * ranks;
  }

  template <class T>
  void run(Row& row, std::uint64_t seed, bool late);
  template <class T>
  void call(const Row& row, const T* send, T* recv);
  template <class T>
  double countWrong(const Row& row, const Inputs<T>& inputs, const T* got);

  Crew& crew_;
  CollectiveOptions options_;
  std::minstd_rand delays_;
  std::vector<std::byte> send_, recv_;
  std::vector<Row> rows_;
  std::set<std::pair<int, int>> wrongLinks_;
};

template <class T>
void Tester::run(Row& row, std::uint64_t seed, bool late) {
  const Inputs<T> inputs(seed, crew_.size());
  const auto ranks = static_cast<std::size_t>(crew_.size());
  const std::size_t sends = row.kind == Kind::AllGather ? row.count / ranks : row.count;
  send_.resize(std::max(send_.size(), row.count * sizeof(T)));
  recv_.resize(send_.size());
  T* const send = reinterpret_cast<T*>(send_.data());
  T* const recv = reinterpret_cast<T*>(recv_.data());
  for (std::size_t i = 0; i < sends; ++i) send[i] = inputs.of(crew_.rank(), i);
  std::fill_n(recv, row.count, T(0));

  crew_.barrier();
  if (late) std::this_thread::sleep_for(kMostDelay * (delays_() % 1000) / 1000);
  const auto start = Clock::now();
  call(row, send, recv);
  const std::chrono::duration<double> time = Clock::now() - start;
  if (!late) row.seconds.push_back(time.count());
  row.wrong += countWrong(row, inputs, recv);
  ++row.repeats;
}

template <class T>
void Tester::call(const Row& row, const T* send, T* recv) {
  const On on{.options = &crew_.options()};
  const auto ranks = static_cast<std::size_t>(crew_.size());
  switch (row.kind) {
    case Kind::AllReduce:
      return crew_.comm().allReduce(send, recv, row.count, weftSum, on);
    case Kind::AllGather:
      return crew_.comm().allGather(send, recv, row.count / ranks, on);
    case Kind::ReduceScatter:
      return crew_.comm().reduceScatter(send, recv, row.count / ranks, weftSum, on);
  }
}

template <class T>
double Tester::countWrong(const Row& row, const Inputs<T>& inputs, const T* got) {
  const std::size_t block = row.count / static_cast<std::size_t>(crew_.size());
  const std::size_t first =
      row.kind == Kind::ReduceScatter ? block * static_cast<std::size_t>(crew_.rank()) : 0;
  const std::size_t count = row.kind == Kind::ReduceScatter ? block : row.count;
  double wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int sender = static_cast<int>(i / block);
    const bool gathers = row.kind == Kind::AllGather;
    if (got[i] == (gathers ? inputs.of(sender, i % block) : inputs.sum(first + i))) continue;
    ++wrong;
    if (gathers) wrongLinks_.emplace(sender, crew_.rank());
  }
  return wrong;
}

double busFactor(Kind kind, double ranks) {
  return (kind == Kind::AllReduce ? 2 : 1) * (ranks - 1) / ranks;
}

// What all ranks saw. A call is as slow as its slowest rank.
CollectiveReport Tester::report() {
  CollectiveReport report;
  report.wrongAt.resize(static_cast<std::size_t>(crew_.size()));
  for (Row& row : rows_) {
    std::vector<double> mine = row.seconds;
    mine.push_back(row.wrong);
    const auto all = crew_.gather(mine);
    double wrong = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      wrong += all[rank].back();
      report.wrongAt[rank] += all[rank].back();
      for (std::size_t i = 0; i < row.seconds.size(); ++i)
        row.seconds[i] = std::max(row.seconds[i], all[rank][i]);
    }
    const double seconds = tools::median(row.seconds);
    const std::size_t bytes = row.count * sizeof(std::uint32_t);
    const double bus = busFactor(row.kind, crew_.size()) * static_cast<double>(bytes);
    report.rows.push_back({kNames[static_cast<int>(row.kind)], bytes, seconds * 1e6,
                           seconds > 0 ? bus / seconds / 1e9 : 0, wrong, row.repeats});
  }
  std::vector<double> links;
  for (const auto& [from, at] : wrongLinks_) links.push_back(from);
  links.resize(static_cast<std::size_t>(crew_.size()), -1);
  const auto all = crew_.gather(links);
  for (std::size_t at = 0; at < all.size(); ++at)
    for (const double from : all[at])
      if (from >= 0) report.wrongLinks.emplace(static_cast<int>(from), static_cast<int>(at));
  return report;
}

}  // namespace

CollectiveReport testCollectives(Crew& crew, const CollectiveOptions& options,
                                 const std::function<void(double)>& progress) {
  const auto start = Clock::now();
  Tester tester(crew, options);
  for (std::size_t pass = 0; pass < kMostPasses; ++pass) {
    tester.pass(pass);
    const std::chrono::duration<double> spent = Clock::now() - start;
    progress(spent.count() / options.seconds);
    const bool enough = pass >= 3 && spent.count() > 0.8 * options.seconds;
    if (crew.hear(enough ? "enough" : "") == "enough") break;
  }
  CollectiveReport report = tester.report();
  const Skew skew = measureSkew(crew, 0.2 * options.seconds);
  report.lateMicroseconds = skew.lateMicroseconds;
  report.lastShare = skew.lastShare;
  return report;
}

}  // namespace weft::health
