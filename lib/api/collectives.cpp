// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "api/check.h"
#include "api/entry.h"
#include "api/submit.h"

namespace weft {
namespace {

// A collective's arguments, from the C call to its submission.
struct Request {
  Call call;
  const void* in = nullptr;
  void* out = nullptr;
  std::array<std::byte, 8> scalar{};
  weftRedOp_t op = weftSum;
  weftComm_t comm = nullptr;
  weftStream_t stream = nullptr;
  const weftOpts_t* opts = nullptr;
};

std::uint64_t bytesOf(const Call& call, std::uint64_t count) { return count * sizeOf(call.type); }

Status defer(const Request& r, const Options& options) {
  Operation o;
  o.call = r.call;
  o.counts.assign(r.call.counts.begin(), r.call.counts.end());
  o.displs.assign(r.call.displs.begin(), r.call.displs.end());
  o.algorithm = options.algorithm;
  o.in = static_cast<const std::byte*>(r.in);
  o.out = static_cast<std::byte*>(r.out);
  o.scalar = r.scalar;
  o.timeoutMs = options.timeoutMs;
  if (options.label) o.label = options.label;
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<WorkStream> stream;
  WEFT_TRY(shareComm(r.comm, &comm));
  if (r.stream) WEFT_TRY(shareStream(r.stream, &stream));
  return submit(std::move(comm), std::move(stream), std::move(o));
}

Status dispatch(Communicator& comm, Request& r) {
  Options options;
  WEFT_TRY(readOptions(comm, r.opts, &options));
  r.call.reproducible = options.reproducible;
  r.call.algorithm = options.algorithm;
  if (r.stream || inGroup()) return defer(r, options);
  return runNow(comm, r.call, r.in, r.out, r.scalar.data(), options.timeoutMs, options.label);
}

// Checks that hold for every collective with data; `blocks` is how many counts the larger buffer
// holds.
Status checkCommon(Communicator& comm, Request& r, weftDataType_t type, std::uint64_t blocks) {
  WEFT_TRY(checkType(type));
  WEFT_TRY(checkCount(r.call.count, blocks, type));
  r.call.type = static_cast<DType>(type);
  if (isRooted(r.call.collective)) WEFT_TRY(checkRank(comm, "root", r.call.root));
  if (isReduction(r.call.collective)) WEFT_TRY(checkOp(comm, r.op, type, &r.call.op, &r.scalar));
  return {};
}

// Where the small buffer lies in the large one when a block collective is in place.
std::int64_t ownBlock(const Communicator& comm, const Call& call) {
  return static_cast<std::int64_t>(bytesOf(call, comm.rank() * call.count));
}

// Send and receive buffers of equal length.
Status vectorCall(Request&& r, weftDataType_t type) {
  Communicator* comm = nullptr;
  WEFT_TRY(findComm(r.comm, &comm));
  WEFT_TRY(checkCommon(*comm, r, type, 1));
  const bool isRoot = static_cast<std::uint32_t>(r.call.root) == comm->rank();
  const std::uint64_t bytes = bytesOf(r.call, r.call.count);
  const bool sends = r.call.collective != Collective::Broadcast || isRoot;
  const bool receives = r.call.collective != Collective::Reduce || isRoot;
  if (!sends) r.in = nullptr;
  if (!receives) r.out = nullptr;
  WEFT_TRY(checkBuffers({r.in, sends ? bytes : 0}, {r.out, receives ? bytes : 0}, 0, true));
  return dispatch(*comm, r);
}

// One buffer holds a block, the other one of each rank.
Status blockCall(Request&& r, weftDataType_t type) {
  Communicator* comm = nullptr;
  WEFT_TRY(findComm(r.comm, &comm));
  WEFT_TRY(checkCommon(*comm, r, type, comm->ranks()));
  const Collective kind = r.call.collective;
  const bool isRoot = static_cast<std::uint32_t>(r.call.root) == comm->rank();
  const bool gathers = kind == Collective::AllGather || kind == Collective::Gather;
  const std::uint64_t block = bytesOf(r.call, r.call.count);
  std::uint64_t sent = gathers ? block : block * comm->ranks();
  std::uint64_t received = gathers || kind == Collective::AllToAll ? block * comm->ranks() : block;
  if (kind == Collective::Gather && !isRoot) received = 0, r.out = nullptr;
  if (kind == Collective::Scatter && !isRoot) sent = 0, r.in = nullptr;
  const std::int64_t own = ownBlock(*comm, r.call);
  WEFT_TRY(
      checkBuffers({r.in, sent}, {r.out, received}, gathers ? own : -own, allowsInPlace(kind)));
  return dispatch(*comm, r);
}

// Blocks in rank order without gaps?
bool isPacked(std::span<const std::size_t> counts, const std::size_t* displs) {
  std::size_t at = 0;
  for (std::size_t r = 0; r < counts.size(); at += counts[r++]) {
    if (displs[r] != at) return false;
  }
  return true;
}

// Checks the blocks of an uneven call; *extent is the elements that the large buffer spans.
Status checkBlocks(std::span<const std::size_t> counts, const std::size_t* displs,
                   weftDataType_t type, std::uint64_t* extent) {
  std::vector<std::pair<std::size_t, std::size_t>> blocks;
  std::uint64_t packed = 0;
  *extent = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const std::uint64_t at = displs ? displs[r] : packed;
    WEFT_TRY(checkCount(counts[r], 1, type));
    WEFT_TRY(checkCount(at + counts[r] < at ? UINT64_MAX : at + counts[r], 1, type));
    if (counts[r] != 0) blocks.emplace_back(at, at + counts[r]);
    packed += counts[r];
    *extent = std::max(*extent, at + counts[r]);
  }
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].first < blocks[i - 1].second)
      return invalid("blocks overlap: displs and counts do not fit");
  }
  return {};
}

