// SPDX-License-Identifier: Apache-2.0
#include "communicators.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "below.h"

namespace weft::mpi {
namespace {

std::mutex madeMutex;
std::vector<Attached*> made;     // by `madeMutex`, in order
std::atomic<unsigned> freed{0};  // communicators: what threads remember of handles is stale

// MPI promises that messages move while their sender is in any call, as in one that waits on weft. Asked for what is
// there, or on MPI_COMM_SELF, MPICH moves nothing: so for a message to oneself that nobody has sent.
void progressBelow(void* attached) {
  const auto* const a = static_cast<const Attached*>(attached);
  constexpr int kLastTag = 32767;  // that all MPIs have
  int flag = 0;
  PMPI_Iprobe(a->rank, kLastTag, a->below, &flag, MPI_STATUS_IGNORE);
}

weftConfig_t configOf(Attached* a) {
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.whileWaiting = progressBelow;
  config.whileWaitingContext = a;
  // A program of MPI may wait as long as it likes.
  if (std::getenv("WEFT_TIMEOUT_MS") == nullptr) config.timeoutMs = INT_MAX;
  return config;
}

void warn(const char* what) {
  std::fprintf(stderr, "weft-mpi: the collectives of a communicator run on the MPI below: %s\n",
               what);
}

// Rank 0's id, to all, who have come when this returns: whoever joined earlier would make no
// progress of messages that the others wait for.
bool shareId(MPI_Comm comm, const Attached& a, weftUniqueId* id) {
  struct {
    int isGood;
    weftUniqueId id;
  } told{};
  if (a.rank == 0) {
    told.isGood = weftGetUniqueId(&told.id) == weftSuccess;
    if (!told.isGood) warn(weftGetLastError(nullptr));
  }
  WEFT_MPI_BELOW(Bcast)(&told, sizeof told, MPI_BYTE, 0, comm);
  WEFT_MPI_BELOW(Barrier)(comm);
  *id = told.id;
  return told.isGood != 0;
}

// All ranks get it, or none.
void join(MPI_Comm comm, Attached* a) {
  weftUniqueId id;
  if (!shareId(comm, *a, &id)) return;
  const weftConfig_t config = configOf(a);
  const weftResult_t joined = weftCommInitRankConfig(&a->comm, a->ranks, id, a->rank, &config);
  if (joined != weftSuccess && a->rank == 0) warn(weftGetLastError(nullptr));
  int isGood = joined == weftSuccess, allGood = 0;
  WEFT_MPI_BELOW(Allreduce)(&isGood, &allGood, 1, MPI_INT, MPI_MIN, comm);
  if (allGood != 0) return;
  weftCommDestroy(a->comm);
  a->comm = nullptr;
}

int release(MPI_Comm, int, void* attribute, void*) {
  const std::unique_ptr<Attached> a(static_cast<Attached*>(attribute));
  const std::lock_guard lock(madeMutex);
  std::erase(made, a.get());
  freed.fetch_add(1, std::memory_order_relaxed);
  weftCommDestroy(a->comm);
  return MPI_SUCCESS;
}

int keyOfAttribute() {
  static const int key = [] {
    int created = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, release, &created, nullptr);
    return created;
  }();
  return key;
}

// Processes that were spawned or connected may be without this library: what is preloaded is not
// handed on to them. All ranks find the same, as some rank is a stranger to each.
bool hasStrangers(MPI_Comm comm, int ranks) {
  MPI_Group ours, world;
  PMPI_Comm_group(comm, &ours);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> numbers(static_cast<std::size_t>(ranks)), inWorld(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  PMPI_Group_translate_ranks(ours, ranks, numbers.data(), world, inWorld.data());
  PMPI_Group_free(&ours);
  PMPI_Group_free(&world);
  return std::find(inWorld.begin(), inWorld.end(), MPI_UNDEFINED) != inWorld.end();
}

Attached* attach(MPI_Comm comm) {
  auto a = std::make_unique<Attached>(comm);
  int isInter = 0;
  PMPI_Comm_test_inter(comm, &isInter);
  PMPI_Comm_rank(comm, &a->rank);
  PMPI_Comm_size(comm, &a->ranks);
  if (isInter != 0)
    a->why = Why::Intercomm;
  else if (a->ranks == 1)
    a->why = Why::OneRank;
  else if (hasStrangers(comm, a->ranks))
    a->why = Why::Strangers;
  else
    join(comm, a.get());
  if (PMPI_Comm_set_attr(comm, keyOfAttribute(), a.get()) != MPI_SUCCESS) std::abort();
  const std::lock_guard lock(madeMutex);
  made.push_back(a.get());
  return a.release();
}

}  // namespace

const Attached* attachedTo(MPI_Comm comm) {
  struct Last {
    MPI_Comm comm = MPI_COMM_NULL;
    unsigned freed = 0;
    const Attached* attached = nullptr;
  };
  thread_local Last last;
  const unsigned now = freed.load(std::memory_order_relaxed);
  if (comm == last.comm && now == last.freed && last.attached != nullptr) return last.attached;
  if (comm == MPI_COMM_NULL) return nullptr;
  void* attribute = nullptr;
  int isThere = 0;
  if (PMPI_Comm_get_attr(comm, keyOfAttribute(), &attribute, &isThere) != MPI_SUCCESS)
    return nullptr;
  Attached* const found = isThere != 0 ? static_cast<Attached*>(attribute) : attach(comm);
  last = {comm, now, found};
  return found;
}

int resultOf(MPI_Comm comm, const Attached& attached, weftResult_t result) {
  if (result == weftSuccess) return MPI_SUCCESS;
  std::fprintf(stderr, "weft-mpi: rank %d: %s\n", attached.rank, weftGetLastError(attached.comm));
  const int code = result == weftOutOfMemory ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

void detachAll() {
  const std::lock_guard lock(madeMutex);
  for (Attached* a : made) {
    const weftResult_t ended = a->comm == nullptr ? weftSuccess : weftCommFinalize(a->comm);
    if (ended != weftSuccess)
      std::fprintf(stderr, "weft-mpi: rank %d: %s\n", a->rank, weftGetLastError(a->comm));
    weftCommDestroy(a->comm);
    a->comm = nullptr;
  }
}

}  // namespace weft::mpi
