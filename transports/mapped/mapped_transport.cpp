// SPDX-License-Identifier: Apache-2.0
#include "transports/mapped/mapped_transport.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/claim_line.h"
#include "base/copy.h"
#include "base/text.h"
#include "transports/doorbell.h"
#include "transports/mapped/direct.h"

namespace weft::mapped {
namespace {

// 4 KiB at once took longer than none (docs/performance.md).
constexpr std::size_t kMostClaimed = 2 << 10;

// memcpy with the commonest size, one word, kept out of the library call. Nothing is read of a put
// without bytes but that it has none: its source was just set to nothing by stores that a load of it
// would have to wait for, and so for the ones before them, to lines that other cores hold.
void copyInline(ArrivalSlot& arrival, const Put& put) {
  if (put.bytes == 8) {
    std::memcpy(arrival.inlined, put.src, 8);
  } else if (put.bytes != 0) {
    std::memcpy(arrival.inlined, put.src, put.bytes);
  }
}

}  // namespace

MappedTransport::MappedTransport(MappedParts parts)
    : parts_(std::move(parts)), stores_(parts_.peers.size()) {
  sharesAll_ = std::ranges::all_of(parts_.peers, &MappedPeer::sameProcess);
  for (MappedPeer& peer : parts_.peers)
    if (peer.control == nullptr) peer.control = reinterpret_cast<ControlPage*>(peer.window.get());
}

// In one process the address itself, else one more than the offset in this process's heap.
std::uint64_t MappedTransport::share(const void* memory, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  if (sharesAll_) return address;
  const std::span<std::byte> heap = parts_.peers[parts_.rank].ownHeap;
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(heap.data());
  return offset < heap.size() && bytes <= heap.size() - offset ? offset + 1 : 0;
}

std::byte* MappedTransport::reach(std::uint32_t peer, std::uint64_t reference) const {
  if (sharesAll_) return reinterpret_cast<std::byte*>(reference);
  const std::span<std::byte> heap = parts_.peers[peer].heap();
  return reference - 1 < heap.size() ? heap.data() + (reference - 1) : nullptr;
}

PutResult MappedTransport::put(const Put& put) {
  const MappedPeer& peer = parts_.peers[put.peer];
  if (peer.severed) [[unlikely]] {
    lastError_ =
        Status::error(Code::RemoteError, "put to rank ", put.peer, ": the link to it was cut");
    return PutResult::Failed;
  }
  std::byte* const window = peer.window.get();
  ArrivalSlot& arrival = *reinterpret_cast<ArrivalSlot*>(window + put.arrival);
  assert(put.arrival + sizeof(ArrivalSlot) <= parts_.layout.size());

  if (put.target == kInlined && !put.direct) {
    assert(put.bytes <= kInlineBytes);
    copyInline(arrival, put);
  } else if (!put.direct) {
    assert(put.target + put.bytes <= parts_.layout.size());
    stores_[put.peer].copy(window + put.target, put.src, put.bytes);
  } else if (put.bytes != 0 && !putTo(put.peer, put.target, put.src, put.bytes)) {
    return PutResult::Failed;
  }
  arrival.tag = put.tag;
  arrival.flag.store(put.flag, std::memory_order_release);
  doorbellRing(*peer.control);
  return PutResult::Done;
}

void MappedTransport::expectPut(std::uint32_t peer, std::uint64_t arrival, std::uint64_t target,
                                std::size_t bytes) {
  std::byte* const window = parts_.peers[peer].window.get();
  claimLines(window + arrival, sizeof(ArrivalSlot));
  if (target != kInlined && bytes <= kMostClaimed) claimLines(window + target, bytes);
}

bool MappedTransport::getFrom(std::uint32_t peer, std::uint64_t from, void* to, std::size_t bytes) {
  const MappedPeer& p = parts_.peers[peer];
  if (!p.sameProcess())
    return succeeds(peer, "read from",
                    readMemory({p.process->pid, p.process->death.get()}, from, to, bytes));
  copyBytes(to, reinterpret_cast<const void*>(from), bytes);
  return true;
}

bool MappedTransport::putTo(std::uint32_t peer, std::uint64_t to, const void* from,
                            std::size_t bytes) {
  const MappedPeer& p = parts_.peers[peer];
  if (!p.sameProcess())
    return succeeds(peer, "put to",
                    writeMemory({p.process->pid, p.process->death.get()}, to, from, bytes));
  stores_[peer].copy(reinterpret_cast<void*>(to), from, bytes);
  return true;
}

bool MappedTransport::succeeds(std::uint32_t peer, const char* what, const Status& status) {
  if (status.ok()) return true;
  const PeerName who(static_cast<int>(peer), "");
  const std::lock_guard lock(failing_);
  lastError_ = within(text(what, " ", who, ": "), who, status);
  return false;
}

// Where the kernel is too old to say, pages come when they are touched.
Status MappedTransport::commit(std::uint32_t rank, std::size_t from, std::size_t bytes) {
#if defined(MADV_POPULATE_WRITE)
  const std::size_t first = from / kPage * kPage;
  if (::madvise(base(rank) + first, from + bytes - first, MADV_POPULATE_WRITE) != 0 &&
      errno != EINVAL)
    return Status::error(Code::OutOfMemory, "no memory for messages to rank ", rank, ": ",
                         std::strerror(errno),
                         "; fix: raise the memory limit of this cgroup or container");
#endif
  return {};
}

void MappedTransport::wake(std::uint32_t peer) { doorbellRing(*control(peer)); }

}  // namespace weft::mapped
