// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "perf/weft-perf/draw.h"

namespace weft::perf {
namespace {

constexpr std::size_t kTile = 1024;  // elements compared at once: all of it stays in the L1 cache

template <class T>
bool sameBits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// The reference of one tile: the folded value, and the sum of magnitudes that bounds its errors.
template <class T>
struct Reference {
  Wide<T> value[kTile];
  Wide<T> magnitude[kTile];
};

template <class T>
Wide<T> absolute(Wide<T> x) {
  return x < 0 ? static_cast<Wide<T>>(-x) : x;
}

// a + b and a * b, wrapping for integers.
template <class W>
W plus(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class W>
W times(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

// Of integers alone.
template <class W, class Combine>
W bitwise(W a, W b, Combine combine) {
  if constexpr (std::is_integral_v<W>) return static_cast<W>(combine(a, b));
  return a;
}

// Folds the terms of one rank into the reference; the first rank starts it.
template <class T>
void fold(Op op, int rank, const T* terms, std::size_t count, Reference<T>& reference) {
  using W = Wide<T>;
  const W weight = static_cast<W>(op == Op::MulSum ? weightOf(rank) : 1);
  const auto apply = [&](auto combine) {
    for (std::size_t i = 0; i < count; ++i) {
      const W term = times(widen(terms[i]), weight);
      const W sum = rank == 0 ? W{0} : reference.magnitude[i];
      reference.value[i] = rank == 0 ? term : combine(reference.value[i], term);
      if constexpr (!kIsInteger<T>) reference.magnitude[i] = sum + absolute<T>(term);
    }
  };
  switch (op) {
    case Op::Prod:
      return apply([](W a, W b) { return times(a, b); });
    case Op::Max:
      return apply([](W a, W b) { return std::max(a, b); });
    case Op::Min:
      return apply([](W a, W b) { return std::min(a, b); });
    case Op::Band:
      return apply([](W a, W b) { return bitwise(a, b, std::bit_and()); });
    case Op::Bor:
      return apply([](W a, W b) { return bitwise(a, b, std::bit_or()); });
    case Op::Bxor:
      return apply([](W a, W b) { return bitwise(a, b, std::bit_xor()); });
    default:
      return apply([](W a, W b) { return plus(a, b); });
  }
}

template <class T>
void refer(const Recipe& recipe, std::size_t from, std::size_t count, Reference<T>& reference) {
  using W = Wide<T>;
  T terms[kTile];
  for (int rank = 0; rank < recipe.ranks; ++rank) {
    Draw<T>(recipe, rank).fill(from, count, terms);
    fold(recipe.op, rank, terms, count, reference);
  }
  const W divisor = static_cast<W>(recipe.op == Op::Avg ? recipe.ranks : 1);
  for (std::size_t i = 0; i < count && recipe.op == Op::Avg; ++i) {
    reference.value[i] = static_cast<W>(reference.value[i] / divisor);
    if constexpr (!kIsInteger<T>) reference.magnitude[i] /= divisor;
  }
  if constexpr (!kIsInteger<T>) {
    for (std::size_t i = 0; i < count && recipe.op == Op::Prod; ++i) {
      reference.magnitude[i] = absolute<T>(reference.value[i]);
    }
  }
}

// The largest power of two that is not above |x|.
double powerBelow(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000ull);
}

// How far a correct result may be from the reference; see verify.h.
template <class T>
class Bound {
 public:
  explicit Bound(const Recipe& recipe) {
    constexpr double kFloatUnit = 0x1p-24;
    const double additions = recipe.ranks - 1;
    const bool scales = recipe.op == Op::MulSum;
    const bool divides = recipe.op == Op::Avg;
    perMagnitude_ = additions * (kHalf ? kFloatUnit : kUnit) + (scales ? kUnit : 0);
    if (kHalf && recipe.halfRoundings > 1) perMagnitude_ += recipe.halfRoundings * kUnit;
    perUlp_ = kUnit * ((kHalf ? 1 : 0) + (divides ? 1 : 0));
  }

  double operator()(Wide<T> value, Wide<T> magnitude) const {
    const double first = perMagnitude_ * static_cast<double>(magnitude) +
                         perUlp_ * powerBelow(static_cast<double>(value));
    return first * kSecondOrder + kSmallest;
  }

 private:
  static constexpr bool kHalf = sizeof(T) == 2;
  static constexpr double kUnit = 1.0 / static_cast<double>(2ull << Format<T>::kMantissa);
  static constexpr double kSmallest =
      kHalf ? 0x1p-25 : 0;                      // half the smallest subnormal of binary16
  static constexpr double kSecondOrder = 1.05;  // products of rounding errors

  double perMagnitude_;
  double perUlp_;
};

template <class T>
std::string describe(std::size_t index, T got, Wide<T> expected) {
  if constexpr (kIsInteger<T>) expected = narrow<T>(expected);
  return fmt::format("element {} is {}, expected {}", index, widen(got), expected);
}

// Counts the elements of a tile for which `matches(i)` is false.
template <class T, class Matches>
void compareTile(std::size_t from, std::size_t count, const T* got, const Wide<T>* expected,
                 Matches matches, CheckResult& found) {
  for (std::size_t i = 0; i < count; ++i) {
    if (matches(i)) continue;
    if (found.wrong++ == 0) found.first = describe(from + i, got[i], expected[i]);
  }
}

template <class T>
bool comparesBits(const Recipe& recipe) {
  return kIsInteger<T> || recipe.fill == Fill::Exact || recipe.op == Op::Max ||
         recipe.op == Op::Min;
}

template <class T>
void verifyTile(const Recipe& recipe, std::size_t from, std::size_t count, const T* got,
                CheckResult& found) {
  Reference<T> reference;
  refer(recipe, from, count, reference);
  if (comparesBits<T>(recipe)) {
    const auto equal = [&](std::size_t i) {
      return sameBits(got[i], narrow<T>(reference.value[i]));
    };
    return compareTile(from, count, got, reference.value, equal, found);
  }
  if constexpr (!kIsInteger<T>) {
    const Bound<T> bound(recipe);
    const auto close = [&](std::size_t i) {
      const Wide<T> error = absolute<T>(widen(got[i]) - reference.value[i]);
      return static_cast<double>(error) <= bound(reference.value[i], reference.magnitude[i]);
    };
    compareTile(from, count, got, reference.value, close, found);
  }
}

// Hands `got` to `tile(first element, elements, aligned copy)` in pieces.
template <class T, class Tile>
void forEachTile(std::size_t count, const void* got, Tile tile) {
  T copy[kTile];
  const auto* bytes = static_cast<const unsigned char*>(got);
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t length = std::min(kTile, count - done);
    std::memcpy(copy, bytes + done * sizeof(T), length * sizeof(T));
    tile(done, length, copy);
  }
}

}  // namespace

CheckResult verifyMoved(const Recipe& recipe, int source, std::size_t from, std::size_t count,
                        const void* got) {
  CheckResult found;
  withType(recipe.type, [&](auto zero) {
    using T = decltype(zero);
    const Draw<T> draw(recipe, source);
    forEachTile<T>(count, got, [&](std::size_t done, std::size_t length, const T* copy) {
      T sent[kTile];
      draw.fill(from + done, length, sent);
      if (std::memcmp(sent, copy, length * sizeof(T)) == 0) return;
      for (std::size_t i = 0; i < length; ++i) {
        if (sameBits(copy[i], sent[i])) continue;
        if (found.wrong++ > 0) continue;
        found.first = describe(from + done + i, copy[i], widen(sent[i])) +
                      fmt::format(" from rank {}", source);
      }
    });
  });
  return found;
}

CheckResult verifyReduced(const Recipe& recipe, std::size_t from, std::size_t count,
                          const void* got) {
  CheckResult found;
  withType(recipe.type, [&](auto zero) {
    using T = decltype(zero);
    forEachTile<T>(count, got, [&](std::size_t done, std::size_t length, const T* copy) {
      verifyTile<T>(recipe, from + done, length, copy, found);
    });
  });
  return found;
}

CheckResult verifyUntouched(const void* got, std::size_t bytes, unsigned char value,
                            const char* what) {
  CheckResult found;
  const auto* data = static_cast<const unsigned char*>(got);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (data[i] == value) continue;
    if (found.wrong++ == 0) found.first = fmt::format("byte {} {} was written", i, what);
  }
  return found;
}

std::uint64_t hashOf(const void* data, std::size_t bytes) {
  const auto* byte = static_cast<const unsigned char*>(data);
  std::uint64_t hash = bytes;
  for (std::size_t done = 0; done < bytes; done += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, byte + done, std::min(sizeof(word), bytes - done));
    hash = (std::rotl(hash, 29) ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace weft::perf
