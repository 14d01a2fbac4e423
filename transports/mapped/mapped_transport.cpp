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
  } else if (put.bytes != 0 && !writeDirect(put)) {
    return PutResult::Failed;
  }
  cell.stamp = put.stamp;
  cell.word.store(put.word, std::memory_order_release);
  doorbellRing(*reinterpret_cast<ControlPage*>(segment));
  return PutResult::Done;
}

bool MappedTransport::writeDirect(const Put& put) {
  const MappedPeer& peer = parts_.peers[put.peer];
  if (peer.sameProcess) {
    std::memcpy(reinterpret_cast<void*>(put.target), put.src, put.bytes);
    return true;
  }
  const Status written = writeMemory({peer.pid, peer.death.get()}, put.target, put.src, put.bytes);
  if (!written.ok()) lastError_ = text("put to rank ", put.peer, ": ", written.text());
  return written.ok();
}

void MappedTransport::wake(std::uint32_t peer) { doorbellRing(*control(peer)); }

}  // namespace weft
