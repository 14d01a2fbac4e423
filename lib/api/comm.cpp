// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "api/check.h"
#include "api/entry.h"
#include "api/submit.h"
#include "bootstrap/bootstrap.h"
#include "comm/create.h"

namespace weft::api {
namespace {

constexpr int kMostRanks = 65536;
constexpr const char* kWhat = "communicators";

static_assert(sizeof(bootstrap::UniqueId) == sizeof(weftUniqueId));

Status checkWorld(int nranks, int rank) {
  if (nranks < 1 || nranks > kMostRanks)
    return invalid("nranks is ", nranks, "; fix: 1 to ", kMostRanks);
  if (rank < 0 || rank >= nranks)
    return invalid("rank is ", rank, "; fix: 0 to nranks - 1 = ", nranks - 1);
  return {};
}

Status initRank(weftComm_t* comm, int nranks, const weftUniqueId& handle, int rank,
                const weftConfig_t* config) {
  WEFT_TRY(checkPointer(comm, "comm"));
  *comm = nullptr;
  WEFT_TRY(checkWorld(nranks, rank));
  bootstrap::UniqueId id;
  std::memcpy(id.bytes.data(), &handle, sizeof(handle));
  std::function<Status()> create;
  const Status ready = tryingTwice([&]() -> Status {
    comm::CommConfig wanted;
    WEFT_TRY(readConfig(config, &wanted));
    create = [=]() -> Status {
      std::shared_ptr<comm::Communicator> made;
      WEFT_TRY(comm::joinCommunicator(id, nranks, rank, wanted, Deadline::in(wanted.initTimeoutMs),
                                      &made));
      return publish(commHandles(), std::move(made), kWhat, comm);
    };
    return {};
  });
  return ready.ok() ? submitCreation(std::move(create)) : ready;
}

Status initAll(weftComm_t* comms, int n, const weftConfig_t* config) {
  WEFT_TRY(checkPointer(comms, "comms"));
  WEFT_TRY(checkWorld(n, 0));
  std::fill_n(comms, n, nullptr);
  comm::CommConfig wanted;
  WEFT_TRY(readConfig(config, &wanted));
  std::vector<std::shared_ptr<comm::Communicator>> made;
  WEFT_TRY(comm::createAll(n, wanted, &made));
  return publish(commHandles(), std::span(made), kWhat, comms);
}

Status initFromEnv(weftComm_t* comm, const weftConfig_t* config) {
  WEFT_TRY(checkPointer(comm, "comm"));
  *comm = nullptr;
  comm::CommConfig wanted;
  WEFT_TRY(readConfig(config, &wanted));
  std::shared_ptr<comm::Communicator> made;
  WEFT_TRY(comm::joinFromEnv(wanted, &made));
  return publish(commHandles(), std::move(made), kWhat, comm);
}

// The parent's turn is taken for the whole split, since its collectives carry the set-up.
Status split(weftComm_t handle, int color, int key, weftComm_t* newcomm,
             const weftConfig_t* config) {
  std::shared_ptr<comm::Communicator> parent;
  WEFT_TRY(shareComm(handle, &parent));
  WEFT_TRY(checkPointer(newcomm, "newcomm"));
  *newcomm = nullptr;
  if (color < 0 && color != WEFT_SPLIT_NOCOLOR)
    return invalid("color is ", color, "; fix: 0 or more, or WEFT_SPLIT_NOCOLOR");
  return failingAll(*parent, [&]() -> Status {
    comm::CommConfig wanted;
    WEFT_TRY(readConfig(config, parent->config(), &wanted));
    return submitCreation(
        [=]() -> Status {
          std::shared_ptr<comm::Communicator> made;
          WEFT_TRY(runInTurn(*parent, [&] {
            return comm::splitCommunicator(*parent, color, key, wanted, &made);
          }));
          return made ? publish(commHandles(), std::move(made), kWhat, newcomm) : Status();
        },
        parent);
  });
}

Status destroy(weftComm_t handle) {
  if (handle == nullptr) return {};
  std::shared_ptr<comm::Communicator> comm;
  WEFT_TRY(shareComm(handle, &comm));
  commHandles().remove(handle);
  comm->shutDown();
  dropRegistrations(*comm);
  return {};
}

Status memStats(comm::Communicator& comm, weftMemStats_t* stats) {
  WEFT_TRY(checkPointer(stats, "stats"));
  if (stats->size < sizeof(stats->size))
    return invalid("stats->size is ", stats->size, "; fix: sizeof(weftMemStats_t)");
  weftMemStats_t now = {sizeof(now), comm.sharedBytes(), comm.planBytes(), comm.otherBytes()};
  std::memcpy(stats, &now, std::min(stats->size, sizeof(now)));
  return {};
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;
using weft::Status;
using weft::comm::Communicator;

weftResult_t weftGetUniqueId(weftUniqueId* id) {
  return entry([&]() -> Status {
    WEFT_TRY(checkPointer(id, "id"));
    weft::bootstrap::UniqueId made;
    WEFT_TRY(weft::bootstrap::createUniqueId(&made));
    std::memcpy(id, made.bytes.data(), sizeof(*id));
    return {};
  });
}

weftResult_t weftCommInitRank(weftComm_t* comm, int nranks, weftUniqueId id, int rank) {
  return weftCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

weftResult_t weftCommInitRankConfig(weftComm_t* comm, int nranks, weftUniqueId id, int rank,
                                    const weftConfig_t* config) {
  return entry([&] { return initRank(comm, nranks, id, rank, config); });
}

weftResult_t weftCommInitAll(weftComm_t* comms, int n, const int* devices) {
  return weftCommInitAllConfig(comms, n, devices, nullptr);
}

weftResult_t weftCommInitAllConfig(weftComm_t* comms, int n, const int*,
                                   const weftConfig_t* config) {
  return entry([&] { return initAll(comms, n, config); });
}

weftResult_t weftCommInitFromEnv(weftComm_t* comm, const weftConfig_t* config) {
  return entry([&] { return initFromEnv(comm, config); });
}

weftResult_t weftCommSplit(weftComm_t comm, int color, int key, weftComm_t* newcomm,
                           const weftConfig_t* config) {
  return entry([&] { return split(comm, color, key, newcomm, config); });
}

weftResult_t weftCommFinalize(weftComm_t comm) {
  return onComm(comm, [](Communicator& c) -> Status {
    WEFT_TRY(c.finish());
    return runInTurn(c, [&] { return c.awaitOthers(); });
  });
}

weftResult_t weftCommDestroy(weftComm_t comm) {
  return entry([&] { return destroy(comm); });
}

weftResult_t weftCommAbort(weftComm_t comm) {
  return onComm(comm, [](Communicator& c) -> Status {
    (void)c.abort();  // what it returns is the first error, not a failure to abort
    return {};
  });
}

weftResult_t weftCommGetAsyncError(weftComm_t comm, weftResult_t* result) {
  return onComm(comm, [&](Communicator& c) -> Status {
    WEFT_TRY(checkPointer(result, "result"));
    const Status seen = c.lookAround();
    *result = seen.ok() ? weftSuccess : report(seen);
    return {};
  });
}

weftResult_t weftCommCount(weftComm_t comm, int* count) {
  return onComm(comm,
                [&](Communicator& c) { return give(count, "count", static_cast<int>(c.ranks())); });
}

weftResult_t weftCommUserRank(weftComm_t comm, int* rank) {
  return onComm(comm,
                [&](Communicator& c) { return give(rank, "rank", static_cast<int>(c.rank())); });
}

weftResult_t weftCommLocalRank(weftComm_t comm, int* localRank, int* localCount) {
  return onComm(comm, [&](Communicator& c) -> Status {
    WEFT_TRY(checkPointer(localCount, "localCount"));
    WEFT_TRY(give(localRank, "localRank", static_cast<int>(c.localRank())));
    return give(localCount, "localCount", static_cast<int>(c.localRanks()));
  });
}

weftResult_t weftCommMemStats(weftComm_t comm, weftMemStats_t* stats) {
  return onComm(comm, [&](Communicator& c) { return memStats(c, stats); });
}

weftResult_t weftRedOpCreatePreMulSum(weftRedOp_t* op, const void* scalar, weftDataType_t type,
                                      weftComm_t comm) {
  return onComm(comm, [&](Communicator& c) -> Status {
    WEFT_TRY(checkPointer(op, "op"));
    WEFT_TRY(checkPointer(scalar, "scalar"));
    WEFT_TRY(checkType(type));
    *op = static_cast<weftRedOp_t>(weftNumOps +
                                   c.addScalar(static_cast<weft::reduce::DType>(type), scalar));
    return {};
  });
}

weftResult_t weftRedOpDestroy(weftRedOp_t op, weftComm_t comm) {
  return onComm(comm,
                [&](Communicator& c) { return c.dropScalar(static_cast<int>(op) - weftNumOps); });
}
