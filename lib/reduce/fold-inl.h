// SPDX-License-Identifier: Apache-2.0
// The loop of all kernels, and the two things that it computes: folds and scalings.
#if defined(WEFT_REDUCE_FOLD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_FOLD_INL_H
#undef WEFT_REDUCE_FOLD_INL_H
#else
#define WEFT_REDUCE_FOLD_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <array>
#include <cstddef>

#include "base/copy.h"
#include "reduce/kernels.h"
#include "reduce/operators-inl.h"
#include "reduce/packet-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

// Packets in flight at once: enough to hide the latency of an operator, few enough for the
// registers.
constexpr size_t kUnroll = 4;

// Sources that are loaded by instructions of their own: processors prefetch by the instruction, and
// do not see a stream where one of them takes turns between arrays.
constexpr size_t kApart = 8;

// Where the sources are: known to be two, the hot case, or any number.
struct TwoSources {
  const std::byte* source[2];
  static constexpr size_t size() { return 2; }
  const std::byte* operator[](size_t s) const { return source[s]; }
};

struct ManySources {
  const void* const* source;
  size_t count;
  size_t size() const { return count; }
  const std::byte* operator[](size_t s) const { return static_cast<const std::byte*>(source[s]); }
};

// A fold of kCount adjacent packets at byte `at`, source by source, with the accumulators in
// registers.
template <class Op, class Sources, class Last>
struct Fold {
  Sources sources;
  Last last;

  template <class P, size_t kCount>
  HWY_INLINE std::array<typename P::Value, kCount> packets(size_t at) const {
    std::array<typename P::Value, kCount> sum;
    for (size_t i = 0; i < kCount; ++i) sum[i] = P::load(sources[0] + at + i * P::kBytes);
    addFrom<1, P>(sum, at);
    for (size_t i = 0; i < kCount; ++i) sum[i] = last(sum[i]);
    return sum;
  }

  // The sources from kSource on: one and the next by the next's instructions, or all in a loop.
  template <size_t kSource, class P, size_t kCount>
  HWY_INLINE void addFrom(std::array<typename P::Value, kCount>& sum, size_t at) const {
    for (size_t s = kSource; s < sources.size(); ++s) {
      for (size_t i = 0; i < kCount; ++i)
        sum[i] = combine<Op>(sum[i], P::load(sources[s] + at + i * P::kBytes));
      if constexpr (P::kSize > 1 && kSource < kApart) return addFrom<kSource + 1, P>(sum, at);
    }
  }
};

// A product with a constant.
template <class Lane, class Last>
struct Scale {
  const std::byte* source;
  Lane factor;
  Last last;

  template <class P, size_t kCount>
  HWY_INLINE std::array<typename P::Value, kCount> packets(size_t at) const {
    std::array<typename P::Value, kCount> product;
    for (size_t i = 0; i < kCount; ++i)
      product[i] = last(combine<Prod>(P::load(source + at + i * P::kBytes), P::splat(factor)));
    return product;
  }
};

// Where the results go: known to be one place, the hot case, or any number.
struct OneTarget {
  std::byte* target;
  static constexpr size_t size() { return 1; }
  std::byte* operator[](size_t) const { return target; }
};

struct ManyTargets {
  void* const* target;
  size_t count;
  size_t size() const { return count; }
  std::byte* operator[](size_t t) const { return static_cast<std::byte*>(target[t]); }
};

template <class P, bool kStream, size_t kCount, class Targets>
HWY_INLINE void storePackets(const std::array<typename P::Value, kCount>& values,
                             const Targets& targets, size_t at) {
  for (size_t t = 0; t < targets.size(); ++t) {
    std::byte* to = targets[t] + at;
    for (size_t i = 0; i < kCount; ++i) {
      if constexpr (kStream) {
        P::stream(values[i], to + i * P::kBytes);
      } else {
        P::store(values[i], to + i * P::kBytes);
      }
    }
  }
}

// Bytes from `dst` to the next packet border, if elements lie on it; 0 if they never do.
template <class P>
HWY_INLINE size_t bytesToBorder(const std::byte* dst) {
  const size_t past = reinterpret_cast<uintptr_t>(dst) % P::kBytes;
  const size_t head = past == 0 ? 0 : P::kBytes - past;
  return head % P::One::kBytes == 0 ? head : 0;
}

template <class P, bool kStream, size_t kCount, class Targets, class Compute>
HWY_INLINE void storeAt(const Targets& dst, size_t at, const Compute& compute) {
  storePackets<P, kStream, kCount>(compute.template packets<P, kCount>(at), dst, at);
}

