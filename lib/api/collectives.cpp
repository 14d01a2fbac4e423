// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "api/blocks.h"
#include "api/buffers.h"
#include "api/check.h"
#include "api/issue.h"
#include "api/repeat.h"
#include "api/submit.h"
#include "api/together.h"

namespace weft::api {
namespace {

using schedule::Collective;

// A collective's arguments, as the C call has them, and what they make. Made where it is used, by a
// constructor: an aggregate would be cleared as a whole first, and a copy would load by sixteen bytes
// what was just stored by eight, and wait for those stores.
struct Request {
  Request(Collective kind, const void* sendbuff, void* recvbuff, std::uint64_t many,
          weftDataType_t dtype, weftComm_t handle, weftStream_t queue, const weftOpts_t* options,
          weftRedOp_t redOp = weftSum, int rootRank = 0, const std::size_t* blocks = nullptr,
          const std::size_t* places = nullptr)
      : collective(kind),
        in(sendbuff),
        out(recvbuff),
        count(many),
        type(dtype),
        comm(handle),
        stream(queue),
        opts(options),
        op(redOp),
        root(rootRank),
        counts(blocks),
        displs(places) {}

  const Collective collective;
  const void* in;
  void* out;
  std::uint64_t count;
  weftDataType_t type;
  weftComm_t comm;
  weftStream_t stream;
  const weftOpts_t* opts;
  weftRedOp_t op;
  int root;
  const std::size_t* counts;  // of the uneven forms
  const std::size_t* displs;

