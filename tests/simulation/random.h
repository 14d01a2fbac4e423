// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace weft::simulation {

// What a seed decides. Small and fast, the same numbers on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15u); }
  // From 0 to `n` - 1.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most - least + 1)));
  }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  template <class T>
  T oneOf(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

}  // namespace weft::simulation