Status unevenCall(Request&& r, const std::size_t* counts, const std::size_t* displs,
                  weftDataType_t type) {
  Communicator* comm = nullptr;
  WEFT_TRY(findComm(r.comm, &comm));
  WEFT_TRY(checkPointer(counts, "counts"));
  WEFT_TRY(checkCommon(*comm, r, type, 1));
  r.call.counts = {counts, comm->ranks()};
  if (displs && !isPacked(r.call.counts, displs)) r.call.displs = {displs, comm->ranks()};
  std::uint64_t extent = 0;
  WEFT_TRY(checkBlocks(r.call.counts, displs, type, &extent));
  std::uint64_t ownAt = 0;
  for (std::uint32_t i = 0; i < comm->rank(); ++i) ownAt += counts[i];
  if (displs) ownAt = displs[comm->rank()];
  for (const std::size_t n : r.call.counts) r.call.count += n;  // what error texts show
  const bool gathers = r.call.collective == Collective::AllGather;
  const std::int64_t own = static_cast<std::int64_t>(bytesOf(r.call, ownAt));
  const std::uint64_t block = bytesOf(r.call, counts[comm->rank()]);
  const std::uint64_t all = bytesOf(r.call, extent);
  WEFT_TRY(checkBuffers({r.in, gathers ? block : all}, {r.out, gathers ? all : block},
                        gathers ? own : -own, true));
  return dispatch(*comm, r);
}

Request request(Collective collective, const void* in, void* out, std::uint64_t count,
                weftComm_t comm, weftStream_t stream, const weftOpts_t* opts,
                weftRedOp_t op = weftSum, int root = 0) {
  Request r;
  r.call.collective = collective;
  r.call.count = count;
  r.call.root = root;
  r.in = in;
  r.out = out;
  r.op = op;
  r.comm = comm;
  r.stream = stream;
  r.opts = opts;
  return r;
}

Status pairCall(bool isSend, void* buffer, std::uint64_t count, weftDataType_t type, int peer,
                weftComm_t handle, weftStream_t streamHandle, const weftOpts_t* opts) {
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<WorkStream> stream;
  WEFT_TRY(shareComm(handle, &comm));
  if (streamHandle) WEFT_TRY(shareStream(streamHandle, &stream));
  WEFT_TRY(checkType(type));
  WEFT_TRY(checkCount(count, 1, type));
  WEFT_TRY(checkRank(*comm, "peer", peer));
  if (count != 0) WEFT_TRY(checkPointer(buffer, isSend ? "sendbuff" : "recvbuff"));
  Options options;
  WEFT_TRY(readOptions(*comm, opts, &options));
  Operation o;
  o.isPairs = true;
  o.pairs.push_back({isSend, static_cast<std::uint32_t>(peer), static_cast<std::byte*>(buffer),
                     count, static_cast<DType>(type)});
  o.timeoutMs = options.timeoutMs;
  if (options.label) o.label = options.label;
  return submit(std::move(comm), std::move(stream), std::move(o));
}

}  // namespace
}  // namespace weft

