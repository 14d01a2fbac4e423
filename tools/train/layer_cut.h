// SPDX-License-Identifier: Apache-2.0
// Where to cut a chain of layers so that the dearest part costs as little as possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::train {

// How many items each of so many parts takes of a chain of at least as many, in order, one or more each.
// The dearest part costs as little as it can; of such cuts the parts are as equal as they can be (the sum of the
// squares of their costs is least), and of equal ones the last parts take more. Costs are 0 or above.
std::vector<int64_t> cheapestCut(std::span<const double> costs, int64_t parts);

}  // namespace weft::train