  plan::Call call;
  std::array<std::byte, 8> scalar = {};
};

std::uint64_t bytesOf(const plan::Call& call, std::uint64_t count) {
  return count * reduce::sizeOf(call.type);
}

Status defer(const Request& r, const Options& options) {
  comm::Operation o;
  o.call = r.call;
  o.counts.assign(r.call.counts.begin(), r.call.counts.end());
  o.displs.assign(r.call.displs.begin(), r.call.displs.end());
  o.algorithm = options.algorithm;
  o.in = static_cast<const std::byte*>(r.in);
  o.out = static_cast<std::byte*>(r.out);
  o.scalar = r.scalar;
  return hand(r.comm, r.stream, options, std::move(o));
}

[[gnu::always_inline]] inline Status runHere(comm::Communicator& comm, const Request& r,
                                             const Options& options) {
  return runNow(comm, r.call, r.in, r.out, r.scalar.data(), options.timeoutMs, options.label);
}

// By all threads of the rank.
Status runByTeam(comm::Communicator& comm, const Request& r, const Options& options) {
  if (r.stream || inGroup()) return notTogether(comm);
  Hash arguments;
  arguments.add(plan::fingerprintOf(r.call, comm.ranks(), options.algorithm));
  for (const void* buffer : {r.in, static_cast<const void*>(r.out)})
    arguments.add(reinterpret_cast<std::uintptr_t>(buffer));
  for (const std::byte b : r.scalar) arguments.add(static_cast<std::uint64_t>(b));
  const auto describe = [&] {
    return plan::describe(r.collective, r.call.count, r.call.type, r.call.op, r.root,
                          r.counts != nullptr);
  };
  return runTogether(
      comm, {arguments, options.timeoutMs, describe, [&] { return addresses(r.in, r.out); },
             [&] { return runHere(comm, r, options); }});
}

// An entry point; `kCheck` checks its kind of buffers and completes the call.
template <Status (*kCheck)(comm::Communicator&, Request&)>
weftResult_t run(Request&& r) noexcept {
  return issueOn(r.comm, [&](comm::Communicator& comm) -> Status {
    r.call.collective = r.collective;
    r.call.count = r.count;
    r.call.root = r.root;
    WEFT_TRY(kCheck(comm, r));
    Options options;
    WEFT_TRY(readOptions(comm, r.opts, &options));
    r.call.reproducible = options.reproducible;
    if (!options.algorithm.empty()) r.call.algorithm = options.algorithm;
    if (comm.callers() != nullptr) return runByTeam(comm, r, options);
    if (r.stream || inGroup()) return defer(r, options);
    return runHere(comm, r, options);
  });
}

// Checks that hold for every collective with data; `blocks` is how many counts the larger buffer
// holds.
[[gnu::always_inline]] inline Status checkCommon(comm::Communicator& comm, Request& r,
                                                 std::uint64_t blocks) {
  WEFT_TRY(checkType(r.type));
  WEFT_TRY(checkCount(r.count, blocks, r.type));
  r.call.type = static_cast<reduce::DType>(r.type);
  if (schedule::isRooted(r.collective)) WEFT_TRY(checkRank(comm, "root", r.root));
  if (!schedule::isReduction(r.collective)) return {};
  return checkOp(comm, r.op, r.type, &r.call.op, &r.scalar);
}

Status use(Request& r, const Buffers& buffers) {
  r.in = buffers.send.start;
  r.out = const_cast<void*>(buffers.recv.start);
  return check(buffers);
}

// Send and receive buffers of equal length.
Status checkVectors(comm::Communicator& comm, Request& r) {
  WEFT_TRY(checkCommon(comm, r, 1));
  return use(r,
             buffersOfVectors(comm, r.collective, r.root, r.in, r.out, bytesOf(r.call, r.count)));
}

// One buffer holds a block, the other one of each rank.
Status checkBlocks(comm::Communicator& comm, Request& r) {
  WEFT_TRY(checkCommon(comm, r, comm.ranks()));
  return use(r, buffersOfBlocks(comm, r.collective, r.root, r.in, r.out, bytesOf(r.call, r.count)));
}

// Blocks in rank order without gaps? Where an empty one lies does not matter here nor below.
bool isPacked(std::span<const std::size_t> counts, const std::size_t* displs) {
  std::size_t at = 0;
  for (std::size_t r = 0; r < counts.size(); at += counts[r++])
    if (counts[r] != 0 && displs[r] != at) return false;
  return true;
}

Status checkUneven(comm::Communicator& comm, Request& r) {
  WEFT_TRY(checkPointer(r.counts, "counts"));
  WEFT_TRY(checkCommon(comm, r, 1));
  r.call.counts = {r.counts, comm.ranks()};
  if (r.displs && !isPacked(r.call.counts, r.displs)) r.call.displs = {r.displs, comm.ranks()};
  Extent extent;
  WEFT_TRY(measureBlocks(r.call.counts, r.displs, r.type, &extent));
  const auto sumOfFirst = [&](std::uint32_t n) {
    return std::accumulate(r.counts, r.counts + n, std::uint64_t{0});
  };
  r.call.count = sumOfFirst(comm.ranks());  // what error texts show
  const bool gathers = r.collective == Collective::AllGather;
  const std::uint64_t ownAt = r.displs ? r.displs[comm.rank()] : sumOfFirst(comm.rank());
  const auto own = static_cast<std::int64_t>(bytesOf(r.call, ownAt));
  const std::uint64_t block = bytesOf(r.call, r.counts[comm.rank()]);
  const std::uint64_t all = bytesOf(r.call, extent.end);
  return checkBuffers({r.in, gathers ? block : all}, {r.out, gathers ? all : block},
                      gathers ? own : -own, true);
}

// A rooted collective, by the short way where that will do.
template <Status (*kCheck)(comm::Communicator&, Request&), auto kBuffers>
[[gnu::always_inline]] inline weftResult_t runRooted(Collective kind, const void* sendbuff,
                                                     void* recvbuff, std::size_t count,
                                                     weftDataType_t type, weftRedOp_t op, int root,
                                                     weftComm_t comm, weftStream_t stream,
                                                     const weftOpts_t* opts) noexcept {
  weftResult_t result = weftSuccess;
  if (stream == nullptr && opts == nullptr && !inGroup() &&
      repeat<kBuffers>(comm, kind, type, op, root, count, sendbuff, recvbuff, &result))
    return result;
  return run<kCheck>({kind, sendbuff, recvbuff, count, type, comm, stream, opts, op, root});
}

Status checkNothing(comm::Communicator&, Request&) { return {}; }

TeamWords wordsOf(const engine::PairOp& pair) {
  return {[&pair] {
            return text(pair.isSend ? "send(" : "recv(", pair.count, ", ", reduce::name(pair.type),
                        ", peer=", pair.peer, ")");
          },
          [&pair] { return " at " + address(pair.data); }};
}

weftResult_t runPair(bool isSend, void* buffer, std::uint64_t count, weftDataType_t type, int peer,
                     weftComm_t handle, weftStream_t stream, const weftOpts_t* opts) noexcept {
  return issueOn(handle, [&](comm::Communicator& comm) -> Status {
    WEFT_TRY(checkType(type));
    WEFT_TRY(checkCount(count, 1, type));
    WEFT_TRY(checkRank(comm, "peer", peer));
    if (count != 0) WEFT_TRY(checkPointer(buffer, isSend ? "sendbuff" : "recvbuff"));
    Options options;
    WEFT_TRY(readOptions(comm, opts, &options));
    const engine::PairOp pair{isSend, static_cast<std::uint32_t>(peer),
                              static_cast<std::byte*>(buffer), count,
                              static_cast<reduce::DType>(type)};
    if (stream == nullptr && comm.callers() == nullptr) {
      if (!inGroup()) return runPairsNow(comm, {&pair, 1}, options.timeoutMs, options.label);
      std::shared_ptr<comm::Communicator> shared;
      WEFT_TRY(shareComm(handle, &shared));
      if (joinBatch(shared, pair, options.timeoutMs, options.label)) return {};
    }
    comm::Operation o;
    o.isPairs = true;
    o.pairs.push_back(pair);
    return issue(comm, handle, stream, options, std::move(o), wordsOf(pair));
  });
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;

weftResult_t weftAllReduce(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                           weftRedOp_t op, weftComm_t comm, weftStream_t stream,
                           const weftOpts_t* opts) {
  return run<checkVectors>(
      {Collective::AllReduce, sendbuff, recvbuff, count, type, comm, stream, opts, op});
}

weftResult_t weftBroadcast(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                           int root, weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return runRooted<checkVectors, buffersOfVectors>(Collective::Broadcast, sendbuff, recvbuff, count,
                                                   type, weftSum, root, comm, stream, opts);
}

weftResult_t weftReduce(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                        weftRedOp_t op, int root, weftComm_t comm, weftStream_t stream,
                        const weftOpts_t* opts) {
  return runRooted<checkVectors, buffersOfVectors>(Collective::Reduce, sendbuff, recvbuff, count,
                                                   type, op, root, comm, stream, opts);
}

weftResult_t weftAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           weftDataType_t type, weftComm_t comm, weftStream_t stream,
                           const weftOpts_t* opts) {
  return run<checkBlocks>(
      {Collective::AllGather, sendbuff, recvbuff, sendcount, type, comm, stream, opts});
}

weftResult_t weftReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               weftDataType_t type, weftRedOp_t op, weftComm_t comm,
                               weftStream_t stream, const weftOpts_t* opts) {
  return run<checkBlocks>(
      {Collective::ReduceScatter, sendbuff, recvbuff, recvcount, type, comm, stream, opts, op});
}

weftResult_t weftGather(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                        int root, weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return runRooted<checkBlocks, buffersOfBlocks>(Collective::Gather, sendbuff, recvbuff, count,
                                                 type, weftSum, root, comm, stream, opts);
}

weftResult_t weftScatter(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                         int root, weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return runRooted<checkBlocks, buffersOfBlocks>(Collective::Scatter, sendbuff, recvbuff, count,
                                                 type, weftSum, root, comm, stream, opts);
}

weftResult_t weftAlltoAll(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                          weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return run<checkBlocks>(
      {Collective::AllToAll, sendbuff, recvbuff, count, type, comm, stream, opts});
}

weftResult_t weftAllGatherV(const void* sendbuff, void* recvbuff, const size_t* counts,
                            const size_t* displs, weftDataType_t type, weftComm_t comm,
                            weftStream_t stream, const weftOpts_t* opts) {
  return run<checkUneven>({Collective::AllGather, sendbuff, recvbuff, 0, type, comm, stream, opts,
                           weftSum, 0, counts, displs});
}

weftResult_t weftReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* counts,
                                const size_t* displs, weftDataType_t type, weftRedOp_t op,
                                weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return run<checkUneven>({Collective::ReduceScatter, sendbuff, recvbuff, 0, type, comm, stream,
                           opts, op, 0, counts, displs});
}

weftResult_t weftBarrier(weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return run<checkNothing>(
      {Collective::Barrier, nullptr, nullptr, 0, weftUint8, comm, stream, opts});
}

weftResult_t weftSend(const void* sendbuff, size_t count, weftDataType_t type, int peer,
                      weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return runPair(true, const_cast<void*>(sendbuff), count, type, peer, comm, stream, opts);
}

weftResult_t weftRecv(void* recvbuff, size_t count, weftDataType_t type, int peer, weftComm_t comm,
                      weftStream_t stream, const weftOpts_t* opts) {
  return runPair(false, recvbuff, count, type, peer, comm, stream, opts);
}

weftResult_t weftGroupStart(void) { return entry(groupStart); }
weftResult_t weftGroupEnd(void) { return entry(groupEnd); }
