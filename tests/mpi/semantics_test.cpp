// SPDX-License-Identifier: Apache-2.0
// Run by mpirun behind libweft-mpi: what a program may rely on beside results.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "below.h"

namespace {

int rank = 0, ranks = 1;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// A long message is on its way while its sender is in a collective that the receiver makes later: only
// the sender's own progress moves it, of MPICH the first between two ranks alone.
void messagesMoveDuringCollectives() {
  std::vector<char> message(8 << 20, static_cast<char>(rank));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < 5; ++k) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) MPI_Isend(message.data(), 8 << 20, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    if (rank == 1)
      MPI_Recv(message.data(), 8 << 20, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) require(message[12345] == 0, "the message is not rank 0's");
  }
}

// The same before there is a communicator of weft's.
void messagesMoveDuringTheFirst() {
  MPI_Comm fresh;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  std::vector<char> message(8 << 20);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) MPI_Isend(message.data(), 8 << 20, MPI_CHAR, 1, 0, fresh, &request);
  if (rank == 1) MPI_Recv(message.data(), 8 << 20, MPI_CHAR, 0, 0, fresh, MPI_STATUS_IGNORE);
  int value = 1, sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, fresh);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  require(sum == ranks, "wrong sum");
  MPI_Comm_free(&fresh);
}

// A broadcast of the same bytes by other types, one of them with gaps.
void typesMayDiffer() {
  MPI_Datatype column;
  MPI_Type_vector(4, 1, 3, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  double data[12] = {};
  if (rank == 0) {
    for (int i = 0; i < 4; ++i) data[3 * i] = i + 1;
    MPI_Bcast(data, 1, column, 0, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(data, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) require(data[i] == i + 1, "wrong column");
  }
  MPI_Type_free(&column);
}

// Data of a type with addresses of its own, at MPI_BOTTOM. MPICH's MPI_Pack wants another buffer.
void addressesMayBeAbsolute() {
  int value = 10 + rank;
  MPI_Aint address = 0;
  MPI_Get_address(&value, &address);
  const int one = 1;
  MPI_Datatype absolute;
  MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute);
  MPI_Type_commit(&absolute);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  MPI_Gather(MPI_BOTTOM, 1, absolute, all.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  require(rank != 0 || all.back() == 10 + ranks - 1, "wrong data from MPI_BOTTOM");
  MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, MPI_COMM_WORLD);
  require(value == 10, "wrong data at MPI_BOTTOM");
  MPI_Type_free(&absolute);
}

void sumOfSquares(void* in, void* inout, int* length, MPI_Datatype*) {
  for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

void othersFallThrough() {
  MPI_Op own;
  MPI_Op_create(sumOfSquares, 1, &own);
  int value = rank + 1, sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, own, MPI_COMM_WORLD);
  require(sum == ranks * (ranks + 1) / 2, "wrong sum of an operation of its own");
  MPI_Op_free(&own);
  struct {
    double value;
    int at;
  } mine{static_cast<double>(rank), rank}, most{};
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  require(most.at == ranks - 1, "wrong maximum");
}

void betweenGroups() {
  MPI_Comm half, both;
  const int side = rank == 0 ? 0 : 1;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side == 0 ? 1 : 0, 7, &both);
  int value = rank == 0 ? 42 : 0;
  MPI_Bcast(&value, 1, MPI_INT, side == 0 ? MPI_ROOT : 0, both);
  require(value == 42, "wrong value from the other group");
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

// Two threads, each on a communicator of its own.
void threadsMayCall() {
  int provided = 0;
  MPI_Query_thread(&provided);
  if (provided != MPI_THREAD_MULTIPLE) return;
  MPI_Comm comms[2];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const auto work = [](MPI_Comm comm) {
    for (int k = 0; k < 300; ++k) {
      int value = k, sum = 0;
      MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
      require(sum == k * ranks, "wrong sum in a thread");
    }
  };
  std::thread other(work, comms[1]);
  work(comms[0]);
  other.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

void communicatorsComeAndGo() {
  for (int k = 0; k < 30; ++k) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int value = 1, sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    require(sum == ranks, "wrong sum on a new communicator");
    MPI_Comm_free(&comm);
  }
}

// weft's error is the communicator's, and its error handler's.
void errorsAreReturned() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int value[2] = {1, 1}, sum[2] = {};
  MPI_Barrier(comm);
  const int result =
      MPI_Allreduce(value, sum, rank == 0 ? 1 : 2, MPI_INT, MPI_SUM, comm);  // which is wrong
  require(result != MPI_SUCCESS, "ranks that disagree were not told");
  MPI_Comm_free(&comm);
}

// Of a communicator of both, one side is this program and the other what it spawns, which is not preloaded.
void sumWithSpawned(MPI_Comm between, bool isParent) {
  MPI_Comm all;
  MPI_Intercomm_merge(between, isParent ? 0 : 1, &all);
  int together = 0, value = 1, sum = 0;
  MPI_Comm_size(all, &together);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all);
  require(sum == together, "wrong sum with what was spawned");
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&between);
}

// Debian's MPICH 4.0.2 cannot spawn.
void spawnedMayBeWithoutIt([[maybe_unused]] char* program) {
#ifdef OPEN_MPI
  MPI_Comm between;
  MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                 MPI_ERRCODES_IGNORE);
  sumWithSpawned(between, true);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    sumWithSpawned(parent, false);
    MPI_Finalize();
    return 0;
  }
  messagesMoveDuringCollectives();
  messagesMoveDuringTheFirst();
  typesMayDiffer();
  addressesMayBeAbsolute();
  othersFallThrough();
  betweenGroups();
  threadsMayCall();
  communicatorsComeAndGo();
  errorsAreReturned();
  spawnedMayBeWithoutIt(argv[0]);
  if (rank == 0) std::printf("all is as MPI says\n");
  MPI_Finalize();
  return 0;
}
