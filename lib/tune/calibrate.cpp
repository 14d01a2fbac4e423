// SPDX-License-Identifier: Apache-2.0
#include "tune/calibrate.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "reduce/reduce.h"
#include "tune/pair.h"
#include "tune/processor.h"
#include "tune/stopwatch.h"

namespace weft::tune {
namespace {

constexpr std::size_t kNearBytes = 64 << 10;  // two of them are in any second-level cache
constexpr std::size_t kLeastCache = 256 << 10, kMostCache = 4 << 20;  // more would take long

// Two buffers, each as large as the cache.
class Field {
 public:
  explicit Field(std::size_t cache)
      : bytes_(std::clamp(cache, kLeastCache, kMostCache) / 4096 * 4096),
        base_(static_cast<std::byte*>(mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {}
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;
  ~Field() {
    if (present()) munmap(base_, 2 * bytes_);
  }

  bool present() const { return base_ != MAP_FAILED; }
  std::size_t bytes() const { return bytes_; }
  std::byte* from() const { return base_; }
  std::byte* to() const { return base_ + bytes_; }

 private:
  std::size_t bytes_;
  std::byte* base_;
};

// The fastest of `tries` runs, of which the first warms up.
template <class Body>
Fastest fastest(int tries, Body&& body) {
  Fastest best;
  for (int i = 0; i < tries; ++i) {
    const double start = nowNs();
    body();
    best.add(nowNs() - start);
  }
  return best;
}

double rate(std::size_t bytes, const Fastest& time) {
  return static_cast<double>(bytes) / std::max(time.ns(), 1.0);
}

class Bench {
 public:
  explicit Bench(std::size_t cache) : field_(cache) {}

  bool possible() const { return field_.present(); }
  bool steady() const { return steady_; }

  void copies(Machine* m) {
    m->copyNear = rate(kNearBytes, note(fastest(8, [&] { copy(kNearBytes); })));
    m->copyFar = rate(field_.bytes(), note(fastest(5, [&] { copy(field_.bytes()); })));
    m->streamFar = rate(field_.bytes(), note(fastest(5, [&] { stream(field_.bytes()); })));
  }

  // The least power of two from which on stores past the cache win; where they lose even at the
  // end of the field, they are left to results that no cache holds.
  void streaming(Machine* m, std::size_t lastLevel) {
    m->streamMin = static_cast<double>(std::max(lastLevel, 2 * field_.bytes()));
    if (m->streamFar <= m->copyFar) return;
    m->streamMin = static_cast<double>(field_.bytes());
    for (std::size_t bytes = field_.bytes() / 2; bytes >= field_.bytes() / 4; bytes /= 2) {
      const Fastest plain = fastest(3, [&] { copy(bytes); });
      if (fastest(3, [&] { stream(bytes); }).ns() >= plain.ns()) return;
      m->streamMin = static_cast<double>(bytes);
    }
  }

  void folds(Machine* m) {
    const reduce::FoldFn fold = reduce::foldKernel(reduce::DType::F32, reduce::RedOp::Sum);
    const void* const sources[] = {field_.from(), field_.from() + kNearBytes};
    const auto add = [&] { fold(field_.to(), sources, 2, kNearBytes / 4, 1); };
    m->foldNear = rate(2 * kNearBytes, note(fastest(8, add)));
  }

  // On this process itself, which costs the kernel the same work as on another.
  void cmaCopies(Machine* m) {
    if (!cmaCopy(1)) return;
    const Fastest call = note(fastest(8, [&] { cmaCopy(64); }));
    const Fastest near = note(fastest(8, [&] { cmaCopy(kNearBytes); }));
    const Fastest far = note(fastest(6, [&] { cmaCopy(field_.bytes()); }));
    m->cmaCallNs = call.ns();
    m->cmaNear = static_cast<double>(kNearBytes) / std::max(1.0, near.ns() - call.ns());
    m->cmaFar = static_cast<double>(field_.bytes()) / std::max(1.0, far.ns() - call.ns());
  }

 private:
  void copy(std::size_t bytes) { std::memcpy(field_.to(), field_.from(), bytes); }
  void stream(std::size_t bytes) {
    void* const to[] = {field_.to()};
    reduce::copyStream(to, 1, field_.from(), bytes);
  }
  // As the transports do it: they look first whether the process still lives.
  bool cmaCopy(std::size_t bytes) {
    const iovec from{field_.from(), bytes}, to{field_.to(), bytes};
    ::poll(nullptr, 0, 0);
    return ::process_vm_writev(::getpid(), &from, 1, &to, 1, 0) == static_cast<ssize_t>(bytes);
  }
  const Fastest& note(const Fastest& time) {
    steady_ = steady_ && time.confirmed();
    return time;
  }

  Field field_;
  bool steady_ = true;
};

// No faster than within a core; 0 stays what it is.
void pairUp(const PairTimes& pair, Machine* m) {
  const auto rateOf = [&](double perByte) {
    return perByte > 0 ? std::min(m->copyNear, 1 / perByte) : 0;
  };
  m->handOverNs = pair.handOver;
  m->exchangeNs = pair.exchange;
  m->messageNs = pair.message;
  m->putAcross = rateOf(pair.putPerByte);
  m->takeAcross = rateOf(pair.takePerByte);
}

constexpr long kFewEvictions = 2;  // by a quiet system's own threads

}  // namespace

Round calibrate() {
  Round result;
  const long before = evictions();
  Machine& m = result.machine;
  const std::size_t cache = cacheBytes(2);
  m.cacheBytes = static_cast<double>(cache);
  Bench bench(cache);
  if (!bench.possible()) return result;
  bench.copies(&m);
  bench.streaming(&m, cacheBytes(3));
  bench.folds(&m);
  bench.cmaCopies(&m);
  const long evicted = evictions() - before;
  const PairTimes pair = measurePair();
  pairUp(pair, &m);
  result.complete = pair.complete;
  result.quiet = bench.steady() && pair.steady && evicted + pair.evictions <= kFewEvictions;
  return result;
}

}  // namespace weft::tune
