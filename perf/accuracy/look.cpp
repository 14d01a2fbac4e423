// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/look.h"

#include <algorithm>
#include <vector>

#include "base/now.h"
#include "perf/common/median.h"

namespace weft::accuracy {
namespace {

constexpr int kRounds = 3;

using Call = void (*)(const Comm&);

void broadcast(const Comm& pair) {
  std::uint64_t word = 0;
  check(weftBroadcast(&word, &word, 1, weftUint64, 0, pair.get(), nullptr, nullptr), pair.get());
}

void allReduce(const Comm& pair) {
  std::uint64_t word = 0;
  check(weftAllReduce(&word, &word, 1, weftUint64, weftSum, pair.get(), nullptr, nullptr),
        pair.get());
}

// From the earlier begin to the later end, of both of these ranks, of so many calls.
double callsNs(const Comm& pair, std::uint32_t count, Call call) {
  std::vector<double> times;
  pair.barrier();
  times.push_back(nowNs());
  for (std::uint32_t i = 0; i < count; ++i) call(pair);
  times.push_back(nowNs());
  const std::vector<double> all = pair.gather(times);
  return std::max(all[1], all[3]) - std::min(all[0], all[2]);
}

// What a call takes, by so many batches.
std::vector<double> batches(const Comm& pair, std::uint32_t times, std::uint32_t count, Call call) {
  std::vector<double> took;
  for (std::uint32_t i = 0; i < times; ++i) took.push_back(callsNs(pair, count, call) / count);
  return took;
}

}  // namespace

Look::Look(const Comm& all, std::uint32_t cores)
    : all_(all),
      cores_(cores),
      rank_(static_cast<std::uint32_t>(all.rank())),
      ranks_(static_cast<std::uint32_t>(all.size())),
      pair_(all.split(rank_ < 2 ? 0 : 1)),
      mates_(all.split(rank_ == 0 || rank_ == cores ? 0 : 1)) {}

State Look::take() {
  tune::Calibration calibration;
  for (int round = 0; rank_ == 0 && round < kRounds; ++round)
    calibration = tune::with(calibration, calibrator_.round(), 0);
  all_.barrier();
  State state{calibration.machine(), {}};
  state.entry = entry(state.machine.exchangeNs);
  if (ranks_ > cores_) state.machine.handOverNs = handOverNs(state.entry.steadyNs);
  exchangeNs_ = exchangeNs();
  return state;
}

// A message from one rank to another, as the engine sends it, is a broadcast among the two. The other
// ranks go to sleep meanwhile.
Entry Look::entry(double flagNs) const {
  constexpr std::uint32_t kMany = 2000, kBatches = 20, kAlone = 400;
  Entry entry;
  if (rank_ < 2)
    entry = {tools::median(batches(*pair_, kBatches, kMany, broadcast)),
             std::max(0.0, tools::median(batches(*pair_, kAlone, 1, broadcast)) - flagNs)};
  all_.barrier();
  return entry;
}

// As processes hand a core over that have their calls to make on it, whose caches and address spaces are
// not those of two threads that do nothing else. Two ranks of a core that wait for each other hand it
// over once a call, in which each has its own part of the call to do.
double Look::handOverNs(double entryNs) const {
  constexpr std::uint32_t kMany = 200, kBatches = 20;
  double ns = 0;
  if (rank_ == 0 || rank_ == cores_)
    ns = tools::median(batches(*mates_, kBatches, kMany, allReduce)) - 2 * entryNs;
  all_.barrier();
  return std::max(0.0, ns);
}

double Look::exchangeNs() const {
  constexpr std::uint32_t kMany = 200, kBatches = 3;
  double ns = 0;
  if (rank_ < 2) ns = std::ranges::min(batches(*pair_, kBatches, kMany, allReduce));
  return all_.gather({ns})[0];
}

bool Look::isOld() const {
  constexpr double kMoved = 1.4;
  const double ns = exchangeNs();
  return std::max(ns, exchangeNs_) > kMoved * std::min(ns, exchangeNs_);
}

}  // namespace weft::accuracy
