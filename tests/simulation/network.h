// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/descriptors.h"
#include "tests/simulation/scheduler.h"
#include "transports/transport.h"

namespace weft::simulation {

// How a simulated network behaves; a seed decides.
struct Weather {
  bool polls = true;    // arrivals and PutDone come in poll() only
  bool direct = false;  // puts into the peers' own memory work
  bool shares = false;  // all memory can be reached
  bool copies = false;  // the source of every put is free at once
  Time usual = 5 * kMicrosecond;
  Time longest = 200 * kMicrosecond;
  Time clogged = 0;                   // what one in fifty takes; 0: none
  std::size_t longestCopy = 4 << 20;  // into a peer's own memory
};

// Ranks joined by a network that keeps the contract of transports/transport.h and gives nothing
// beyond it: puts arrive in any order, in pieces, some of them twice, and what lies where they will
// arrive is garbage before. Control pages are shared memory, as on one host.
class Network {
 public:
  Network(Scheduler& scheduler, const transport::WindowLayout& layout, const Weather& weather);
  ~Network();

  transport::Transport& transport(std::uint32_t rank);
  // The fiber that polls for this rank.
  void serve(std::uint32_t rank, Scheduler::FiberId fiber) { ports_[rank].fiber = fiber; }
  // Puts from one to the other fail, at once or after a while.
  void cut(std::uint32_t from, std::uint32_t to);
  // Its process ends: what it has handed over may still come.
  void kill(std::uint32_t rank);
  // After the end of a simulation: whatever a dead rank does fails, so that it ends.
  void dismiss(std::uint32_t rank) { ports_[rank].dismissed = true; }
  bool isDead(std::uint32_t rank) const { return ports_[rank].dead; }
  // Ranks make different calls: who waits for nobody completes what nobody takes, so that the slots
  // of such puts are used again while they are under way. Their tags give them away.
  void disagree() { disagreeing_ = true; }
  // What somebody did that the contract forbids; "" as long as nobody did.
  const std::string& violation() const { return violation_; }

 private:
  friend class SimulatedTransport;
  struct Parcel {
    std::uint32_t from = 0;
    transport::Put put;
    bool pending = false;         // the source is read when pieces are sent
    std::vector<std::byte> copy;  // of the source, if not
    std::byte inlined[transport::kInlineBytes] = {};
    std::uint32_t pieces = 0;  // not yet written
    bool lost = false;
    bool twice = false;
  };
  using ParcelRef = std::shared_ptr<Parcel>;
  struct Port {
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<std::byte[]> memory;
    std::byte* window = nullptr;
    Scheduler::FiberId fiber = 0;
    int deathFd = -1;
    bool dead = false;
    bool dismissed = false;
    std::vector<ParcelRef> inbox;  // whole, not yet raised
    std::vector<transport::Event> events;
    std::size_t outstanding = 0;
    Status lastError;
  };
  struct Link {
    bool cut = false;
    bool told = false;               // its sender has been told
    std::vector<ParcelRef> parcels;  // on their way
  };

  Link& link(std::uint32_t from, std::uint32_t to) { return links_[from * ports_.size() + to]; }
  transport::ArrivalSlot& slotOf(const Parcel& parcel) const;
  std::byte* targetOf(const Parcel& parcel) const;
  Time delay();
  std::uint32_t depthOfRing(const transport::Put& put) const;
  void check(const Parcel& parcel);
  void checkCopy(std::uint32_t from, const transport::Put& put);
  void send(const ParcelRef& parcel);
  void writePiece(const Parcel& parcel, std::size_t from, std::size_t to);
  void arrive(const ParcelRef& parcel);
  void raise(const Parcel& parcel);
  void forget(const ParcelRef& parcel);
  void scribble(std::byte* at, std::size_t bytes);
  void tellDown(std::uint32_t rank, std::uint32_t peer);
  void complain(const Parcel& parcel, const std::string& what);

  Scheduler& scheduler_;
  const transport::WindowLayout layout_;
  const Weather weather_;
  std::vector<Port> ports_;
  std::vector<Link> links_;
  std::string violation_;
  bool disagreeing_ = false;
};

}  // namespace weft::simulation
