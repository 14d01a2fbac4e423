// SPDX-License-Identifier: Apache-2.0
// What the fuzzers share. Each is one file that defines tryInput(): it hands the input to a parser and requires what must
// hold of whatever comes out.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace weft::fuzz {

using Input = std::span<const std::uint8_t>;

// Each fuzzer's own.
void tryInput(Input input);

// Ends the process, for libFuzzer to keep the input, unless it holds.
void require(bool holds, const char* what);
// The result of a parser is a good one, or an error that says something.
bool isGood(const Status& status);

inline std::string_view textOf(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}
inline std::span<const std::byte> bytesOf(Input input) { return std::as_bytes(input); }
// What is left of it.
std::string restOf(FuzzedDataProvider& from);

// A file with this content, for parsers that open one by its name; the same file each time.
std::string fileWith(std::string_view content);

// decode() gives what encode() takes, both over bytes: what has been read once is written and read again as the same.
template <class Encode, class Decode>
void requireRoundTrip(std::span<const std::byte> bytes, Encode encode, Decode decode) {
  auto first = decode(bytes);
  if (!first) return;
  const auto written = encode(*first);
  const auto second = decode(written);
  require(second && encode(*second) == written, "what was written reads as the same");
}

}  // namespace weft::fuzz
