// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/branch.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "transports/doorbell.h"
#include "transports/setup.h"
#include "transports/shm/heap_window.h"

namespace weft::shm {
namespace {

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

// The window of the rank at `offset` of its heap, if one lies there.
Status joinPeer(const TransportSetup& setup, std::uint32_t rank, std::uint64_t offset,
                mapped::MappedPeer* peer) {
  const std::size_t bytes = HeapWindow::sizeOf(setup.layout);
  const std::span<std::byte> heap = peer->heap();
  if (heap.empty())
    return Status::error(Code::OutOfMemory, "cannot map the heap of rank ", rank,
                         "; fix: a higher vm.max_map_count, or fewer ranks");
  if (offset % kPage != 0 || offset > heap.size() || bytes > heap.size() - offset)
    return Status::error(Code::InternalError, "the window of rank ", rank, " is not in its heap");
  std::byte* const base = heap.data() + offset;
  PeerInfo info;
  info.rank = rank;
  WEFT_TRY(checkControlPage(info, base));
  peer->window = joinHeapWindow(base, setup.layout, setup.rank, peer->itsHeap);
  return {};
}

std::vector<HeapWindow::Process> processesOf(const std::vector<mapped::MappedPeer>& peers) {
  std::vector<HeapWindow::Process> processes;
  for (const mapped::MappedPeer& peer : peers) processes.push_back(peer.process);
  return processes;
}

}  // namespace

Status branchShm(const mapped::MappedParts& parent, const TransportSetup& setup,
                 std::span<const std::uint32_t> members, std::unique_ptr<Transport>* out) {
  const mapped::MappedPeer& self = parent.peers[parent.rank];
  if (self.ownHeap.empty()) return {};
  std::shared_ptr<HeapWindow> own;
  const Status made = HeapWindow::make(setup, &own);
  const std::uint64_t place =
      own ? static_cast<std::uint64_t>(own->base() - self.ownHeap.data()) : kNowhere;
  std::vector<std::uint64_t> places;
  WEFT_TRY(gather(setup, made, place, &places));
  if (std::ranges::count(places, kNowhere) != 0) {
    if (own) own->usedBy({});
    return {};
  }
  std::vector<mapped::MappedPeer> peers;
  for (const std::uint32_t member : members) {
    const mapped::MappedPeer& there = parent.peers[member];
    mapped::MappedPeer& peer = peers.emplace_back();
    peer.process = there.process;
    peer.ownHeap = there.ownHeap;
    peer.itsHeap = there.itsHeap;
  }
  own->usedBy(processesOf(peers));
  if (self.control->ringFence.load() == 0)
    relieveRingers(*reinterpret_cast<ControlPage*>(own->base()));
  for (std::uint32_t r = 0; r < setup.ranks; ++r)
    WEFT_TRY(joinPeer(setup, r, places[r], &peers[r]));
  std::byte* const base = own->base();
  peers[setup.rank].window = {std::move(own), base};
  *out = std::make_unique<mapped::MappedTransport>(
      mapped::MappedParts{parent.name, setup.rank, setup.layout, parent.direct, std::move(peers),
                          parent.permit, branchShm});
  return {};
}

}  // namespace weft::shm
