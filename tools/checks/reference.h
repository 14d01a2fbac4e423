// SPDX-License-Identifier: Apache-2.0
// Random inputs whose reduction every type holds exactly, and that reduction by plain scalar code.
#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::checks {

const char* nameOf(weftDataType_t type);  // "f32"
const char* nameOf(weftRedOp_t op);       // "sum"

// The same arguments give the same bytes.
std::vector<std::byte> inputOf(weftDataType_t type, weftRedOp_t op, std::size_t count,
                               std::uint64_t seed, int rank);
std::vector<std::byte> resultOf(weftDataType_t type, weftRedOp_t op, std::size_t count,
                                std::uint64_t seed, int ranks);

}  // namespace weft::checks
