// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash (FNV-1a over 8-byte words) for checking that two ranks or two runs hold the same
// bits. It is not meant to resist intent.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace weft::train {

inline uint64_t fingerprint(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u ^ bytes.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, bytes.size() - at < 8 ? bytes.size() - at : 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;  // carries the high bits of a word down, which the product alone never does
  }
  return hash;
}

template <typename T>
uint64_t fingerprint(std::span<const T> values) {
  return fingerprint(std::as_bytes(values));
}

}  // namespace weft::train
