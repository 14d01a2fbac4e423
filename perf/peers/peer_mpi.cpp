// SPDX-License-Identifier: Apache-2.0
// Open MPI and MPICH: one source, built once with each wrapper's flags.
#include <mpi.h>

#include <stdexcept>
#include <string>

#include "rank.h"

namespace weft::peers {
namespace {

void check(int result, const char* what) {
  if (result != MPI_SUCCESS) throw std::runtime_error(std::string(what) + " failed");
}

class Mpi : public Library {
 public:
  explicit Mpi(const Seat& seat) {
    check(MPI_Init(nullptr, nullptr), "MPI_Init");
    int rank = -1;
    int ranks = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank != seat.rank || ranks != seat.ranks) throw std::runtime_error("wrong MPI world");
  }
  ~Mpi() override { MPI_Finalize(); }

  void run(const Call& call) override { check(runMpi(call), collectiveName(call.collective)); }

 private:
  static int runMpi(const Call& call) {
    const int block = static_cast<int>(call.block);
    const MPI_Comm world = MPI_COMM_WORLD;
    switch (call.collective) {
      case Collective::AllReduce:
        return MPI_Allreduce(call.in, call.out, block, MPI_FLOAT, MPI_SUM, world);
      case Collective::AllGather:
        return MPI_Allgather(call.in, block, MPI_FLOAT, call.out, block, MPI_FLOAT, world);
      case Collective::ReduceScatter:
        return MPI_Reduce_scatter_block(call.in, call.out, block, MPI_FLOAT, MPI_SUM, world);
      case Collective::Broadcast:
        return MPI_Bcast(call.out, block, MPI_FLOAT, kRoot, world);
      case Collective::Reduce:
        return MPI_Reduce(call.in, call.out, block, MPI_FLOAT, MPI_SUM, kRoot, world);
      case Collective::Gather:
        return MPI_Gather(call.in, block, MPI_FLOAT, call.out, block, MPI_FLOAT, kRoot, world);
      case Collective::Scatter:
        return MPI_Scatter(call.in, block, MPI_FLOAT, call.out, block, MPI_FLOAT, kRoot, world);
      case Collective::AllToAll:
        return MPI_Alltoall(call.in, block, MPI_FLOAT, call.out, block, MPI_FLOAT, world);
    }
    return MPI_ERR_OTHER;
  }
};

}  // namespace
}  // namespace weft::peers

int main(int argc, char** argv) {
  using namespace weft::peers;
  return serveProcess(argc, argv, [](const Seat& seat) { return std::make_unique<Mpi>(seat); });
}
