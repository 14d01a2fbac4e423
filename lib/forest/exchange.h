// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "forest/units.h"

namespace weft::forest {

// Places parts out of ranks and into ranks that the switch may not join: pairs that it joins take them,
// and leave others over, until those may be joined or nobody needs them.
void exchangeRest(UnitGraph* units);

}  // namespace weft::forest
