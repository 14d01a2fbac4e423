// SPDX-License-Identifier: Apache-2.0
#include "shuffled_wire.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "transports/setup.h"

namespace weft::transport {
namespace {

constexpr std::size_t kDepth = 32;  // writes on their way to one rank

// One rank's end. Peers hand it their writes; it delivers them in its own poll().
struct Port {
  struct Parcel {
    std::uint32_t from = 0;
    std::weak_ptr<Port> sender;
    wire::WireWrite write;
  };
  std::mutex mutex;
  std::vector<Parcel> parcels;
  bool closed = false;
  Fd bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex sentMutex;  // is taken last
  std::deque<wire::WireEvent> sent;
};

class ShuffledWire final : public wire::Wire {
 public:
  ShuffledWire(const wire::WireSetup& setup, const Shuffle& shuffle, std::shared_ptr<Port> mine,
               std::vector<std::shared_ptr<Port>> ports)
      : setup_(setup), shuffle_(shuffle), mine_(std::move(mine)), ports_(std::move(ports)) {
    random_.seed(shuffle.seed * 1000 + setup.rank);
    severed_.resize(setup.ranks);
  }
  ~ShuffledWire() override {
    const std::lock_guard lock(mine_->mutex);
    mine_->closed = true;
    mine_->parcels.clear();
  }

  const char* name() const override { return "shuffled"; }
  wire::WireCaps caps() const override { return {shuffle_.maxWrite, shuffle_.ordered, true, true}; }
  std::uint32_t rails(std::uint32_t) const override { return shuffle_.rails; }
  std::string describe(std::uint32_t peer) const override { return text("shuffled to ", peer); }

  std::size_t contactBytes() const override { return sizeof(std::uint32_t); }
  Status openArea(std::uint32_t number, const wire::WireArea& area,
                  std::span<std::byte> contact) override {
    areas_[number] = {area.regions, area.peers, {}};
    std::memcpy(contact.data(), &number, sizeof(number));
    return {};
  }
  Status joinArea(std::uint32_t number,
                  std::span<const std::span<const std::byte>> contacts) override {
    Area& area = areas_.at(number);
    for (std::size_t rank = 0; rank < contacts.size(); ++rank)
      std::memcpy(&area.numberAt[area.peers[rank]], contacts[rank].data(), sizeof(number));
    return {};
  }
  void closeArea(std::uint32_t number) override { areas_.erase(number); }

  bool sendsFrom(const std::byte* memory, std::size_t bytes, std::uint32_t area) const override {
    const auto within = [&](std::span<std::byte> s) {
      return memory >= s.data() && memory + bytes <= s.data() + s.size();
    };
    return shuffle_.anySource || std::ranges::any_of(areas_.at(area).regions, within);
  }

  wire::WireResult write(const wire::WireWrite& write) override {
    if (severed_[write.peer]) {
      lastError_ = Status::error({.code = Code::RemoteError,
                                  .who = {static_cast<int>(write.peer), ""},
                                  .what = "the link to {who} was cut"});
      return wire::WireResult::Failed;
    }
    if (!fits(write)) std::abort();  // a bug of the caller
    if (chance(0.2)) return wire::WireResult::Again;
    Port& port = *ports_[write.peer];
    const std::lock_guard lock(port.mutex);
    if (port.parcels.size() >= kDepth) return wire::WireResult::Again;
    Port::Parcel parcel{setup_.rank, mine_, write};
    parcel.write.area = write.area == 0 ? 0 : areas_.at(write.area).numberAt.at(write.peer);
    if (!port.closed) port.parcels.push_back(parcel);
    ::eventfd_write(port.bell.get(), 1);
    return wire::WireResult::Accepted;
  }

  int poll(wire::WireEvent* out, int max) override {
    const std::lock_guard lock(mine_->mutex);
    int count = 0;
    takeSent(out, max, &count);
    while (count < max && !mine_->parcels.empty() && !chance(0.3)) deliver(pick(), out, &count);
    return count;
  }

