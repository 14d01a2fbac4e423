// SPDX-License-Identifier: Apache-2.0
#include "checked_call.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace weft::testing {
namespace {

constexpr std::byte kGuard{0xA5};
constexpr std::size_t kGuardBytes = 128;

bool isGuard(std::byte b) { return b == kGuard; }

// Alignments differ from rank to rank and from case to case.
std::size_t shiftOf(const Case& c, const Rank& r) {
  return static_cast<std::size_t>(c.seed) + static_cast<std::size_t>(r.rank) * 5;
}

bool isShared(const Case& c, const Rank& r) {
  return c.memory == Memory::Shared || (c.memory == Memory::Mixed && r.rank % 2 == 0);
}

// Memory of weftMemAlloc that this thread has used before: to allocate it takes longer than a call.
class Spare {
 public:
  ~Spare() {
    for (const std::span<std::byte> piece : pieces_) weftMemFree(piece.data());
  }
  std::span<std::byte> take(std::size_t bytes) {
    for (std::span<std::byte>& piece : pieces_) {
      if (piece.size() < bytes) continue;
      const std::span<std::byte> taken = std::exchange(piece, pieces_.back());
      pieces_.pop_back();
      return taken;
    }
    const std::size_t more = std::max<std::size_t>(2 * bytes, 1 << 16);
    void* memory = nullptr;
    if (weftMemAlloc(&memory, more) != weftSuccess) std::abort();
    return {static_cast<std::byte*>(memory), more};
  }
  void give(std::span<std::byte> piece) { pieces_.push_back(piece); }

 private:
  std::vector<std::span<std::byte>> pieces_;
};
thread_local Spare spare;

}  // namespace

Guarded::Guarded(std::size_t bytes, std::size_t shift, bool shared)
    : bytes_(bytes), at_(kGuardBytes + shift) {
  const std::size_t all = at_ + bytes + kGuardBytes;
  if (shared)
    shared_ = spare.take(all);
  else
    own_.resize(all);
  all_ = (shared ? shared_ : std::span(own_)).first(all);
  std::fill(all_.begin(), all_.end(), kGuard);
}

Guarded::~Guarded() {
  if (!shared_.empty()) spare.give(shared_);
}

bool Guarded::isIntact() const {
  const auto begin = all_.begin();
  return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(at_), isGuard) &&
         std::all_of(begin + static_cast<std::ptrdiff_t>(at_ + bytes_), all_.end(), isGuard);
}

void Guarded::close() {
  bytes_ = 0;
  std::fill(all_.begin(), all_.end(), kGuard);
}

CheckedCall::CheckedCall(const Case& c, const Rank& r)
    : c_(c),
      r_(r),
      send_(sendCount(c, r.rank) * sizeOf(c.type), shiftOf(c, r) % 13, isShared(c, r)),
      recv_(recvCount(c, r.rank) * sizeOf(c.type), shiftOf(c, r) % 17, isShared(c, r)) {
  const std::size_t sent = sendCount(c, r.rank), received = recvCount(c, r.rank);
  in_ = sent ? send_.data() : nullptr;
  out_ = received ? recv_.data() : nullptr;
  if (c.inPlace && sent && received) {
    apart_ = false;
    const std::size_t own = ownOffset(c, r.rank) * sizeOf(c.type);
    if (received >= sent)
      in_ = out_ + own;
    else
      out_ = in_ + own;
  }
  fill();
}

void CheckedCall::fill() {
  for (std::size_t i = 0; i < sendCount(c_, r_.rank); ++i)
    store(in_ + i * sizeOf(c_.type), c_.type, inputAt(c_, r_.rank, i));
}

void CheckedCall::empty() {
  std::fill_n(in_, sendCount(c_, r_.rank) * sizeOf(c_.type), std::byte{0});
}

weftResult_t CheckedCall::make(weftStream_t stream, int timeoutMs) {
  weftOpts_t opts = WEFT_OPTS_INITIALIZER;
  opts.timeoutMs = timeoutMs;
  if (!c_.algorithm.empty()) opts.algorithm = c_.algorithm.c_str();
  if (!c_.preMul) return call(c_.op, stream, &opts);
  weftRedOp_t op = c_.op;
  std::array<std::byte, 8> scalar{};
  store(scalar.data(), c_.type, scalarOf(r_.rank));
  const weftResult_t made = weftRedOpCreatePreMulSum(&op, scalar.data(), c_.type, r_.comm);
  if (made != weftSuccess) return made;
  const weftResult_t result = call(op, stream, &opts);
  weftRedOpDestroy(op, r_.comm);
  return result;
}

