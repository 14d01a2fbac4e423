// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/network.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.h"
#include "transports/doorbell.h"

namespace weft::simulation {

using namespace transport;

// One rank's end.
class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(Network& network, std::uint32_t rank) : network_(network), rank_(rank) {}

  const char* name() const override { return "simulated"; }
  Caps caps() const override {
    const Weather& weather = network_.weather_;
    return {.direct = weather.direct,
            .shares = weather.shares,
            .sharesAll = weather.shares,
            .maps = weather.shares,
            .polls = weather.polls};
  }
  const WindowLayout& layout() const override { return network_.layout_; }
  WindowView own() const override { return {mine().window, network_.layout_}; }
  ControlPage* control(std::uint32_t peer) const override {
    return reinterpret_cast<ControlPage*>(network_.ports_[peer].window);
  }
  int deathFd(std::uint32_t peer) const override {
    return peer == rank_ ? -1 : network_.ports_[peer].deathFd;
  }
  std::uint64_t share(const void* memory, std::size_t) const override {
    return network_.weather_.shares ? reinterpret_cast<std::uint64_t>(memory) : 0;
  }
  std::byte* reach(std::uint32_t, std::uint64_t reference) const override {
    return reinterpret_cast<std::byte*>(reference);
  }
  const std::byte* mapped(std::uint32_t peer) const override {
    return network_.ports_[peer].window;
  }
  PutResult put(const Put& put) override;
  int poll(Event* out, int max) override;
  std::size_t outstanding() const override { return mine().dismissed ? 0 : mine().outstanding; }
  bool isPending(std::uint32_t peer) const override {
    return !mine().dismissed && std::ranges::any_of(network_.link(rank_, peer).parcels,
                                                    [](const auto& p) { return p->pending; });
  }
  void wake(std::uint32_t peer) override { doorbellRing(*control(peer)); }
  void sever(std::uint32_t peer) override { network_.cut(rank_, peer); }
  bool isDown(std::uint32_t peer) const override { return network_.link(rank_, peer).told; }
  const Status& lastError() const override { return mine().lastError; }

 private:
  Network::Port& mine() const { return network_.ports_[rank_]; }
  PutResult fail(std::uint32_t peer);
  bool putTo(std::uint32_t peer, std::uint64_t to, const void* from, std::size_t bytes) override;
  void copyDirect(const Put& put);

  Network& network_;
  const std::uint32_t rank_;
};

PutResult SimulatedTransport::fail(std::uint32_t peer) {
  mine().lastError = Status::error({.code = Code::RemoteError,
                                    .who = {static_cast<int>(peer), ""},
                                    .what = "the link to {who} was cut",
                                    .fix = "none"});
  return PutResult::Failed;
}

// A copy by the sender's own core takes a while.
void SimulatedTransport::copyDirect(const Put& put) {
  network_.checkCopy(rank_, put);
  std::byte* const to = reinterpret_cast<std::byte*>(put.target);
  std::copy_n(put.src, put.bytes / 2, to);
  network_.scheduler_.compute(network_.scheduler_.random().between(0, 300 * kMicrosecond));
  std::copy(put.src + put.bytes / 2, put.src + put.bytes, to + put.bytes / 2);
}

bool SimulatedTransport::putTo(std::uint32_t peer, std::uint64_t to, const void* from,
                               std::size_t bytes) {
  if (mine().dismissed || network_.link(rank_, peer).cut) {
    fail(peer);
    return false;
  }
  Put piece;
  piece.peer = peer;
  piece.src = static_cast<const std::byte*>(from);
  piece.bytes = bytes;
  piece.target = to;
  copyDirect(piece);
  return true;
}

PutResult SimulatedTransport::put(const Put& put) {
  Random& random = network_.scheduler_.random();
  // Not within a copy into a peer's memory: who is stopped there goes on with it afterwards.
  if (!put.direct && random.chance(20)) network_.scheduler_.spin();
  Network::Link& link = network_.link(rank_, put.peer);
  const bool atOnce = !network_.weather_.polls && link.cut;
  if (mine().dismissed || link.told || atOnce) return fail(put.peer);
  if (random.chance(5)) return PutResult::Again;
  auto parcel = std::make_shared<Network::Parcel>();
  parcel->from = rank_;
  parcel->put = put;
  parcel->lost = link.cut && random.chance(70);
  const bool lies = put.bytes != 0 && put.target != kInlined && !put.direct;
  parcel->pending =
      lies && network_.weather_.polls && !network_.weather_.copies && random.chance(70);
  parcel->twice = parcel->pending && random.chance(10);
  network_.check(*parcel);
  if (put.direct)
    copyDirect(put);
  else if (put.target == kInlined)
    std::copy_n(put.src, put.bytes, parcel->inlined);
  else if (!parcel->pending)
    parcel->copy.assign(put.src, put.src + put.bytes);
  ++mine().outstanding;
  link.parcels.push_back(parcel);
  network_.send(parcel);
  return parcel->pending ? PutResult::Pending : PutResult::Done;
}

