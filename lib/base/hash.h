// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::inline base {

// A 64-bit fingerprint built word by word (the finalizer of SplitMix64, Steele et al., OOPSLA
// 2014). For telling calls apart by accident-proof odds, not against an adversary.
class Hash {
 public:
  Hash& add(std::uint64_t word) {
    state_ += word + 0x9e3779b97f4a7c15u;
    state_ = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
    state_ = (state_ ^ (state_ >> 27)) * 0x94d049bb133111ebu;
    state_ ^= state_ >> 31;
    return *this;
  }
  Hash& add(std::string_view text) {
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    return add(text.size());
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace weft::inline base
