// SPDX-License-Identifier: Apache-2.0
#include "tools/train/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

bool isAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

const utf8proc_uint8_t* bytesAt(std::string_view text, size_t at) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
}

}  // namespace

size_t firstNotUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (isAscii(text[at])) {
      ++at;
      continue;
    }
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(
        bytesAt(text, at), static_cast<utf8proc_ssize_t>(text.size() - at), &character);
    if (length <= 0) return at;
    at += static_cast<size_t>(length);
  }
  return std::string_view::npos;
}

void requireUtf8(std::string_view text, const std::string& file, size_t line, size_t byte) {
  const size_t at = firstNotUtf8(text);
  if (at == std::string_view::npos) return;
  const auto lines = std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
  throw Failure(Exit::kData,
                fmt::format("{}, line {}, byte {}: 0x{:02x} is not UTF-8 there; iconv -t "
                            "UTF-8 converts other encodings",
                            file, line + static_cast<size_t>(lines), byte + at,
                            static_cast<unsigned char>(text[at])));
}

std::string composed(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), isAscii)) return std::string(text);
  utf8proc_uint8_t* made = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t length =
      utf8proc_map(bytesAt(text, 0), static_cast<utf8proc_ssize_t>(text.size()), &made, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (length < 0) throw std::bad_alloc();  // the text is known to be UTF-8
  return {reinterpret_cast<const char*>(made), static_cast<size_t>(length)};
}

}  // namespace weft::train
