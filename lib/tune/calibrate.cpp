// SPDX-License-Identifier: Apache-2.0
#include "tune/calibrate.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "reduce/reduce.h"
#include "tune/pair.h"
#include "tune/processor.h"
#include "tune/stopwatch.h"

namespace weft::tune {
namespace {

constexpr long kFewEvictions = 2;  // by a quiet system's own threads

constexpr std::size_t kFolded = 4096;  // elements

// A sum of two in the nearest caches: what the arithmetic allows.
Fastest timeFold() {
  alignas(64) std::array<float, 3 * kFolded> field{};
  const reduce::FoldFn fold = reduce::foldKernel(reduce::DType::F32, reduce::RedOp::Sum);
  const void* const sources[] = {field.data(), field.data() + kFolded};
  Fastest best;
  for (int i = 0; i < 16; ++i) {
    const double start = nowNs();
    fold(field.data() + 2 * kFolded, sources, 2, kFolded, 1);
    best.add(nowNs() - start);
  }
  return best;
}

}  // namespace

void Calibrator::measureFar(Machine* m) {
  const TwoCores cores = findFarCores();
  if (cores.away < 0) return;
  Machine far;
  (void)far_.measure(cores, &far);
  m->farPut = far.put;
  m->farTake = far.take;
}

Round Calibrator::round() {
  Round result;
  Machine& m = result.machine;
  m.cacheBytes = static_cast<double>(cacheBytes(2));
  m.sharers = static_cast<double>(coresOfLastCache());
  const Fastest fold = timeFold();
  m.foldNear = 2 * kFolded * sizeof(float) / std::max(fold.ns(), 1.0);
  const Transfers::Result copies = transfers_.measure(findTwoCores(), &m);
  measureFar(&m);
  const PairTimes pair = measurePair();
  m.handOverNs = pair.handOver;
  m.exchangeNs = pair.exchange;
  m.messageNs = pair.message;
  result.complete = copies.complete && pair.complete;
  result.quiet = fold.confirmed() && copies.steady && pair.steady &&
                 copies.evictions + pair.evictions <= kFewEvictions;
  return result;
}

}  // namespace weft::tune
