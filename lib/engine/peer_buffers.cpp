// SPDX-License-Identifier: Apache-2.0
#include "engine/peer_buffers.h"

namespace weft::engine {

PeerBuffers::PeerBuffers(transport::Transport& transport)
    : transport_(transport),
      in_(transport.layout().ranks),
      out_(transport.layout().ranks),
      stores_(transport.layout().ranks),
      folds_(transport.layout().ranks) {}

Entry PeerBuffers::open(const plan::Plan& plan, const std::byte* in, std::byte* out) const {
  Entry mine;
  if (plan.sharedIn != 0) {
    mine.in = in;
    mine.sharedIn = transport_.share(in, plan.sharedIn);
  }
  if (plan.sharedOut != 0) {
    mine.out = out;
    mine.sharedOut = transport_.share(out, plan.sharedOut);
  }
  mine.willing = plan.cmaCopies || ((plan.sharedIn == 0 || mine.sharedIn != 0) &&
                                    (plan.sharedOut == 0 || mine.sharedOut != 0));
  return mine;
}

bool PeerBuffers::admit(std::uint32_t peer, const Entry& theirs) {
  const auto locate = [&](std::uint64_t reference, const std::byte* address, Buffer* buffer) {
    buffer->here = reference != 0 ? transport_.reach(peer, reference) : nullptr;
    buffer->there = reinterpret_cast<std::uint64_t>(address);
    mapped_ = mapped_ && (buffer->here != nullptr || address == nullptr);
    return (reference != 0) == (buffer->here != nullptr);
  };
  return locate(theirs.sharedIn, theirs.in, &in_[peer]) &&
         locate(theirs.sharedOut, theirs.out, &out_[peer]);
}

bool PeerBuffers::load(const plan::Place& place, std::uint64_t from, std::byte* to,
                       std::size_t bytes) {
  return transport_.getFrom(place.peer, at(place).there + place.offset + from, to, bytes);
}

bool PeerBuffers::store(const plan::Place& place, std::uint64_t from, const std::byte* src,
                        std::size_t bytes) {
  return transport_.putTo(place.peer, at(place).there + place.offset + from, src, bytes);
}

}  // namespace weft::engine
