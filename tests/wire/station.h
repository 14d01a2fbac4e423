// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transports/mapping.h"
#include "wires.h"

namespace weft::wire {

// What the ranks of one test know of each other, whether threads or processes: shared pages. A wire
// makes progress only while its ranks poll, so they must not sleep in a barrier.
class Board {
 public:
  static constexpr std::uint32_t kMost = 8;
  Board();
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  std::atomic<std::uint32_t>& arrivals(std::uint32_t phase) const {
    return shared_->arrivals[phase];
  }
  // Remote completions of `from` that `to` has polled.
  std::atomic<std::uint32_t>& taken(std::uint32_t from, std::uint32_t to) const {
    return shared_->taken[from][to];
  }

 private:
  struct Shared {
    std::array<std::atomic<std::uint32_t>, 64> arrivals;
    std::array<std::array<std::atomic<std::uint32_t>, kMost>, kMost> taken;
  };
  Shared* shared_;
};

// One rank at its wire: its memory, and what has come of it.
class Station {
 public:
  static constexpr std::uint32_t kCompletions = 32;  // a peer
  static constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
  static constexpr std::size_t kBounce = std::size_t{1} << 16;
  static constexpr std::size_t kOutgoingBytes = 4096;
  static constexpr std::byte kBlank{0xee};

  struct Memory {
    transport::Mapping window{kWindowBytes, -1};
    transport::Mapping bounce{kBounce, -1};
    transport::Mapping outgoing{kOutgoingBytes, -1};
  };
  // By the rank's fabric, with the ranks that `members` names (all).
  static WireSetup setupOf(transport::Rank& rank, const Memory& memory,
                           std::vector<bool> members = {});
  static Status makeWire(transport::Rank& rank, const Memory& memory, std::unique_ptr<Wire>* out,
                         std::vector<bool> members = {}) {
    return rank.fabric.wire(setupOf(rank, memory, std::move(members)), out);
  }

  Station(transport::Rank& rank, const Board& board);

  Wire& wire() { return *wire_; }
  std::uint32_t ranks() const { return rank_.ranks; }
  std::uint32_t self() const { return rank_.rank; }
  std::span<std::byte> memory(WireRegion region) {
    return region == WireRegion::Window ? std::span(memory_.window.base(), kWindowBytes)
                                        : std::span(memory_.bounce.base(), kBounce);
  }
  // Nobody writes there.
  std::span<std::byte> outgoing() { return {memory_.outgoing.base(), kOutgoingBytes}; }
  // The upper half of the window is for sources: nobody writes there.
  std::span<std::byte> target() { return memory(WireRegion::Window).first(kWindowBytes / 2); }
  std::span<std::byte> sources() { return memory(WireRegion::Window).last(kWindowBytes / 2); }

  // Polls until it is accepted, within the peer's allowance of completions.
  void send(WireWrite write);
  // Once, whatever comes of it; the allowance is the caller's business.
  WireResult attempt(const WireWrite& write);
  // Does not wait; false: not now.
  bool trySend(const WireWrite& write);
  void poll();
  // Polls until `what` holds; fails after a while, saying `whatFor`.
  void until(const char* whatFor, const std::function<bool()>& what);
  // All that was accepted is answered, here and everywhere; then all go on.
  void meet();
  void meet(const std::vector<std::uint32_t>& members);  // of those alone

  std::size_t unanswered() const { return open_.size(); }
  std::size_t heard() const { return completions.size(); }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> completions;  // peer, immediate data
  std::set<std::uint32_t> down;
  std::string downText;

 private:
  bool allowed(std::uint32_t peer) const;

  transport::Rank& rank_;
  const Board& board_;
  Memory memory_;
  std::map<std::uint64_t, std::uint32_t> open_;  // cookie -> peer
  std::uint64_t nextCookie_ = 1;
  std::array<std::uint32_t, Board::kMost> posted_ = {};
  std::uint32_t phase_ = 0;
  std::unique_ptr<Wire> wire_;  // goes first
};

// Runs `body` on so many ranks of the wire under test; each fails the test that is not well.
void runStations(const WireCase& wire, std::uint32_t ranks,
                 const std::function<void(Station&)>& body);

}  // namespace weft::wire