using weft::Collective;
using weft::entry;
using weft::request;

weftResult_t weftAllReduce(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                           weftRedOp_t op, weftComm_t comm, weftStream_t stream,
                           const weftOpts_t* opts) {
  return entry([&] {
    return weft::vectorCall(
        request(Collective::AllReduce, sendbuff, recvbuff, count, comm, stream, opts, op), type);
  });
}

weftResult_t weftBroadcast(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                           int root, weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return entry([&] {
    return weft::vectorCall(request(Collective::Broadcast, sendbuff, recvbuff, count, comm, stream,
                                    opts, weftSum, root),
                            type);
  });
}

weftResult_t weftReduce(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                        weftRedOp_t op, int root, weftComm_t comm, weftStream_t stream,
                        const weftOpts_t* opts) {
  return entry([&] {
    return weft::vectorCall(
        request(Collective::Reduce, sendbuff, recvbuff, count, comm, stream, opts, op, root), type);
  });
}

weftResult_t weftAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           weftDataType_t type, weftComm_t comm, weftStream_t stream,
                           const weftOpts_t* opts) {
  return entry([&] {
    return weft::blockCall(
        request(Collective::AllGather, sendbuff, recvbuff, sendcount, comm, stream, opts), type);
  });
}

weftResult_t weftReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               weftDataType_t type, weftRedOp_t op, weftComm_t comm,
                               weftStream_t stream, const weftOpts_t* opts) {
  return entry([&] {
    return weft::blockCall(
        request(Collective::ReduceScatter, sendbuff, recvbuff, recvcount, comm, stream, opts, op),
        type);
  });
}

weftResult_t weftGather(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                        int root, weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return entry([&] {
    return weft::blockCall(
        request(Collective::Gather, sendbuff, recvbuff, count, comm, stream, opts, weftSum, root),
        type);
  });
}

weftResult_t weftScatter(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                         int root, weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return entry([&] {
    return weft::blockCall(
        request(Collective::Scatter, sendbuff, recvbuff, count, comm, stream, opts, weftSum, root),
        type);
  });
}

weftResult_t weftAlltoAll(const void* sendbuff, void* recvbuff, size_t count, weftDataType_t type,
                          weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return entry([&] {
    return weft::blockCall(
        request(Collective::AllToAll, sendbuff, recvbuff, count, comm, stream, opts), type);
  });
}

weftResult_t weftAllGatherV(const void* sendbuff, void* recvbuff, const size_t* counts,
                            const size_t* displs, weftDataType_t type, weftComm_t comm,
                            weftStream_t stream, const weftOpts_t* opts) {
  return entry([&] {
    return weft::unevenCall(
        request(Collective::AllGather, sendbuff, recvbuff, 0, comm, stream, opts), counts, displs,
        type);
  });
}

weftResult_t weftReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* counts,
                                const size_t* displs, weftDataType_t type, weftRedOp_t op,
                                weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return entry([&] {
    return weft::unevenCall(
        request(Collective::ReduceScatter, sendbuff, recvbuff, 0, comm, stream, opts, op), counts,
        displs, type);
  });
}

weftResult_t weftBarrier(weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return entry([&]() -> weft::Status {
    weft::Communicator* found = nullptr;
    WEFT_TRY(weft::findComm(comm, &found));
    weft::Request r = request(Collective::Barrier, nullptr, nullptr, 0, comm, stream, opts);
    return weft::dispatch(*found, r);
  });
}

weftResult_t weftSend(const void* sendbuff, size_t count, weftDataType_t type, int peer,
                      weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return entry([&] {
    return weft::pairCall(true, const_cast<void*>(sendbuff), count, type, peer, comm, stream, opts);
  });
}

weftResult_t weftRecv(void* recvbuff, size_t count, weftDataType_t type, int peer, weftComm_t comm,
                      weftStream_t stream, const weftOpts_t* opts) {
  return entry(
      [&] { return weft::pairCall(false, recvbuff, count, type, peer, comm, stream, opts); });
}

weftResult_t weftGroupStart(void) { return entry(weft::groupStart); }
weftResult_t weftGroupEnd(void) { return entry(weft::groupEnd); }
