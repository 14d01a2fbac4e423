// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.
#pragma once

#include <string>

namespace weft::train {

// "0:07", "12:34", "1:02:03", "4 d 05:06 h"
std::string durationText(double seconds);

// Four digits and a prefix: "0.1234", "12.34", "123.4k", "12.34M". Of what is small, "1.2e-05".
std::string quantityText(double value);

}  // namespace weft::train
