// SPDX-License-Identifier: Apache-2.0
// Packets: how elements come from memory into registers, are worked on, and go back.
//
// A packet type P has
//   Lane            the type that operators work in (float for 16-bit floats)
//   Value           kSize elements in registers, a vector or a Pair of vectors of Lane
//   kSize, kBytes   elements and bytes in memory
//   Narrow, One     the packets of 128-bit vectors and of a single element, of the same arithmetic
//   load, store     any alignment; store rounds to the type in memory
//   splat           a Value with the same Lane everywhere
// It is compiled once for each target, hence the guard, which Highway flips between inclusions.
#if defined(WEFT_REDUCE_PACKET_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_REDUCE_PACKET_INL_H
#undef WEFT_REDUCE_PACKET_INL_H
#else
#define WEFT_REDUCE_PACKET_INL_H
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace weft::reduce::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

static_assert(std::endian::native == std::endian::little);

template <class V>
struct Pair {
  V even, odd;
};

// Highway's one-lane loads want aligned elements; ours need not be.
template <class D>
HWY_INLINE hn::Vec<D> loadAny(D d, const std::byte* from) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) == 1) {
    T x;
    std::memcpy(&x, from, sizeof x);
    return hn::Set(d, x);
  } else {
    return hn::LoadU(d, reinterpret_cast<const T*>(from));
  }
}

template <class D>
HWY_INLINE void storeAny(hn::Vec<D> v, D d, std::byte* to) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) == 1) {
    const T x = hn::GetLane(v);
    std::memcpy(to, &x, sizeof x);
  } else {
    hn::StoreU(v, d, reinterpret_cast<T*>(to));
  }
}

// Elements that are worked on as they are stored: 32 and 64 bits, and most of 8-bit integers.
template <class D>
struct Native {
  using Lane = hn::TFromD<D>;
  using Value = hn::Vec<D>;
  using Narrow = Native<hn::CappedTag<Lane, 16 / sizeof(Lane)>>;
  using One = Native<hn::CappedTag<Lane, 1>>;
  static constexpr size_t kSize = hn::MaxLanes(D());
  static constexpr size_t kBytes = kSize * sizeof(Lane);

  static HWY_INLINE Value load(const std::byte* from) { return loadAny(D(), from); }
  static HWY_INLINE void store(Value v, std::byte* to) { storeAny(v, D(), to); }
  static HWY_INLINE void stream(Value v, std::byte* to) {
    hn::Stream(v, D(), reinterpret_cast<Lane*>(to));
  }
  static HWY_INLINE Value splat(Lane x) { return hn::Set(D(), x); }
};

// 8-bit integers in 16-bit lanes, for the product, which no instruction set has for bytes.
template <class D>
struct WideBytes {
  using Lane = uint16_t;
  using Value = hn::Vec<D>;
  using Bytes = hn::Rebind<uint8_t, D>;
  using Narrow = WideBytes<hn::CappedTag<uint16_t, 8>>;
  using One = WideBytes<hn::CappedTag<uint16_t, 1>>;
  static constexpr size_t kSize = hn::MaxLanes(D());
  static constexpr size_t kBytes = kSize;

  static HWY_INLINE Value load(const std::byte* from) {
    return hn::PromoteTo(D(), loadAny(Bytes(), from));
  }
  static HWY_INLINE void store(Value v, std::byte* to) {
    const Value low = hn::And(v, hn::Set(D(), 0xFF));  // DemoteTo would saturate
    storeAny(hn::DemoteTo(Bytes(), hn::BitCast(hn::RebindToSigned<D>(), low)), Bytes(), to);
  }
  static HWY_INLINE Value splat(Lane x) { return hn::Set(D(), x); }
};

// bfloat16, the upper half of a float. A vector of 32-bit words holds the elements in pairs; a
// shift and a mask make two vectors of floats of them, without moving anything across lanes.
// Rounding is ours: Highway 1.0.3 truncates, and AVX512-BF16 flushes denormals.
template <class D, size_t kElements = 2 * hn::MaxLanes(D())>
struct BFloat16 {
  using Lane = float;
  using DFloat = hn::Rebind<float, D>;
  using Words = hn::Vec<D>;
  using Floats = hn::Vec<DFloat>;
  using Value = Pair<Floats>;
  using Narrow = BFloat16<hn::CappedTag<uint32_t, 4>>;
  using One = BFloat16<hn::CappedTag<uint32_t, 1>, 1>;
  static constexpr size_t kSize = kElements;
  static constexpr size_t kBytes = kSize * sizeof(uint16_t);

  static HWY_INLINE Value load(const std::byte* from) {
    const Words pairs = loadWords(from);
    return {hn::BitCast(DFloat(), hn::ShiftLeft<16>(pairs)),
            hn::BitCast(DFloat(), hn::And(pairs, upperHalves()))};
  }
  static HWY_INLINE void store(Value v, std::byte* to) {
    if constexpr (kElements == 1) {
      const auto x = static_cast<uint16_t>(hn::GetLane(join(v)));
      std::memcpy(to, &x, sizeof x);
    } else {
      storeAny(join(v), D(), to);
    }
  }
  static HWY_INLINE void stream(Value v, std::byte* to) {
    hn::Stream(join(v), D(), reinterpret_cast<uint32_t*>(to));
  }
  static HWY_INLINE Value splat(float x) { return {hn::Set(DFloat(), x), hn::Set(DFloat(), x)}; }

 private:
  static HWY_INLINE auto halves(int16_t x) { return hn::Set(hn::Repartition<int16_t, D>(), x); }
  static HWY_INLINE Words upperHalves() { return hn::Set(D(), 0xFFFF0000u); }

