// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <span>
#include <utility>

#include "api/check.h"
#include "api/entry.h"
#include "api/submit.h"
#include "bootstrap/bootstrap.h"
#include "comm/create.h"

namespace weft {
namespace {

constexpr int kMostRanks = 65536;

static_assert(sizeof(UniqueId) == sizeof(weftUniqueId));

Status checkWorld(int nranks, int rank) {
  if (nranks < 1 || nranks > kMostRanks)
    return invalid(text("nranks is ", nranks, "; fix: 1 to ", kMostRanks));
  if (rank < 0 || rank >= nranks)
    return invalid(text("rank is ", rank, "; fix: 0 to nranks - 1 = ", nranks - 1));
  return {};
}

// All or none.
Status publish(std::span<std::shared_ptr<Communicator>> made, weftComm_t* comms) {
  std::vector<std::uintptr_t> handles(made.size());
  if (!commHandles().addAll(made, handles.data()))
    return Status::error(Code::InvalidUsage,
                         text("this process has ", CommHandles::kCapacity,
                              " communicators, or would have more; fix: destroy some"));
  for (std::size_t i = 0; i < handles.size(); ++i)
    comms[i] = reinterpret_cast<weftComm_t>(handles[i]);
  return {};
}

Status publish(std::shared_ptr<Communicator> made, weftComm_t* comm) {
  return publish(std::span(&made, 1), comm);
}

Status initRank(weftComm_t* comm, int nranks, const weftUniqueId& handle, int rank,
                const weftConfig_t* config) {
  WEFT_TRY(checkPointer(comm, "comm"));
  *comm = nullptr;
  WEFT_TRY(checkWorld(nranks, rank));
  CommConfig wanted;
  WEFT_TRY(readConfig(config, &wanted));
  UniqueId id;
  std::memcpy(id.bytes.data(), &handle, sizeof(handle));
  return submitCreation([=]() -> Status {
    std::shared_ptr<Communicator> made;
    WEFT_TRY(joinCommunicator(id, nranks, rank, wanted, &made));
    return publish(std::move(made), comm);
  });
}

Status initAll(weftComm_t* comms, int n, const weftConfig_t* config) {
  WEFT_TRY(checkPointer(comms, "comms"));
  WEFT_TRY(checkWorld(n, 0));
  std::fill_n(comms, n, nullptr);
  CommConfig wanted;
  WEFT_TRY(readConfig(config, &wanted));
  std::vector<std::shared_ptr<Communicator>> made;
  WEFT_TRY(createAll(n, wanted, &made));
  return publish(made, comms);
}

Status initFromEnv(weftComm_t* comm, const weftConfig_t* config) {
  WEFT_TRY(checkPointer(comm, "comm"));
  *comm = nullptr;
  CommConfig wanted;
  WEFT_TRY(readConfig(config, &wanted));
  std::shared_ptr<Communicator> made;
  WEFT_TRY(joinFromEnv(wanted, &made));
  return publish(std::move(made), comm);
}

// The parent's turn is taken for the whole split, since its collectives carry the set-up.
Status split(weftComm_t handle, int color, int key, weftComm_t* newcomm,
             const weftConfig_t* config) {
  std::shared_ptr<Communicator> parent;
  WEFT_TRY(shareComm(handle, &parent));
  WEFT_TRY(checkPointer(newcomm, "newcomm"));
  *newcomm = nullptr;
  if (color < 0 && color != WEFT_SPLIT_NOCOLOR)
    return invalid(text("color is ", color, "; fix: 0 or more, or WEFT_SPLIT_NOCOLOR"));
  CommConfig wanted;
  WEFT_TRY(readConfig(config, parent->config(), &wanted));
  return submitCreation([=]() -> Status {
    std::shared_ptr<Communicator> made;
    WEFT_TRY(
        runInTurn(*parent, [&] { return splitCommunicator(*parent, color, key, wanted, &made); }));
    return made ? publish(std::move(made), newcomm) : Status();
  });
}

Status destroy(weftComm_t handle) {
  if (handle == nullptr) return {};
  std::shared_ptr<Communicator> comm;
  WEFT_TRY(shareComm(handle, &comm));
  comm->shutDown();
  dropRegistrations(*comm);
  commHandles().remove(handle);
  return {};
}

Status memStats(weftComm_t handle, weftMemStats_t* stats) {
  Communicator* comm = nullptr;
  WEFT_TRY(findComm(handle, &comm));
  WEFT_TRY(checkPointer(stats, "stats"));
  if (stats->size < sizeof(stats->size))
    return invalid(text("stats->size is ", stats->size, "; fix: sizeof(weftMemStats_t)"));
  weftMemStats_t now = {sizeof(now), comm->sharedBytes(), comm->planBytes(), comm->otherBytes()};
  std::memcpy(stats, &now, std::min(stats->size, sizeof(now)));
  return {};
}

}  // namespace
}  // namespace weft

