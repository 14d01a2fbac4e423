// SPDX-License-Identifier: Apache-2.0
// What is done to vectors of lanes: the operators of a fold, and the last step before a store.
#if defined(WEFT_REDUCE_OPERATORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_OPERATORS_INL_H
#undef WEFT_REDUCE_OPERATORS_INL_H
#else
#define WEFT_REDUCE_OPERATORS_INL_H
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "reduce/packet-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {

struct Sum {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};

struct Prod {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Mul(a, b);
  }
};

// Highway leaves NaN and the sign of zero to the target in its own Max and Min. Here, equal floats
// are the same bits or zeros of two signs, and a NaN fails both comparisons.
template <bool kLargest>
struct Extreme {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::LaneType<V>>()) {
      const V winner = hn::IfThenElse(kLargest ? hn::Lt(a, b) : hn::Lt(b, a), b, a);
      const V equal = kLargest ? hn::And(a, b) : hn::Or(a, b);
      const V number = hn::IfThenElse(hn::Eq(a, b), equal, winner);
      return hn::IfThenElse(hn::IsNaN(b), b, number);
    } else {
      return kLargest ? hn::Max(a, b) : hn::Min(a, b);
    }
  }
};
using Max = Extreme<true>;
using Min = Extreme<false>;

struct Band {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::And(a, b);
  }
};

struct Bor {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Or(a, b);
  }
};

struct Bxor {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Xor(a, b);
  }
};

template <class Op, class V>
HWY_INLINE V combine(V a, V b) {
  return Op::apply(a, b);
}

template <class Op, class V>
HWY_INLINE Pair<V> combine(Pair<V> a, Pair<V> b) {
  return {Op::apply(a.even, b.even), Op::apply(a.odd, b.odd)};
}

// The last step of integers: none.
struct Keep {
  explicit Keep(uint64_t) {}
  template <class Value>
  HWY_INLINE Value operator()(Value v) const {
    return v;
  }
};

// The last step of floats: the division of Avg, and one NaN for all but vectors of bfloat16, whose
// store makes it. For powers of two it multiplies, which is exact and much faster.
template <class T>
class Divide {
 public:
  explicit Divide(uint64_t divisor)
      : changes_(divisor != 1),
        divides_(!std::has_single_bit(divisor)),
        factor_(divides_ ? static_cast<T>(divisor) : T{1} / static_cast<T>(divisor)) {}

  template <class V>
  HWY_INLINE V operator()(V v) const {
    const V result = quotient(v);
    const V nan = hn::Set(hn::DFromV<V>(), std::numeric_limits<T>::quiet_NaN());
    return hn::IfThenElse(hn::IsNaN(result), nan, result);
  }

  template <class V>
  HWY_INLINE Pair<V> operator()(Pair<V> v) const {
    if constexpr (hn::MaxLanes(hn::DFromV<V>()) == 1) return {(*this)(v.even), (*this)(v.odd)};
    return {quotient(v.even), quotient(v.odd)};
  }

 private:
  template <class V>
  HWY_INLINE V quotient(V v) const {
    if (!changes_) return v;
    const V factor = hn::Set(hn::DFromV<V>(), factor_);
    return divides_ ? hn::Div(v, factor) : hn::Mul(v, factor);
  }

  bool changes_, divides_;
  T factor_;
};

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