// Less than a packet: narrow ones, of which the last may overlap the one before, or single
// elements.
template <class P, class Targets, class Compute>
HWY_INLINE void forFew(const Targets& dst, size_t bytes, const Compute& compute) {
  using Narrow = typename P::Narrow;
  using One = typename P::One;
  if (Narrow::kBytes < P::kBytes && bytes >= Narrow::kBytes) {
    const size_t end = bytes - Narrow::kBytes;
    const auto last = compute.template packets<Narrow, 1>(end);
    for (size_t at = 0; at < end; at += Narrow::kBytes) storeAt<Narrow, false, 1>(dst, at, compute);
    storePackets<Narrow, false, 1>(last, dst, end);
  } else {
    for (size_t at = 0; at < bytes; at += One::kBytes) storeAt<One, false, 1>(dst, at, compute);
  }
}

// Writes `bytes` of results to all targets. The body is whole packets, on packet borders of the
// first; the first and the last packet cover its ragged ends and may overlap it. They are computed
// before anything is stored, because a target may be a source, and stored after the body.
template <class P, bool kStream, class Targets, class Compute>
HWY_INLINE void forAll(const Targets& dst, size_t bytes, const Compute& compute) {
  if (bytes < P::kBytes) return forFew<P>(dst, bytes, compute);
  const auto first = compute.template packets<P, 1>(0);
  const auto last = compute.template packets<P, 1>(bytes - P::kBytes);
  size_t at = bytesToBorder<P>(dst[0]);
  for (; at + kUnroll * P::kBytes <= bytes; at += kUnroll * P::kBytes)
    storeAt<P, kStream, kUnroll>(dst, at, compute);
  for (; at + P::kBytes <= bytes; at += P::kBytes) storeAt<P, false, 1>(dst, at, compute);
  storePackets<P, false, 1>(first, dst, 0);
  storePackets<P, false, 1>(last, dst, bytes - P::kBytes);
}

template <class P, class Op, bool kStream, class Targets, class Last>
HWY_INLINE void foldAll(const Targets& to, const void* const* src, size_t n, size_t count,
                        Last last) {
  const size_t bytes = count * P::One::kBytes;
  const ManySources many{src, n};
  if (n == 2) {
    forAll<P, kStream>(to, bytes, Fold<Op, TwoSources, Last>{{many[0], many[1]}, last});
  } else {
    forAll<P, kStream>(to, bytes, Fold<Op, ManySources, Last>{many, last});
  }
}

inline OneTarget only(void* dst) { return {static_cast<std::byte*>(dst)}; }

// The FoldFn of a float type.
template <class P, class Op>
void foldFloats(void* dst, const void* const* src, size_t n, size_t count, uint64_t divisor) {
  if (n == 1 && divisor == 1) return copyBytes(dst, src[0], count * P::One::kBytes);
  foldAll<P, Op, false>(only(dst), src, n, count, Divide<typename P::Lane>(divisor));
}

// Do stores past the caches find packet borders? They do in all targets at once, or in none.
template <class P>
bool hasBorders(const ManyTargets& to) {
  const auto past = [&](size_t t) { return reinterpret_cast<uintptr_t>(to[t]) % P::kBytes; };
  if (past(0) % P::One::kBytes != 0) return false;
  for (size_t t = 1; t < to.size(); ++t)
    if (past(t) != past(0)) return false;
  return true;
}

// The SpreadFn of a float type.
template <class P, class Op>
void spreadFloats(void* const* dst, size_t targets, const void* const* src, size_t n, size_t count,
                  uint64_t divisor) {
  if (n == 1 && divisor == 1) return copyStream(dst, targets, src[0], count * P::One::kBytes);
  const ManyTargets to{dst, targets};
  const Divide<typename P::Lane> last(divisor);
  if (!hasBorders<P>(to)) return foldAll<P, Op, false>(to, src, n, count, last);
  if (targets == 1) {
    foldAll<P, Op, true>(only(dst[0]), src, n, count, last);
  } else {
    foldAll<P, Op, true>(to, src, n, count, last);
  }
  hwy::FlushStream();
}

template <class V>
HWY_INLINE auto firstLane(V v) {
  if constexpr (requires { v.even; })
    return hn::GetLane(v.even);
  else
    return hn::GetLane(v);
}

// The ScaleFn of any type.
template <class P, class Last>
void scaleAll(void* dst, const void* src, size_t count, const void* scalar) {
  const typename P::Lane factor = firstLane(P::One::load(static_cast<const std::byte*>(scalar)));
  const Scale<typename P::Lane, Last> scale{static_cast<const std::byte*>(src), factor, Last(1)};
  forAll<P, false>(only(dst), count * P::One::kBytes, scale);
}

// The kernels of a float type.
template <class P>
Kernels kernelsOf(RedOp op) {
  constexpr ScaleFn kScale = scaleAll<P, Divide<typename P::Lane>>;
  switch (op) {
    case RedOp::Prod:
      return {foldFloats<P, Prod>, nullptr, kScale};
    case RedOp::Max:
      return {foldFloats<P, Max>, nullptr, kScale};
    case RedOp::Min:
      return {foldFloats<P, Min>, nullptr, kScale};
    default:
      return {foldFloats<P, Sum>, spreadFloats<P, Sum>, kScale};
  }
}

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
