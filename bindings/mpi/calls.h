// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// How many calls went where, of this process.
namespace weft::mpi {

enum class Name {
  Allreduce,
  Reduce,
  ReduceScatter,
  ReduceScatterBlock,
  Bcast,
  Allgather,
  Allgatherv,
  Gather,
  Gatherv,
  Scatter,
  Scatterv,
  Alltoall,
  Alltoallv,
  Barrier,
  Count_
};

// Why a call went to the library below.
enum class Why {
  OneRank,    // of a communicator of one rank
  Intercomm,  // of two groups
  Strangers,  // with processes that this program's mpirun has not started
  NotMade,    // weft's communicator could not be made
  TypeOrOp,   // of a reduction: weft has no such type, operation or both
  Arguments,  // which MPI refuses, or may: it says so
  Count_
};

void countHere(Name name);
void countBelow(Name name, Why why);

// "1204 collectives on weft (Allreduce 1200, Bcast 4), 3 below (Allreduce 3: type or operation 3)"
std::string describeCalls();

}  // namespace weft::mpi