int SimulatedTransport::poll(Event* out, int max) {
  Network::Port& port = mine();
  if (port.inbox.empty() && port.events.empty()) network_.scheduler_.spin();
  while (!port.inbox.empty() && !network_.scheduler_.random().chance(20)) {
    const std::size_t index = network_.scheduler_.random().below(port.inbox.size());
    const Network::ParcelRef parcel = port.inbox[index];
    port.inbox.erase(port.inbox.begin() + static_cast<std::ptrdiff_t>(index));
    network_.raise(*parcel);
    network_.forget(parcel);
  }
  if (port.dismissed) {
    fail(rank_);
    *out = {Event::LinkDown, rank_, 0};
    return 1;
  }
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(max), port.events.size());
  std::copy_n(port.events.begin(), count, out);
  for (std::size_t i = 0; i < count; ++i)
    if (out[i].kind != Event::PutDone) fail(out[i].peer);
  port.events.erase(port.events.begin(), port.events.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<int>(count);
}

namespace {

// A process' pidfd: readable once it has ended and the kernel has cleaned up.
class Death final : public Descriptor {
 public:
  short events() const override { return known ? POLLIN : short{0}; }
  bool known = false;
};

}  // namespace

Network::Network(Scheduler& scheduler, const WindowLayout& layout, const Weather& weather)
    : scheduler_(scheduler),
      layout_(layout),
      weather_(weather),
      ports_(layout.ranks),
      links_(std::size_t{layout.ranks} * layout.ranks) {
  for (std::uint32_t r = 0; r < layout.ranks; ++r) {
    Port& port = ports_[r];
    port.memory = std::make_unique_for_overwrite<std::byte[]>(layout_.size() + kLine);
    const auto address = reinterpret_cast<std::uintptr_t>(port.memory.get());
    port.window = port.memory.get() + (roundUp(address, kLine) - address);
    std::memset(port.window, 0, layout_.arena());
    std::memset(port.window + layout_.arena(), 0x5a, layout_.size() - layout_.arena());
    ControlPage& page = *new (port.window) ControlPage();
    page.rank = static_cast<std::int32_t>(r);
    if (scheduler_.random().chance(50)) page.ringFence = 0;
    port.deathFd = descriptors().add(std::make_shared<Death>());
    port.transport = std::make_unique<SimulatedTransport>(*this, r);
  }
}

Network::~Network() = default;

Transport& Network::transport(std::uint32_t rank) { return *ports_[rank].transport; }

ArrivalSlot& Network::slotOf(const Parcel& parcel) const {
  return *reinterpret_cast<ArrivalSlot*>(ports_[parcel.put.peer].window + parcel.put.arrival);
}

std::byte* Network::targetOf(const Parcel& parcel) const {
  return ports_[parcel.put.peer].window + parcel.put.target;
}

// Mostly short, sometimes long, so that later puts overtake.
Time Network::delay() {
  Random& random = scheduler_.random();
  if (weather_.clogged != 0 && random.chance(2)) return random.between(0, weather_.clogged);
  return random.between(0, random.chance(85) ? weather_.usual : weather_.longest);
}

void Network::complain(const Parcel& parcel, const std::string& what) {
  if (violation_.empty())
    violation_ = base::text("rank ", parcel.from, " put into rank ", parcel.put.peer, ", epoch ",
                            epochOf(parcel.put.flag), ": ", what);
}

// How many invocations later a ring's slots are used again.
std::uint32_t Network::depthOfRing(const Put& put) const {
  if (put.bytes == 0 || put.direct || put.target == kInlined || put.target < layout_.ringArena())
    return layout_.ring;
  const RingStages& ring = layout_.ringStages;
  const bool isLonger = (put.target - layout_.ringArena()) % ring.bytes >= ring.beforeLonger;
  return isLonger ? ring.longer.count : ring.shorter.count;
}

// What the engine promises to a transport.
void Network::check(const Parcel& parcel) {
  const Put& put = parcel.put;
  for (std::uint32_t from = 0; from < ports_.size(); ++from)
    for (const ParcelRef& other : link(from, put.peer).parcels)
      if (other->put.arrival == put.arrival && !disagreeing_)
        complain(parcel, "the arrival slot has one in flight");
  const bool inArena = put.target >= layout_.arena() && put.bytes <= layout_.size() &&
                       put.target <= layout_.size() - put.bytes;
  if (put.bytes != 0 && put.target != kInlined && !put.direct && !inArena)
    complain(parcel, "outside of the staging arena");
  const ControlPage& page = *reinterpret_cast<const ControlPage*>(ports_[put.peer].window);
  const bool ofLane = put.arrival < layout_.pairArrivals();
  const std::uint32_t depth = ofLane ? kMaxLanes : depthOfRing(put);
  if (page.completed.load() + depth < epochOf(put.flag))
    complain(parcel,
             base::text("its slots are in use, the peer has completed ", page.completed.load()));
}

