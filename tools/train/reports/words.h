// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace weft::train {

// "0:07", "12:34", "1:02:03", "4 d 05:06 h"
std::string durationText(double seconds);

// Four digits and a prefix: "0.1234", "12.34", "123.4k", "12.34M". Of what is small, "1.2e-05".
std::string quantityText(double value);

// 1234567 as "1,234,567".
std::string grouped(uint64_t number);

// This machine's date and time, to the minute: "2026-11-26 12:03".
std::string nowText();

}  // namespace weft::train
