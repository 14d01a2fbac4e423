// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/unique_id.h"

namespace weft::launch {

// Who this process is, by its launcher's variables.
struct Identity {
  int rank = 0;
  int size = 1;
  int localRank = -1;  // -1: the launcher does not say
  int localSize = -1;
  std::string source;  // which launcher was believed: "torchrun"
  std::string
      conflicts;  // what other launchers' variables say differently, for people; often empty
};

// Asks, in this order, and believes the first that is there (the innermost: torchrun under srun
// knows the ranks, srun only the nodes):
//   WEFT_RANK, WEFT_SIZE | torchrun | PMIx (Open MPI, srun --mpi=pmix) | PMI (MPICH, srun
//   --mpi=pmi2) | Slurm | AWS Batch multi-node | one rank alone
// InvalidArgument if the variables of that one are incomplete or make no sense. Logs one INFO line
// with the choice and the conflicts.
Status identify(Identity* identity);

// The unique id of the communicator of all ranks of `identity`, by that launcher's means: its
// key-value store, or an address that all ranks can compute. Collective over the job; every rank
// must call it the same number of times.
Status rendezvousId(const Identity& identity, bootstrap::UniqueId* id, Deadline deadline);

}  // namespace weft::launch
