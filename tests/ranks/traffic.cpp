// SPDX-License-Identifier: Apache-2.0
#include "traffic.h"

#include <algorithm>

namespace weft::testing {
namespace {

// Everybody sends to the right and receives from the left.
weftResult_t shift(const float* in, float* out, std::size_t count, const Rank& r,
                   weftStream_t stream, const weftOpts_t* opts) {
  const int right = (r.rank + 1) % r.ranks, left = (r.rank + r.ranks - 1) % r.ranks;
  weftGroupStart();
  const weftResult_t sent = weftSend(in, count, weftFloat, right, r.comm, stream, opts);
  const weftResult_t received = weftRecv(out, count, weftFloat, left, r.comm, stream, opts);
  const weftResult_t ended = weftGroupEnd();
  if (sent != weftSuccess) return sent;
  return received != weftSuccess ? received : ended;
}

}  // namespace

weftResult_t Traffic::next(const Rank& rank, weftStream_t stream) {
  const int kind = static_cast<int>(random_() % kKinds);
  // Half of the calls are small; sizes are spread over all orders of magnitude.
  const std::size_t limit = random_() % 2 ? 64 : std::size_t{1} << random_() % 20;
  const std::size_t count = random_() % std::min(limit, maxCount_);
  return call(kind, count, rank, stream);
}

weftResult_t Traffic::call(int kind, std::size_t count, const Rank& r, weftStream_t stream,
                           const weftOpts_t* opts) {
  const std::size_t room = std::max(maxCount_, count) * static_cast<std::size_t>(r.ranks);
  if (in_.size() < room) {
    in_.resize(room, 1.0f);
    out_.resize(room);
  }
  const float* in = in_.data();
  float* out = out_.data();
  const int root = static_cast<int>(count) % r.ranks;
  const std::vector<std::size_t> counts(static_cast<std::size_t>(r.ranks), count);
  switch (kind) {
    case 0:
      return weftAllReduce(in, out, count, weftFloat, weftSum, r.comm, stream, opts);
    case 1:
      return weftAllGather(in, out, count, weftFloat, r.comm, stream, opts);
    case 2:
      return weftReduceScatter(in, out, count, weftFloat, weftMax, r.comm, stream, opts);
    case 3:
      return weftBroadcast(in, out, count, weftFloat, root, r.comm, stream, opts);
    case 4:
      return weftReduce(in, out, count, weftFloat, weftAvg, root, r.comm, stream, opts);
    case 5:
      return weftGather(in, out, count, weftFloat, root, r.comm, stream, opts);
    case 6:
      return weftScatter(in, out, count, weftFloat, root, r.comm, stream, opts);
    case 7:
      return weftAlltoAll(in, out, count, weftFloat, r.comm, stream, opts);
    case 8:
      return weftAllGatherV(in, out, counts.data(), nullptr, weftFloat, r.comm, stream, opts);
    case 9:
      return shift(in, out, count, r, stream, opts);
    default:
      return weftBarrier(r.comm, stream, opts);
  }
}

}  // namespace weft::testing
