// SPDX-License-Identifier: Apache-2.0
// The uneven calls in which each rank passes its own counts.
#include <utility>

#include "api/blocks.h"
#include "api/check.h"
#include "api/issue.h"
#include "base/invalid.h"
#include "base/text.h"
#include "engine/exchange.h"

namespace weft::api {
namespace {

using schedule::Collective;

// One side of a call, as the C call has it; of no blocks where this rank does not take part.
struct Side {
  const void* buffer;
  std::span<const std::size_t> counts;
  const std::size_t* displs;
};

struct Exchanged {
  Collective collective;
  weftDataType_t type;
  int root;
  weftComm_t comm;
  weftStream_t stream;
  const weftOpts_t* opts;
};

Status checkSide(const Side& side, weftDataType_t type, bool isRead, Range* range) {
  Extent extent;
  WEFT_TRY(measureBlocks(side.counts, side.displs, type, &extent, isRead));
  const std::uint64_t bytes = reduce::sizeOf(static_cast<reduce::DType>(type));
  *range = {side.buffer, (extent.end - extent.begin) * bytes};
  if (range->bytes == 0) return {};
  WEFT_TRY(checkPointer(side.buffer, isRead ? "sendbuff" : "recvbuff"));
  range->start = static_cast<const std::byte*>(side.buffer) + extent.begin * bytes;
  return {};
}

engine::Blocks blocksOf(const Side& side) {
  auto* const start = static_cast<std::byte*>(const_cast<void*>(side.buffer));
  if (side.displs == nullptr) return {start, side.counts, {}};
  return {start, side.counts, {side.displs, side.counts.size()}};
}

// What a rank sends to itself.
Status checkOwn(const comm::Communicator& comm, Collective collective, const Side& in,
                const Side& out) {
  if (in.counts.empty() || out.counts.empty()) return {};
  const std::size_t sent = in.counts[schedule::hasOneIn(collective) ? 0 : comm.rank()];
  const std::size_t received = out.counts[schedule::hasOneOut(collective) ? 0 : comm.rank()];
  if (sent == received) return {};
  return invalid("rank ", comm.rank(), " sends ", sent, " elements to itself and expects ",
                 received, "; fix: the same count on both sides");
}

// Where a rooted call has this rank's block in the root's buffer.
std::int64_t ownOffset(const comm::Communicator& comm, const Side& large, std::uint64_t bytes) {
  if (large.counts.size() <= comm.rank()) return 0;
  std::uint64_t at = 0;
  for (std::size_t r = 0; r < comm.rank(); ++r) at += large.counts[r];
  return static_cast<std::int64_t>((large.displs ? large.displs[comm.rank()] : at) * bytes);
}

// In place: the root's own block, where it is in the large buffer.
bool isInPlace(const comm::Communicator& comm, const Exchanged& a, const Side& in,
               const Side& out) {
  if (!schedule::isRooted(a.collective)) return false;
  const std::uint64_t bytes = reduce::sizeOf(static_cast<reduce::DType>(a.type));
  const bool gathers = a.collective == Collective::Gather;
  const auto* const large = static_cast<const std::byte*>(gathers ? out.buffer : in.buffer);
  const void* const small = gathers ? in.buffer : out.buffer;
  return large != nullptr && large + ownOffset(comm, gathers ? out : in, bytes) == small;
}

Status checkBoth(const comm::Communicator& comm, const Exchanged& a, const Side& in,
                 const Side& out) {
  Range sent, received;
  WEFT_TRY(checkSide(in, a.type, true, &sent));
  WEFT_TRY(checkSide(out, a.type, false, &received));
  WEFT_TRY(checkOwn(comm, a.collective, in, out));
  if (isInPlace(comm, a, in, out)) return {};
  return checkBuffers(sent, received, 0, false);
}

Status checkAlgorithm(const plan::Call& call, std::string_view algorithm) {
  if (algorithm.empty() || algorithm == "direct") return {};
  return Status::error(Code::InvalidUsage, "unknown algorithm '", algorithm, "' for ",
                       plan::collectiveName(call.collective, true), "; fix: direct, or none");
}

Status start(comm::Communicator& comm, const Exchanged& a, const Side& in, const Side& out) {
  WEFT_TRY(checkBoth(comm, a, in, out));
  Options options;
  WEFT_TRY(readOptions(comm, a.opts, &options));
  comm::Operation o;
  o.call.collective = a.collective;
  o.call.type = static_cast<reduce::DType>(a.type);
  o.call.root = a.root;
  o.call.exchanges = true;
  WEFT_TRY(checkAlgorithm(o.call, options.algorithm));
  o.pairs =
      engine::batchOf({a.collective, comm.rank(), comm.ranks(), static_cast<std::uint32_t>(a.root),
                       blocksOf(in), blocksOf(out), o.call.type});
  const auto describe = [&] {
    return plan::describe(a.collective, 0, static_cast<reduce::DType>(a.type), {}, a.root, true);
  };
  return issue(comm, a.comm, a.stream, options, std::move(o),
               {describe, [&] { return addresses(in.buffer, out.buffer); }});
}

std::span<const std::size_t> ofAll(const comm::Communicator& comm, const std::size_t* counts) {
  return {counts, comm.ranks()};
}

bool isRoot(const comm::Communicator& comm, int root) {
  return comm.rank() == static_cast<std::uint32_t>(root);
}

Status checkRooted(const comm::Communicator& comm, const Exchanged& a, const std::size_t* counts,
                   const char* name) {
  WEFT_TRY(checkType(a.type));
  WEFT_TRY(checkRank(comm, "root", a.root));
  return isRoot(comm, a.root) ? checkPointer(counts, name) : Status();
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;
using weft::Status;
using weft::comm::Communicator;
using weft::schedule::Collective;

weftResult_t weftGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                         const size_t* recvcounts, const size_t* displs, weftDataType_t type,
                         int root, weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return issueOn(comm, [&](Communicator& c) -> Status {
    const Exchanged a{Collective::Gather, type, root, comm, stream, opts};
    WEFT_TRY(checkRooted(c, a, recvcounts, "recvcounts"));
    const Side in{sendbuff, {&sendcount, 1}, nullptr};
    return start(c, a, in, isRoot(c, root) ? Side{recvbuff, ofAll(c, recvcounts), displs} : Side{});
  });
}

weftResult_t weftScatterV(const void* sendbuff, const size_t* sendcounts, const size_t* displs,
                          void* recvbuff, size_t recvcount, weftDataType_t type, int root,
                          weftComm_t comm, weftStream_t stream, const weftOpts_t* opts) {
  return issueOn(comm, [&](Communicator& c) -> Status {
    const Exchanged a{Collective::Scatter, type, root, comm, stream, opts};
    WEFT_TRY(checkRooted(c, a, sendcounts, "sendcounts"));
    const Side out{recvbuff, {&recvcount, 1}, nullptr};
    return start(c, a, isRoot(c, root) ? Side{sendbuff, ofAll(c, sendcounts), displs} : Side{},
                 out);
  });
}

weftResult_t weftAlltoAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                           void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                           weftDataType_t type, weftComm_t comm, weftStream_t stream,
                           const weftOpts_t* opts) {
  return issueOn(comm, [&](Communicator& c) -> Status {
    const Exchanged a{Collective::AllToAll, type, 0, comm, stream, opts};
    WEFT_TRY(checkType(type));
    WEFT_TRY(checkPointer(sendcounts, "sendcounts"));
    WEFT_TRY(checkPointer(recvcounts, "recvcounts"));
    return start(c, a, {sendbuff, ofAll(c, sendcounts), sdispls},
                 {recvbuff, ofAll(c, recvcounts), rdispls});
  });
}