weftResult_t CheckedCall::call(weftRedOp_t op, weftStream_t s, const weftOpts_t* o) {
  const std::size_t* displs = c_.displs.empty() ? nullptr : c_.displs.data();
  const std::size_t* counts = c_.counts.data();
  const weftComm_t m = r_.comm;
  switch (c_.form) {
    case Form::AllReduce:
      return weftAllReduce(in_, out_, c_.count, c_.type, op, m, s, o);
    case Form::AllGather:
      return weftAllGather(in_, out_, c_.count, c_.type, m, s, o);
    case Form::ReduceScatter:
      return weftReduceScatter(in_, out_, c_.count, c_.type, op, m, s, o);
    case Form::Broadcast:
      return weftBroadcast(in_, out_, c_.count, c_.type, c_.root, m, s, o);
    case Form::Reduce:
      return weftReduce(in_, out_, c_.count, c_.type, op, c_.root, m, s, o);
    case Form::Gather:
      return weftGather(in_, out_, c_.count, c_.type, c_.root, m, s, o);
    case Form::Scatter:
      return weftScatter(in_, out_, c_.count, c_.type, c_.root, m, s, o);
    case Form::AlltoAll:
      return weftAlltoAll(in_, out_, c_.count, c_.type, m, s, o);
    case Form::AllGatherV:
      return weftAllGatherV(in_, out_, counts, displs, c_.type, m, s, o);
    case Form::ReduceScatterV:
      return weftReduceScatterV(in_, out_, counts, displs, c_.type, op, m, s, o);
    case Form::GatherV:
      return weftGatherV(in_, sendCount(c_, r_.rank), out_, counts, displs, c_.type, c_.root, m, s,
                         o);
    case Form::ScatterV:
      return weftScatterV(in_, counts, displs, out_, recvCount(c_, r_.rank), c_.type, c_.root, m, s,
                          o);
    case Form::AlltoAllV:
      return exchange(s, o);
    case Form::Barrier:
      return weftBarrier(m, s, o);
    default:
      return shift(s, o);
  }
}

weftResult_t CheckedCall::exchange(weftStream_t stream, const weftOpts_t* opts) {
  const std::vector<std::size_t> counts = c_.countsOf(r_.rank), displs = c_.displsOf(r_.rank);
  const std::size_t* places = displs.empty() ? nullptr : displs.data();
  return weftAlltoAllV(in_, counts.data(), places, out_, counts.data(), places, c_.type, r_.comm,
                       stream, opts);
}

weftResult_t CheckedCall::shift(weftStream_t stream, const weftOpts_t* opts) {
  const int to = (r_.rank + c_.root) % r_.ranks;
  const int from = (r_.rank + r_.ranks - c_.root) % r_.ranks;
  weftGroupStart();
  const weftResult_t sent = weftSend(in_, c_.count, c_.type, to, r_.comm, stream, opts);
  const weftResult_t received = weftRecv(out_, c_.count, c_.type, from, r_.comm, stream, opts);
  const weftResult_t ended = weftGroupEnd();
  if (sent != weftSuccess) return sent;
  return received != weftSuccess ? received : ended;
}

std::string CheckedCall::checkElement(std::size_t i) const {
  const std::size_t size = sizeOf(c_.type);
  const std::optional<double> expected = expectedAt(c_, r_.rank, i);
  if (!expected)
    return std::all_of(out_ + i * size, out_ + (i + 1) * size, isGuard)
               ? ""
               : "gap " + std::to_string(i) + " was written";
  const double got = load(out_ + i * size, c_.type);
  if (got == *expected) return "";
  return "element " + std::to_string(i) + " is " + std::to_string(got) + ", not " +
         std::to_string(*expected);
}

std::string CheckedCall::check() {
  for (std::size_t i = 0; i < recvCount(c_, r_.rank); ++i)
    if (std::string wrong = checkElement(i); !wrong.empty()) return wrong;
  for (std::size_t i = 0; apart_ && i < sendCount(c_, r_.rank); ++i)
    if (load(in_ + i * sizeOf(c_.type), c_.type) != inputAt(c_, r_.rank, i))
      return "the input was changed";
  return isUntouched() ? "" : "guard bytes were written";
}

void CheckedCall::takeBack() {
  send_.close();
  recv_.close();
}

}  // namespace weft::testing
