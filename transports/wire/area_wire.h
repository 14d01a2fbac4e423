// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/wire/immediate_data.h"
#include "transports/wire/wire.h"

namespace weft::wire {

// A wire as one of the communicators on it sees it: with its own ranks, its own memory, and values of
// immediate data from 0. So several communicators share what connects their ranks.
//
// Each rank chooses by itself which of the 2^28 values it hears a communicator under: a run from
// `first` on, which it tells the others.
class AreaWire {
 public:
  // Cookies have their low bits for the communicator's own use; then comes its number.
  static constexpr std::uint32_t kCookieBits = 16;

  // That of the wire's maker, whose ranks are the wire's, and whose values begin at 0.
  AreaWire(Wire& wire, ImmediateValues values) : wire_(wire), values_(values) {}
  // `peers`: by rank, the number on the wire; `first`: of the values that come.
  AreaWire(Wire& wire, ImmediateValues values, std::uint32_t number,
           std::vector<std::uint32_t> peers, std::uint32_t first)
      : wire_(wire), values_(values), number_(number), first_(first), peers_(std::move(peers)) {
    for (const std::uint32_t peer : peers_)
      ranks_.resize(std::max<std::size_t>(ranks_.size(), peer + 1), kNobody);
    for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) ranks_[peers_[rank]] = rank;
  }

  const ImmediateValues& values() const { return values_; }
  std::uint32_t number() const { return number_; }
  std::uint32_t first() const { return first_; }
  // Of the values that go, by rank.
  void learnFirsts(std::vector<std::uint32_t> firsts) { firsts_ = std::move(firsts); }

  std::uint32_t peer(std::uint32_t rank) const { return peers_.empty() ? rank : peers_[rank]; }

  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  std::uint32_t rank(std::uint32_t peer) const {
    return peers_.empty() ? peer : peer < ranks_.size() ? ranks_[peer] : kNobody;
  }

  WireCaps caps() const { return wire_.caps(); }
  bool isConnected(std::uint32_t rank) const { return wire_.isConnected(peer(rank)); }
  std::uint32_t rails(std::uint32_t rank) const { return wire_.rails(peer(rank)); }
  bool sendsFrom(const std::byte* memory, std::size_t bytes) const {
    return wire_.sendsFrom(memory, bytes, number_);
  }
  WireResult write(WireWrite write) {
    if (!firsts_.empty()) write.immediate += firsts_[write.peer];
    write.peer = peer(write.peer);
    write.area = number_;
    write.cookie |= std::uint64_t{number_} << kCookieBits;
    return wire_.write(write);
  }
  const Status& lastError() const { return wire_.lastError(); }

  static std::uint32_t numberOf(std::uint64_t cookie) {
    return static_cast<std::uint32_t>(cookie >> kCookieBits) & 0xffff;
  }

 private:
  Wire& wire_;
  const ImmediateValues values_;
  const std::uint32_t number_ = 0;
  const std::uint32_t first_ = 0;
  const std::vector<std::uint32_t> peers_;  // by rank; empty: as they are
  std::vector<std::uint32_t> ranks_;        // by peer
  std::vector<std::uint32_t> firsts_;
};

}  // namespace weft::wire
