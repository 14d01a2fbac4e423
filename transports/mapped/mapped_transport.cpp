// SPDX-License-Identifier: Apache-2.0
#include "transports/mapped/mapped_transport.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/text.h"
#include "transports/mapped/direct.h"
#include "transports/mapped/doorbell.h"

namespace weft {
namespace {

// memcpy with the commonest size, one word, kept out of the library call.
void copyIntoCell(Cell& cell, const std::byte* src, std::size_t bytes) {
  if (bytes == 8) {
    std::memcpy(cell.inlined, src, 8);
  } else if (bytes != 0) {
    std::memcpy(cell.inlined, src, bytes);
  }
}

}  // namespace

MappedTransport::MappedTransport(MappedParts parts) : parts_(std::move(parts)) {
  sharesAll_ = std::ranges::all_of(parts_.peers, &MappedPeer::sameProcess);
}

// In one process the address itself, else one more than the offset in this process's heap.
std::uint64_t MappedTransport::share(const void* memory, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  if (sharesAll_) return address;
  const std::span<std::byte> heap = parts_.peers[parts_.rank].heap;
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(heap.data());
  return offset < heap.size() && bytes <= heap.size() - offset ? offset + 1 : 0;
}

std::byte* MappedTransport::reach(std::uint32_t peer, std::uint64_t reference) const {
  if (sharesAll_) return reinterpret_cast<std::byte*>(reference);
  const std::span<std::byte> heap = parts_.peers[peer].heap;
  return reference - 1 < heap.size() ? heap.data() + (reference - 1) : nullptr;
}

PutResult MappedTransport::put(const Put& put) {
  const MappedPeer& peer = parts_.peers[put.peer];
  if (peer.severed) [[unlikely]] {
    lastError_ = text("put to rank ", put.peer, ": the link to it was cut");
    return PutResult::Failed;
  }
  std::byte* const segment = peer.segment->base();
  Cell& cell = *reinterpret_cast<Cell*>(segment + put.cell);
  assert(put.cell + sizeof(Cell) <= parts_.layout.size());

  if (put.target == kInCell && !put.direct) {
    assert(put.bytes <= kInlineBytes);
    copyIntoCell(cell, put.src, put.bytes);
  } else if (!put.direct) {
    assert(put.target + put.bytes <= parts_.layout.size());
    if (put.bytes != 0) std::memcpy(segment + put.target, put.src, put.bytes);
  } else if (put.bytes != 0 && !deposit(put.peer, put.target, put.src, put.bytes)) {
    return PutResult::Failed;
  }
  cell.stamp = put.stamp;
  cell.word.store(put.word, std::memory_order_release);
  doorbellRing(*reinterpret_cast<ControlPage*>(segment));
  return PutResult::Done;
}

bool MappedTransport::fetch(std::uint32_t peer, std::uint64_t from, void* to, std::size_t bytes) {
  const MappedPeer& p = parts_.peers[peer];
  if (!p.sameProcess)
    return succeeds(peer, "read from", readMemory({p.pid, p.death.get()}, from, to, bytes));
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return true;
}

bool MappedTransport::deposit(std::uint32_t peer, std::uint64_t to, const void* from,
                              std::size_t bytes) {
  const MappedPeer& p = parts_.peers[peer];
  if (!p.sameProcess)
    return succeeds(peer, "put to", writeMemory({p.pid, p.death.get()}, to, from, bytes));
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return true;
}

bool MappedTransport::succeeds(std::uint32_t peer, const char* what, const Status& status) {
  if (!status.ok()) lastError_ = text(what, " rank ", peer, ": ", status.text());
  return status.ok();
}

void MappedTransport::wake(std::uint32_t peer) { doorbellRing(*control(peer)); }

}  // namespace weft
