// SPDX-License-Identifier: Apache-2.0
// GPT-2's files write a byte as a letter that can be seen: those of 33 to 126, 161 to 172 and 174 to 255 as
// themselves, in Latin-1, and the other 68 in ascending order as U+0100 and on, so that a space is U+0120.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::tokens {

// In UTF-8.
std::string letterOf(uint8_t byte);

// The bytes that letters stand for; nothing if some letter stands for none.
std::optional<std::string> bytesOf(std::string_view letters);

}  // namespace weft::tokens
