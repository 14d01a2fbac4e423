// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace weft::test {

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The index of documents of such lengths, in tokens of two bytes, one after the other.
inline std::string indexOf(const std::vector<std::int32_t>& lengths) {
  std::string bytes("MMIDIDX\0\0", 9);
  put(bytes, std::uint64_t{1});
  bytes += '\x08';
  put(bytes, std::uint64_t{lengths.size()});
  put(bytes, std::uint64_t{lengths.size() + 1});
  for (const std::int32_t length : lengths) put(bytes, length);
  std::int64_t at = 0;
  for (const std::int32_t length : lengths) {
    put(bytes, at);
    at += 2 * length;
  }
  for (std::uint64_t i = 0; i <= lengths.size(); ++i) put(bytes, i);
  return bytes;
}

inline std::string tokensOf(const std::vector<std::uint16_t>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size()};
}

}  // namespace weft::test
