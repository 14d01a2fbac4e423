// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::watch {

// What getloadavg says to this program, in threads a core; below 0: nobody says it.
extern double loadOfTest;

}  // namespace weft::watch
