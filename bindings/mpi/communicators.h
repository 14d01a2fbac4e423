// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>
#include <weft/weft.h>

#include "calls.h"

namespace weft::mpi {

// weft's end of an MPI communicator, its attribute from the first collective on; freed with it.
struct Attached {
  explicit Attached(MPI_Comm of) : below(of) {}

  MPI_Comm below;
  weftComm_t comm = nullptr;  // null: its collectives run below
  Why why = Why::NotMade;     // then
  int rank = 0, ranks = 1;
};

// Makes it, if this is the first collective on `comm`: all ranks are in the same call, whatever its
// types and counts, so they meet here. Null for what is no communicator.
const Attached* attachedTo(MPI_Comm comm);

// What a call on weft returns to the program: after an error, whose sentence goes to stderr, what the
// communicator's error handler leaves.
int resultOf(MPI_Comm comm, const Attached& attached, weftResult_t result);

// Before MPI_Finalize: in the order in which they were made.
void detachAll();

}  // namespace weft::mpi
