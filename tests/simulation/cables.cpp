// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/cables.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace weft::simulation {

using namespace wire;

// One rank's card.
class SimulatedWire final : public Wire {
 public:
  SimulatedWire(Cables& cables, std::uint32_t rank) : cables_(cables), rank_(rank) {}
  ~SimulatedWire() override { mine().plugged = false; }

  const char* name() const override { return "simulated"; }
  WireCaps caps() const override { return {cables_.weather_.maxWrite, false, false}; }
  std::uint32_t rails(std::uint32_t) const override { return 1; }
  std::string describe(std::uint32_t) const override { return name(); }
  bool sendsFrom(const std::byte* memory, std::size_t bytes, std::uint32_t) const override {
    return cables_.weather_.anySource ||
           std::ranges::any_of(mine().regions,
                               [&](const auto& region) { return contains(region, memory, bytes); });
  }
  WireResult write(const WireWrite& write) override;
  int poll(WireEvent* out, int max) override;
  void sever(std::uint32_t peer) override { cables_.cut(rank_, peer); }
  const Status& lastError() const override { return mine().lastError; }

 private:
  Cables::Port& mine() const { return cables_.ports_[rank_]; }
  void fail(std::uint32_t peer) {
    mine().lastError = Status::error({.code = Code::RemoteError,
                                      .who = {static_cast<int>(peer), ""},
                                      .what = "the cable to {who} was cut",
                                      .fix = "none"});
  }

  Cables& cables_;
  const std::uint32_t rank_;
};

WireResult SimulatedWire::write(const WireWrite& write) {
  const Cables::Port& target = cables_.ports_[write.peer];
  const bool fits = !target.plugged ||
                    write.endsWithin(target.regions[static_cast<std::size_t>(write.region)].size());
  if (!fits || write.bytes > cables_.weather_.maxWrite) std::abort();  // a bug of the caller
  if (cables_.link(rank_, write.peer).down) {
    fail(write.peer);
    return WireResult::Failed;
  }
  if (cables_.scheduler_.random().chance(10)) return WireResult::Again;
  cables_.send(rank_, write);
  return WireResult::Accepted;
}

int SimulatedWire::poll(WireEvent* out, int max) {
  Cables::Port& port = mine();
  if (port.events.empty() && port.downs.empty()) cables_.scheduler_.spin();
  int count = 0;
  while (count < max && !port.events.empty() && !cables_.scheduler_.random().chance(15)) {
    const std::size_t index = cables_.scheduler_.random().below(port.events.size());
    out[count++] = port.events[index];
    port.events.erase(port.events.begin() + static_cast<std::ptrdiff_t>(index));
  }
  if (count == max || port.downs.empty()) return count;
  const std::uint32_t peer = port.downs.back();
  port.downs.pop_back();
  fail(peer);
  out[count] = {WireEvent::LinkDown, peer, 0, 0};
  return count + 1;
}

Cables::Cables(Scheduler& scheduler, std::uint32_t ranks, const Weather& weather)
    : scheduler_(scheduler), weather_(weather), ports_(ranks), links_(std::size_t{ranks} * ranks) {}

std::unique_ptr<Wire> Cables::plugIn(std::uint32_t rank, const Regions& regions) {
  ports_[rank].regions = regions;
  ports_[rank].fiber = scheduler_.self();
  ports_[rank].plugged = true;
  return std::make_unique<SimulatedWire>(*this, rank);
}

Time Cables::delay() {
  Random& random = scheduler_.random();
  if (weather_.clogged != 0 && random.chance(2)) return random.between(0, weather_.clogged);
  return random.between(0, random.chance(85) ? weather_.usual : weather_.longest);
}

void Cables::send(std::uint32_t from, const WireWrite& write) {
  scheduler_.at(scheduler_.now() + delay(), [this, from, write] { deliver(from, write); });
}

// Reads the source now: until `Sent` it belongs to the card.
void Cables::deliver(std::uint32_t from, const WireWrite& write) {
  Port& target = ports_[write.peer];
  if (link(from, write.peer).cut || !ports_[from].plugged || !target.plugged) return;
  if (target.dead || (ports_[from].dead && scheduler_.random().chance(50))) return;
  std::byte* const to =
      target.regions[static_cast<std::size_t>(write.region)].data() + write.target;
  std::copy_n(write.src, write.bytes, to);
  scheduler_.note(write.immediate ^ std::uint64_t{from} << 32);
  if (!write.quiet)
    target.events.push_back({WireEvent::RemoteCompletion, from, write.immediate, 0});
  scheduler_.hurry(target.fiber);
  scheduler_.at(scheduler_.now() + delay(), [this, from, write] {
    Port& sender = ports_[from];
    if (!sender.plugged || link(from, write.peer).down) return;
    sender.events.push_back({WireEvent::Sent, write.peer, 0, write.cookie});
    scheduler_.hurry(sender.fiber);
  });
}

void Cables::tellDown(std::uint32_t rank, std::uint32_t peer, Time within) {
  scheduler_.at(scheduler_.now() + scheduler_.random().between(0, within), [this, rank, peer] {
    if (std::exchange(link(rank, peer).down, true)) return;
    Port& port = ports_[rank];
    std::erase_if(port.events, [&](const WireEvent& event) { return event.peer == peer; });
    port.downs.push_back(peer);
    scheduler_.hurry(port.fiber);
  });
}

void Cables::cut(std::uint32_t from, std::uint32_t to) {
  if (std::exchange(link(from, to).cut, true)) return;
  tellDown(from, to, 20 * kMillisecond);
  if (scheduler_.random().chance(50)) link(to, from).cut = true;
  tellDown(to, from, 60 * kMillisecond);
}

void Cables::kill(std::uint32_t rank) {
  ports_[rank].dead = true;
  for (std::uint32_t r = 0; r < ports_.size(); ++r)
    if (r != rank && scheduler_.random().chance(70)) tellDown(r, rank, 100 * kMillisecond);
}

void Cables::dismiss(std::uint32_t rank) {
  for (std::uint32_t r = 0; r < ports_.size(); ++r)
    if (r != rank) tellDown(rank, r, kMillisecond);
}

}  // namespace weft::simulation
