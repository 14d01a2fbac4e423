// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/ofi_wire.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "base/mark.h"
#include "base/text.h"

namespace weft::ofi {

namespace {
constexpr std::size_t kMostKept = 512;
}

OfiWire::OfiWire(const Library* library, const WireSetup& setup)
    : library_(library),
      rank_(setup.rank),
      names_(setup.names),
      wanted_(setup.peers),
      remoteCompletions_(setup.completionsPerPeer),
      timeoutMs_(setup.timeoutMs),
      peers_(setup.ranks) {
  WireArea area{setup.regions, setup.layout, std::vector<std::uint32_t>(setup.ranks)};
  std::iota(area.peers.begin(), area.peers.end(), 0);
  areas_.push_back(std::make_unique<Area>(std::move(area), setup.ranks, kMaxRails));
  downs_.reserve(setup.ranks);
  kept_.reserve(kMostKept);
}

// A connection that libfabric 1.17 has accepted and whose request it has not read, which it does a
// millisecond later, keeps its memory and its descriptor for ever. So requests are read first, and of
// a wire that nobody has used, those of peers that may be about to.
OfiWire::~OfiWire() {
  constexpr int kAboutToMs = 50;
  const bool used = std::ranges::any_of(
      peers_, [](const Peer& peer) { return std::ranges::any_of(peer.rail, &PeerRail::met); });
  for (const auto& rail : rails_) {
    rail->settle(used ? 0 : kAboutToMs);
    rail->closeEndpoint();
  }
}

WireCaps OfiWire::caps() const {
  const bool sleeps =
      std::ranges::all_of(rails_, [](const auto& rail) { return rail->queueDescriptor() >= 0; });
  return {.maxWrite = maxWrite_, .ordered = false, .manual = true, .sleeps = sleeps};
}

bool OfiWire::sendsFrom(const std::byte* memory, std::size_t bytes, std::uint32_t area) const {
  for (std::uint32_t rail = 0; rail < rails_.size(); ++rail)
    if (rails_[rail]->wantsRegistered() &&
        memoryOf(*areas_[area], rail).descriptor(memory, bytes) == nullptr)
      return false;
  return true;
}

const char* OfiWire::faultOf(const WireWrite& write) const {
  if (write.peer >= peers_.size() || peers_[write.peer].rails == 0)
    return "no such peer of this wire";
  if (write.rail >= peers_[write.peer].rails) return "no such rail";
  if (write.quiet) return "quiet, but this wire has no order";
  if (write.bytes > maxWrite_) return "more than caps().maxWrite";
  if (!hasArea(write.area)) return "no such area";
  const Area& area = *areas_[write.area];
  const std::uint32_t rank = area.rankOf(write.peer);
  if (rank == Area::kNobody) return "no rank of that area";
  if (!write.endsWithin(area.bytesAt(rank, write.region))) return "outside of the peer's memory";
  if (write.bytes != 0 && !sendsFrom(write.src, write.bytes, write.area))
    return "its source is not registered";
  return nullptr;
}

WireResult OfiWire::fail(const Status& why) {
  lastError_ = why;
  return WireResult::Failed;
}

WireResult OfiWire::write(const WireWrite& write) {
  if (const char* const fault = faultOf(write)) [[unlikely]]
    return fail(refusal("ofi", write, fault));
  const Peer& peer = peers_[write.peer];
  if (!peer.fate.ok()) return fail(peer.fate);
  const PeerRail& way = peer.rail[write.rail];
  if (way.kept != 0) return keep(write);
  const ssize_t result = post(write);
  if (result == 0) return WireResult::Accepted;
  if (result == -FI_EAGAIN && !way.met) return keep(write);
  if (result == -FI_EAGAIN && WEFT_MARK("ofi: again")) return WireResult::Again;
  linkDown(write.peer, write.rail, rails_[write.rail]->failure("posting a write", result));
  return fail(peer.fate);
}

ssize_t OfiWire::post(const WireWrite& write) {
  Rail& rail = *rails_[write.rail];
  PeerRail& way = peers_[write.peer].rail[write.rail];
  Slot* slot = rail.take();
  if (slot == nullptr && WEFT_MARK("ofi: no slot, again")) return -FI_EAGAIN;
  slot->kind = Slot::Write;
  slot->peer = write.peer;
  slot->cookie = write.cookie;
  const ssize_t result =
      mode_ == Mode::Rdma ? postRdma(rail, way, write, slot) : postMsg(rail, way, write, slot);
  way.met |= result == 0;
  if (result != 0) rail.giveBack(slot);
  return result;
}

// Ends with a LinkDown if there is one, so that lastError() is about that one.
int OfiWire::poll(WireEvent* out, int max) {
  int events = 0;
  const auto rails = static_cast<std::uint32_t>(rails_.size());
  for (std::uint32_t i = 0; i < rails && events < max; ++i)
    events += pollRail((firstRail_ + i) % rails, out + events, max - events);
  if (++firstRail_ >= rails) firstRail_ = 0;
  if (!kept_.empty()) [[unlikely]]
    offerKept();
  if (events < max && !downs_.empty()) {
    out[events] = downs_.back();
    downs_.pop_back();
    lastError_ = peers_[out[events].peer].fate;
    ++events;
  }
  return events;
}

bool OfiWire::arm(std::vector<pollfd>* descriptors, bool /*waits*/) {
  for (const auto& rail : rails_) descriptors->push_back({rail->queueDescriptor(), POLLIN, 0});
  return downs_.empty() &&
         std::ranges::all_of(rails_, [](const auto& rail) { return rail->mayWait(); });
}

int OfiWire::pollRail(std::uint32_t rail, WireEvent* out, int max) {
  constexpr int kBatch = 16;
  constexpr std::uint32_t kIdle = 256;
  std::array<fi_cq_data_entry, kBatch> entries;
  std::array<fi_addr_t, kBatch> from;
  const auto batch = static_cast<std::size_t>(std::min(max, kBatch));
  fid_cq* const queue = rails_[rail]->queue();
  const ssize_t got = narrow_ ? fi_cq_readfrom(queue, entries.data(), batch, from.data())
                              : fi_cq_read(queue, entries.data(), batch);
  int events = 0;
  for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got); ++i)
    events += complete(rail, entries[i], narrow_ ? from[i] : FI_ADDR_UNSPEC, out + events);
  if (got == -FI_EAVAIL)
    failed(rail);
  else if (got < 0 && got != -FI_EAGAIN)
    allDown(rail, rails_[rail]->failure("fi_cq_read", got));
  rails_[rail]->repost();
  if (got < 0 && ++idlePolls_ % kIdle == 0)
    if (const std::string mishap = rails_[rail]->mishap(); !mishap.empty()) allDown(rail, mishap);
  return events;
}