using weft::checkPointer;
using weft::Communicator;
using weft::entry;
using weft::findComm;
using weft::Status;

weftResult_t weftGetUniqueId(weftUniqueId* id) {
  return entry([&]() -> Status {
    WEFT_TRY(checkPointer(id, "id"));
    weft::UniqueId made;
    WEFT_TRY(weft::createUniqueId(&made));
    std::memcpy(id, made.bytes.data(), sizeof(*id));
    return {};
  });
}

weftResult_t weftCommInitRank(weftComm_t* comm, int nranks, weftUniqueId id, int rank) {
  return entry([&] { return weft::initRank(comm, nranks, id, rank, nullptr); });
}

weftResult_t weftCommInitRankConfig(weftComm_t* comm, int nranks, weftUniqueId id, int rank,
                                    const weftConfig_t* config) {
  return entry([&] { return weft::initRank(comm, nranks, id, rank, config); });
}

weftResult_t weftCommInitAll(weftComm_t* comms, int n, const int*) {
  return entry([&] { return weft::initAll(comms, n, nullptr); });
}

weftResult_t weftCommInitAllConfig(weftComm_t* comms, int n, const int*,
                                   const weftConfig_t* config) {
  return entry([&] { return weft::initAll(comms, n, config); });
}

weftResult_t weftCommInitFromEnv(weftComm_t* comm, const weftConfig_t* config) {
  return entry([&] { return weft::initFromEnv(comm, config); });
}

weftResult_t weftCommSplit(weftComm_t comm, int color, int key, weftComm_t* newcomm,
                           const weftConfig_t* config) {
  return entry([&] { return weft::split(comm, color, key, newcomm, config); });
}

weftResult_t weftCommFinalize(weftComm_t comm) {
  return entry([&]() -> Status {
    Communicator* found = nullptr;
    WEFT_TRY(findComm(comm, &found));
    return found->finish();
  });
}

weftResult_t weftCommDestroy(weftComm_t comm) {
  return entry([&] { return weft::destroy(comm); });
}

weftResult_t weftCommAbort(weftComm_t comm) {
  return entry([&]() -> Status {
    Communicator* found = nullptr;
    WEFT_TRY(findComm(comm, &found));
    (void)found->abort();  // what it returns is the verdict, not a failure to abort
    return {};
  });
}

weftResult_t weftCommGetAsyncError(weftComm_t comm, weftResult_t* result) {
  return entry([&]() -> Status {
    Communicator* found = nullptr;
    WEFT_TRY(findComm(comm, &found));
    WEFT_TRY(checkPointer(result, "result"));
    const Status seen = found->lookAround();
    *result = seen.ok() ? weftSuccess : weft::report(seen);
    return {};
  });
}

weftResult_t weftCommCount(weftComm_t comm, int* count) {
  return entry([&]() -> Status {
    Communicator* found = nullptr;
    WEFT_TRY(findComm(comm, &found));
    WEFT_TRY(checkPointer(count, "count"));
    *count = static_cast<int>(found->ranks());
    return {};
  });
}

weftResult_t weftCommUserRank(weftComm_t comm, int* rank) {
  return entry([&]() -> Status {
    Communicator* found = nullptr;
    WEFT_TRY(findComm(comm, &found));
    WEFT_TRY(checkPointer(rank, "rank"));
    *rank = static_cast<int>(found->rank());
    return {};
  });
}

weftResult_t weftCommLocalRank(weftComm_t comm, int* localRank, int* localCount) {
  return entry([&]() -> Status {
    Communicator* found = nullptr;
    WEFT_TRY(findComm(comm, &found));
    WEFT_TRY(checkPointer(localRank, "localRank"));
    WEFT_TRY(checkPointer(localCount, "localCount"));
    *localRank = static_cast<int>(found->localRank());
    *localCount = static_cast<int>(found->ranks());
    return {};
  });
}

weftResult_t weftCommMemStats(weftComm_t comm, weftMemStats_t* stats) {
  return entry([&] { return weft::memStats(comm, stats); });
}

weftResult_t weftRedOpCreatePreMulSum(weftRedOp_t* op, const void* scalar, weftDataType_t type,
                                      weftComm_t comm) {
  return entry([&]() -> Status {
    Communicator* found = nullptr;
    WEFT_TRY(findComm(comm, &found));
    WEFT_TRY(checkPointer(op, "op"));
    WEFT_TRY(checkPointer(scalar, "scalar"));
    WEFT_TRY(weft::checkType(type));
    *op = static_cast<weftRedOp_t>(weftNumOps +
                                   found->addScalar(static_cast<weft::DType>(type), scalar));
    return {};
  });
}

weftResult_t weftRedOpDestroy(weftRedOp_t op, weftComm_t comm) {
  return entry([&]() -> Status {
    Communicator* found = nullptr;
    WEFT_TRY(findComm(comm, &found));
    return found->dropScalar(static_cast<int>(op) - weftNumOps);
  });
}