  bool arm(std::vector<pollfd>* descriptors, bool /*waits*/) override {
    descriptors->push_back({mine_->bell.get(), POLLIN, 0});
    eventfd_t rings = 0;
    ::eventfd_read(mine_->bell.get(), &rings);
    const std::scoped_lock lock(mine_->mutex, mine_->sentMutex);
    return mine_->parcels.empty() && mine_->sent.empty();
  }

  void sever(std::uint32_t peer) override { severed_[peer] = true; }
  const Status& lastError() const override { return lastError_; }

 private:
  bool chance(double rate) { return static_cast<double>(random_() >> 11) < rate * 0x1p53; }

  bool fits(const wire::WireWrite& w) const {
    const std::size_t room = areas_.at(w.area).regions[static_cast<std::size_t>(w.region)].size();
    return w.bytes <= shuffle_.maxWrite && w.rail < shuffle_.rails && w.target + w.bytes <= room &&
           (!w.quiet || shuffle_.ordered) && (w.bytes == 0 || sendsFrom(w.src, w.bytes, w.area));
  }

  std::size_t pick() {
    const std::size_t any = random_() % mine_->parcels.size();
    if (!shuffle_.ordered) return any;
    const Port::Parcel& chosen = mine_->parcels[any];
    const auto same = [&](const Port::Parcel& p) {
      return p.from == chosen.from && p.write.rail == chosen.write.rail;
    };
    return static_cast<std::size_t>(std::ranges::find_if(mine_->parcels, same) -
                                    mine_->parcels.begin());
  }

  void deliver(std::size_t index, wire::WireEvent* out, int* count) {
    const Port::Parcel parcel = mine_->parcels[index];
    mine_->parcels.erase(mine_->parcels.begin() + static_cast<std::ptrdiff_t>(index));
    const wire::WireWrite& w = parcel.write;
    const std::shared_ptr<Port> sender = parcel.sender.lock();
    if (!sender) return;  // its memory is gone
    if (w.bytes != 0)     // an area that is closed gets nothing but what tells of a bug
      std::memcpy(areas_.at(w.area).regions[static_cast<std::size_t>(w.region)].data() + w.target,
                  w.src, w.bytes);
    if (!w.quiet)
      out[(*count)++] = {wire::WireEvent::RemoteCompletion, parcel.from, w.immediate, 0};
    const std::lock_guard lock(sender->sentMutex);
    sender->sent.push_back({wire::WireEvent::Sent, setup_.rank, 0, w.cookie});
    ::eventfd_write(sender->bell.get(), 1);
  }

  void takeSent(wire::WireEvent* out, int max, int* count) {
    const std::lock_guard lock(mine_->sentMutex);
    while (*count < max && !mine_->sent.empty()) {
      out[(*count)++] = mine_->sent.front();
      mine_->sent.pop_front();
    }
  }

  struct Area {
    wire::Regions regions;
    std::vector<std::uint32_t> peers;                 // by rank of it
    std::map<std::uint32_t, std::uint32_t> numberAt;  // by peer
  };

  const wire::WireSetup setup_;
  const Shuffle shuffle_;
  std::map<std::uint32_t, Area> areas_{{0, {setup_.regions, {}, {}}}};
  std::shared_ptr<Port> mine_;
  std::vector<std::shared_ptr<Port>> ports_;
  std::vector<bool> severed_;
  std::mt19937_64 random_;
  Status lastError_;
};

}  // namespace

Status makeShuffledWire(const wire::WireSetup& setup, const Shuffle& shuffle,
                        std::unique_ptr<wire::Wire>* out) {
  auto mine = std::make_shared<Port>();
  std::shared_ptr<Port>* const address = &mine;
  std::vector<std::shared_ptr<Port>*> addresses;
  WEFT_TRY(gather(setup, {}, address, &addresses));
  std::vector<std::shared_ptr<Port>> ports;
  for (auto* each : addresses) ports.push_back(*each);
  int done = 0;
  std::vector<int> all;
  WEFT_TRY(gather(setup, {}, done, &all));  // `mine` lives until all have copied it
  *out = std::make_unique<ShuffledWire>(setup, shuffle, std::move(mine), std::move(ports));
  return {};
}

}  // namespace weft::transport