// A copy into a peer's memory is short, and none begins when the call has failed.
void Network::checkCopy(std::uint32_t from, const Put& put) {
  Parcel parcel;
  parcel.from = from;
  parcel.put = put;
  if (put.bytes > weather_.longestCopy)
    complain(parcel, base::text("copies ", put.bytes, " bytes without a look for an abort"));
  const ControlPage& page = *reinterpret_cast<const ControlPage*>(ports_[0].window);
  if (page.firstError.state.load() == FirstError::Published && !ports_[from].dead)
    complain(parcel, "copies although the call has failed");
}

void Network::scribble(std::byte* at, std::size_t bytes) {
  std::memset(at, static_cast<int>(scheduler_.random().below(256)), bytes);
}

void Network::send(const ParcelRef& parcel) {
  const Put& put = parcel->put;
  Time last = scheduler_.now();
  const bool lies = put.bytes != 0 && put.target != kInlined && !put.direct;
  if (lies && scheduler_.random().chance(50)) scribble(targetOf(*parcel), put.bytes);
  const std::size_t pieces =
      lies ? std::min<std::size_t>(put.bytes, 1 + scheduler_.random().below(3)) : 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    const Time when = scheduler_.now() + delay();
    last = std::max(last, when);
    const std::size_t from = put.bytes * i / pieces, to = put.bytes * (i + 1) / pieces;
    scheduler_.at(when, [this, parcel, from, to] { writePiece(*parcel, from, to); });
  }
  scheduler_.at(last + delay(), [this, parcel] { arrive(parcel); });
}

void Network::writePiece(const Parcel& parcel, std::size_t from, std::size_t to) {
  if (parcel.lost) return;
  const std::byte* const source = parcel.pending ? parcel.put.src : parcel.copy.data();
  std::copy(source + from, source + to, targetOf(parcel) + from);
}

void Network::arrive(const ParcelRef& parcel) {
  if (parcel->lost) return;
  scheduler_.note(parcel->put.flag ^ parcel->put.arrival << 32);
  // As a card that sends again what was acknowledged too late.
  if (parcel->twice) writePiece(*parcel, 0, parcel->put.bytes);
  Port& target = ports_[parcel->put.peer];
  if (weather_.polls) {
    target.inbox.push_back(parcel);
    scheduler_.hurry(target.fiber);
    return;
  }
  raise(*parcel);
  forget(parcel);
  scheduler_.hurry(target.fiber);
  doorbellRing(*reinterpret_cast<ControlPage*>(target.window));
}

void Network::raise(const Parcel& parcel) {
  ArrivalSlot& slot = slotOf(parcel);
  scribble(slot.inlined, kInlineBytes);
  if (parcel.put.target == kInlined) std::copy_n(parcel.inlined, parcel.put.bytes, slot.inlined);
  slot.tag = parcel.put.tag;
  slot.flag.store(parcel.put.flag, std::memory_order_release);
}

// It has arrived: its source is free, the sender hears of it a little later.
void Network::forget(const ParcelRef& parcel) {
  Port& sender = ports_[parcel->from];
  std::erase(link(parcel->from, parcel->put.peer).parcels, parcel);
  if (!parcel->pending) {
    --sender.outstanding;
    return;
  }
  scheduler_.at(scheduler_.now() + delay(), [this, parcel] {
    Port& answered = ports_[parcel->from];
    --answered.outstanding;
    answered.events.push_back({Event::PutDone, parcel->put.peer, parcel->put.cookie});
    scheduler_.hurry(answered.fiber);
  });
}

void Network::tellDown(std::uint32_t rank, std::uint32_t peer) {
  ports_[rank].events.push_back({Event::LinkDown, peer, 0});
  scheduler_.hurry(ports_[rank].fiber);
}

// What is on its way is lost, or not, if nobody has been told it is there already.
void Network::cut(std::uint32_t from, std::uint32_t to) {
  Link& broken = link(from, to);
  if (broken.cut) return;
  broken.cut = true;
  if (!weather_.polls) return;
  const bool bothKnow = scheduler_.random().chance(50);
  scheduler_.at(scheduler_.now() + scheduler_.random().between(0, 5 * kMillisecond),
                [this, from, to, bothKnow] {
                  Link& down = link(from, to);
                  down.told = true;
                  for (const ParcelRef& parcel : down.parcels) parcel->lost = true;
                  std::erase_if(ports_[to].inbox,
                                [](const ParcelRef& parcel) { return parcel->lost; });
                  down.parcels.clear();
                  tellDown(from, to);
                  if (bothKnow) tellDown(to, from);
                });
}

void Network::kill(std::uint32_t rank) {
  Port& port = ports_[rank];
  port.dead = true;
  scheduler_.freeze(rank);
  // Copied by the network, a put is out of its hands; else its memory is gone.
  for (std::uint32_t to = 0; to < ports_.size(); ++to)
    for (const ParcelRef& parcel : link(rank, to).parcels)
      parcel->lost = parcel->lost || (parcel->pending && scheduler_.random().chance(50));
  scheduler_.at(
      scheduler_.now() + scheduler_.random().between(0, 3 * kMillisecond),
      [fd = port.deathFd] { dynamic_cast<Death&>(*descriptors().find(fd)).known = true; });
}

}  // namespace weft::simulation