  static HWY_INLINE Words loadWords(const std::byte* from) {
    if constexpr (kElements == 1) {
      uint16_t x;
      std::memcpy(&x, from, sizeof x);
      return hn::Set(D(), x);
    } else {
      return loadAny(D(), from);
    }
  }

  // Rounded to nearest even in halves of words: `upper` grows where `lower`, cut off, is above half,
  // or half and `upper` odd. Then one NaN: made of bfloat16, none has a lower half that could carry.
  static HWY_INLINE Words join(Value v) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Or(hn::ShiftRight<16>(rounded(v.even)), hn::And(rounded(v.odd), upperHalves()));
    } else {
      const hn::Repartition<uint16_t, D> d;
      const Words even = hn::BitCast(D(), v.even), odd = hn::BitCast(D(), v.odd);
      const auto upper = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<16>(even)));
      const auto lower = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<16>(odd)), hn::BitCast(d, even));
      const auto isEven = hn::AndNot(upper, hn::Set(d, uint16_t{1}));
      const auto grows = hn::ShiftRight<15>(hn::SaturatedSub(lower, isEven));
      const auto sum = hn::BitCast(hn::RebindToSigned<decltype(d)>(), hn::Add(upper, grows));
      const auto isNaN = hn::Gt(hn::And(sum, halves(0x7FFF)), halves(0x7F80));
      return hn::BitCast(D(), hn::IfThenElse(isNaN, halves(0x7FC0), sum));
    }
  }

  static HWY_INLINE Words rounded(Floats v) {
    const Words bits = hn::BitCast(D(), v);
    const Words isOdd = hn::And(hn::ShiftRight<16>(bits), hn::Set(D(), 1u));
    return hn::Add(hn::Add(bits, hn::Set(D(), 0x7FFFu)), isOdd);
  }
};

// IEEE binary16. Conversion is in hardware but on the fallback targets, where Highway 1.0.3's own
// truncates and loses infinities; there it is done by float multiplications that shift the exponent
// range, so that the hardware handles and rounds the denormals (the method of the FP16 library,
// github.com/Maratyszcza/FP16).
template <class D>
struct Float16 {
  using Lane = float;
  using Value = hn::Vec<D>;
  using Bits = hn::Rebind<uint16_t, D>;
  using Narrow = Float16<hn::CappedTag<float, 4>>;
  using One = Float16<hn::CappedTag<float, 1>>;
  static constexpr size_t kSize = hn::MaxLanes(D());
  static constexpr size_t kBytes = kSize * sizeof(uint16_t);

  static HWY_INLINE Value load(const std::byte* from) { return widened(loadAny(Bits(), from)); }
  static HWY_INLINE void store(Value v, std::byte* to) { storeAny(rounded(v), Bits(), to); }
  static HWY_INLINE void stream(Value v, std::byte* to) {
    hn::Stream(rounded(v), Bits(), reinterpret_cast<uint16_t*>(to));
  }
  static HWY_INLINE Value splat(float x) { return hn::Set(D(), x); }

 private:
  using Halves = hn::Vec<Bits>;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  using DWord = hn::Rebind<uint32_t, D>;
  using Words = hn::Vec<DWord>;

  static HWY_INLINE Words word(uint32_t x) { return hn::Set(DWord(), x); }

  static HWY_INLINE Value widened(Halves halves) {
    const Words bits = hn::PromoteTo(DWord(), halves);
    const Words sign = hn::ShiftLeft<16>(hn::And(bits, word(0x8000)));
    const Words magnitude = hn::ShiftLeft<13>(hn::And(bits, word(0x7FFF)));
    const Value scaled = hn::Mul(hn::BitCast(D(), magnitude), hn::Set(D(), 0x1p112f));
    const Value special = hn::Or(scaled, hn::BitCast(D(), word(0x7F800000)));
    const auto isSpecial = hn::Ge(scaled, hn::Set(D(), 65536.0f));
    return hn::Or(hn::IfThenElse(isSpecial, special, scaled), hn::BitCast(D(), sign));
  }

  static HWY_INLINE Halves rounded(Value v) {
    const Words bits = hn::BitCast(DWord(), v);
    const Value overflowed = hn::Mul(hn::Abs(v), hn::Set(D(), 0x1p112f));
    const Value base = hn::Mul(overflowed, hn::Set(D(), 0x1p-110f));
    // Adding a float of the right exponent rounds `base` to the 11 bits that a half has left.
    const Words exponent = hn::And(hn::ShiftLeft<1>(bits), word(0xFF000000));
    const Words bias = hn::ShiftRight<1>(hn::Max(exponent, word(0x71000000)));
    const Value sum = hn::Add(hn::BitCast(D(), hn::Add(bias, word(0x07800000))), base);
    const Words sumBits = hn::BitCast(DWord(), sum);
    const Words number =
        hn::Add(hn::And(hn::ShiftRight<13>(sumBits), word(0x7C00)), hn::And(sumBits, word(0x0FFF)));
    const Words sign = hn::And(hn::ShiftRight<16>(bits), word(0x8000));
    const Words signedNumber = hn::Or(number, sign);
    const auto result = hn::IfThenElse(hn::IsNaN(v), hn::BitCast(D(), word(0x7E00)),
                                       hn::BitCast(D(), signedNumber));
    return hn::DemoteTo(Bits(), hn::BitCast(hn::Rebind<int32_t, D>(), result));
  }
#else
  using DHalf = hn::Rebind<hwy::float16_t, D>;

  static HWY_INLINE Value widened(Halves halves) {
    return hn::PromoteTo(D(), hn::BitCast(DHalf(), halves));
  }
  static HWY_INLINE Halves rounded(Value v) {
    return hn::BitCast(Bits(), hn::DemoteTo(DHalf(), v));
  }
#endif
};

}  // namespace weft::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
