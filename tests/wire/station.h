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

#include "transports/mapped/handle.h"
#include "wires.h"

namespace weft {

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
  // Notices of `from` that `to` has polled.
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
  static constexpr std::uint32_t kNotices = 32;  // a peer
  static constexpr std::size_t kSegment = std::size_t{1} << 20;
  static constexpr std::size_t kMailbox = std::size_t{1} << 16;
  static constexpr std::byte kBlank{0xee};

  struct Memory {
    Mapping segment{kSegment, -1};
    Mapping mailbox{kMailbox, -1};
  };
  // By the rank's fabric, with the ranks that `members` names (all).
  static Status makeWire(Rank& rank, const Memory& memory, std::unique_ptr<Wire>* out,
                         std::vector<bool> members = {});

  Station(Rank& rank, const Board& board);

  Wire& wire() { return *wire_; }
  std::uint32_t ranks() const { return rank_.ranks; }
  std::uint32_t self() const { return rank_.rank; }
  std::span<std::byte> memory(WireRegion region) {
    return region == WireRegion::Segment ? std::span(memory_.segment.base(), kSegment)
                                         : std::span(memory_.mailbox.base(), kMailbox);
  }
  // The upper half of the segment is for sources: nobody writes there.
  std::span<std::byte> landing() { return memory(WireRegion::Segment).first(kSegment / 2); }
  std::span<std::byte> sources() { return memory(WireRegion::Segment).last(kSegment / 2); }

  // Polls until it is accepted, within the peer's allowance of notices.
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
  std::size_t heard() const { return noticed.size(); }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> noticed;  // peer, notice
  std::set<std::uint32_t> down;
  std::string downText;

 private:
  bool allowed(std::uint32_t peer) const;

  Rank& rank_;
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

}  // namespace weft
