// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>
#include <weft/weft.h>

#include <cstddef>
#include <optional>

namespace weft::mpi {

// An MPI reduction in weft's terms: each element of MPI's is `width` of weft's. Of a logical one elements
// of `logicalBytes` become a byte that is 0 or 1.
struct Reduction {
  weftDataType_t type;
  weftRedOp_t op;
  std::size_t width;
  std::size_t logicalBytes = 0;
};

// Nothing where weft has none: then all ranks find so, as they must pass the same operation, and types
// of the same signature, which are predefined ones for predefined operations.
std::optional<Reduction> reductionOf(MPI_Datatype type, MPI_Op op);

// Is an element of this predefined type one run of bytes?
bool isDensePredefined(MPI_Datatype type);

}  // namespace weft::mpi