// efa sets FI_WRITE besides FI_REMOTE_WRITE, and then op_context means nothing.
bool OfiWire::complete(std::uint32_t rail, const fi_cq_data_entry& entry, fi_addr_t from,
                       WireEvent* out) {
  if ((entry.flags & FI_REMOTE_WRITE) != 0) return writtenTo(rail, entry.data, from, out);
  auto* const slot = static_cast<Slot*>(entry.op_context);
  if (slot == nullptr) return false;
  return slot->kind == Slot::Receive ? received(rail, slot, entry.len, out)
                                     : answered(rail, slot, out);
}

bool OfiWire::answered(std::uint32_t rail, Slot* slot, WireEvent* out) {
  const Slot::Kind kind = slot->kind;
  if (kind == Slot::Failed) return false;
  *out = {WireEvent::Sent, slot->peer, 0, slot->cookie};
  rails_[rail]->giveBack(slot);
  return peers_[slot->peer].fate.ok();
}

bool OfiWire::completed(std::uint32_t rail, std::uint32_t from, std::uint32_t immediate,
                        WireEvent* out) {
  Peer& peer = peers_[from];
  if (!peer.fate.ok()) return false;
  peer.rail[rail].met = true;
  *out = {WireEvent::RemoteCompletion, from, immediate, 0};
  return true;
}

void OfiWire::failed(std::uint32_t rail) {
  fid_cq* const queue = rails_[rail]->queue();
  fi_cq_err_entry error{};
  if (fi_cq_readerr(queue, &error, 0) <= 0) return;
  std::array<char, 160> buffer{};
  const char* detail =
      fi_cq_strerror(queue, error.prov_errno, error.err_data, buffer.data(), buffer.size());
  const std::string why = text(rails_[rail]->failure("an operation", -error.err), " [",
                               error.prov_errno, ": ", detail != nullptr ? detail : "", "]");
  auto* const slot =
      (error.flags & FI_REMOTE_WRITE) != 0 ? nullptr : static_cast<Slot*>(error.op_context);
  const bool receive = slot != nullptr && slot->kind == Slot::Receive;
  // The provider does not name the sender of an incoming one, who sees the error at its end, or is
  // dead; the other peers are not affected.
  if (receive || (error.flags & (FI_REMOTE_WRITE | FI_RECV)) != 0) {
    logInfo(why, ", incoming");
    if (receive) rails_[rail]->post(slot);
    return;
  }
  if (slot == nullptr) return allDown(rail, why);  // of the endpoint itself
  slot->kind = Slot::Failed;
  linkDown(slot->peer, rail, why);
}

void OfiWire::linkDown(std::uint32_t rank, std::uint32_t rail, const std::string& why,
                       const char* fix) {
  Peer& peer = peers_[rank];
  if (peer.rails == 0 || !peer.fate.ok()) return;
  peer.fate =
      Status::error({.code = Code::RemoteError,
                     .who = names_[rank],
                     .device = rails_[rail]->device(),
                     .what = text(why, "; link of ", names_[rank_], " to {who}: ", peer.where),
                     .fix = fix});
  std::erase_if(kept_, [&](const WireWrite& write) { return write.peer == rank; });
  for (PeerRail& way : peer.rail) way.kept = 0;
  downs_.push_back({WireEvent::LinkDown, rank, 0, 0});
}

void OfiWire::allDown(std::uint32_t rail, const std::string& why, const char* fix) {
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) linkDown(peer, rail, why, fix);
}

void OfiWire::sever(std::uint32_t peer) { linkDown(peer, 0, "ofi: severed at this end"); }

}  // namespace weft::ofi
