// SPDX-License-Identifier: Apache-2.0
#include "comm/moved_buffers.h"

#include "transports/shm/heap.h"

namespace weft::comm {
namespace {

bool overlap(const std::byte* a, std::uint64_t aBytes, const std::byte* b, std::uint64_t bBytes) {
  return a < b + bBytes && b < a + aBytes;
}

}  // namespace

MovedBuffers::MovedBuffers(const transport::Transport& transport) {
  shm::Heap* const heap = shm::Heap::existing();
  if (heap == nullptr || !heap->moved().any()) return;
  const transport::Caps caps = transport.caps();
  if (caps.shares && !caps.sharesAll) ranges_ = &heap->moved();
}

// Buffers that overlap are in place, and must go on to be: then both move, or none.
void MovedBuffers::use(const plan::Extents& extents, engine::Launch* launch) {
  if (ranges_ == nullptr) return;
  const bool reads = launch->in != nullptr, writes = launch->out != nullptr;
  std::optional<shm::HeapAlias> in, out;
  if (reads) in = ranges_->find(launch->in, extents.in);
  if (writes) out = ranges_->find(launch->out, extents.out);
  if (in.has_value() != out.has_value() && reads && writes &&
      overlap(launch->in, extents.in, launch->out, extents.out))
    return;
  if (in) {
    in->copyIn();
    launch->in = in->here;
  }
  if (out) {
    if (extents.hasGaps) out->copyIn();  // what is not written stays what it is
    launch->out = out->here;
    out_ = out;
  }
}

std::span<const engine::PairOp> MovedBuffers::use(std::span<const engine::PairOp> pairs,
                                                  std::vector<engine::PairOp>* room) {
  if (ranges_ == nullptr) return pairs;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::uint64_t bytes = pairs[i].count * reduce::sizeOf(pairs[i].type);
    const std::optional<shm::HeapAlias> alias = ranges_->find(pairs[i].data, bytes);
    if (!alias) continue;
    if (room->empty()) room->assign(pairs.begin(), pairs.end());
    alias->copyIn();
    (*room)[i].data = alias->here;
    if (!pairs[i].isSend) received_.push_back(*alias);
  }
  return room->empty() ? pairs : *room;
}

void MovedBuffers::finish() const {
  if (out_) out_->copyOut();
  for (const shm::HeapAlias& alias : received_) alias.copyOut();
}

}  // namespace weft::comm
