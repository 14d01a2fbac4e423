// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <string>

#include "below.h"
#include "calls.h"
#include "communicators.h"

namespace weft::mpi {
namespace {

// WEFTMPI_REPORT: 0 for no line, all for one of each rank; else rank 0 writes one.
bool reports(int rank) {
  const char* const wish = std::getenv("WEFTMPI_REPORT");
  if (wish == nullptr) return rank == 0;
  return std::strcmp(wish, "all") == 0 || (rank == 0 && std::strcmp(wish, "0") != 0);
}

void report() {
  int rank = 0, ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!reports(rank)) return;
  std::fprintf(stderr, "weft-mpi: rank %d of %d: %s\n", rank, ranks, describeCalls().c_str());
}

}  // namespace
}  // namespace weft::mpi

extern "C" int MPI_Finalize() {
  weft::mpi::report();
  weft::mpi::detachAll();
  return WEFT_MPI_BELOW(Finalize)();
}
WEFT_MPI_BOTH_NAMES(Finalize);
