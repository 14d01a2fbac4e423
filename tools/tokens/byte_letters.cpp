// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/byte_letters.h"

#include <utf8proc.h>

#include <array>

namespace weft::tokens {
namespace {

constexpr int32_t kNone = -1;
constexpr int32_t kFirstOther = 0x100, kOthers = 68;

constexpr bool isItself(int32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<int32_t, 256> makeLetters() {
  std::array<int32_t, 256> letters{};
  int32_t next = kFirstOther;
  for (int32_t byte = 0; byte < 256; ++byte)
    letters[static_cast<size_t>(byte)] = isItself(byte) ? byte : next++;
  return letters;
}

constexpr std::array<int32_t, 256> kLetters = makeLetters();

constexpr std::array<int32_t, kFirstOther + kOthers> makeBytes() {
  std::array<int32_t, kFirstOther + kOthers> bytes{};
  bytes.fill(kNone);
  for (size_t byte = 0; byte < 256; ++byte)
    bytes[static_cast<size_t>(kLetters[byte])] = static_cast<int32_t>(byte);
  return bytes;
}

constexpr std::array<int32_t, kFirstOther + kOthers> kBytes = makeBytes();

}  // namespace

std::string letterOf(uint8_t byte) {
  utf8proc_uint8_t utf8[4];
  const auto length = utf8proc_encode_char(kLetters[byte], utf8);
  return {reinterpret_cast<const char*>(utf8), static_cast<size_t>(length)};
}

std::optional<std::string> bytesOf(std::string_view letters) {
  std::string bytes;
  const auto* const all = reinterpret_cast<const utf8proc_uint8_t*>(letters.data());
  const auto size = static_cast<utf8proc_ssize_t>(letters.size());
  for (utf8proc_ssize_t at = 0; at < size;) {
    utf8proc_int32_t letter = kNone;
    const utf8proc_ssize_t length = utf8proc_iterate(all + at, size - at, &letter);
    if (length <= 0 || letter >= static_cast<int32_t>(kBytes.size())) return {};
    const int32_t byte = kBytes[static_cast<size_t>(letter)];
    if (byte == kNone) return {};
    bytes += static_cast<char>(byte);
    at += length;
  }
  return bytes;
}

}  // namespace weft::tokens
