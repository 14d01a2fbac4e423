// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::watch {

// How many threads of this machine have lately wanted each of its cores: 1 to 16. So much longer one
// may take to come to its turn, and so much more patient is who waits for what others are about to do.
double crowd();

}  // namespace weft::watch
