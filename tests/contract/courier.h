// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "world.h"

namespace weft::transport {

// Keeps the books on one rank's puts: each accepted one is answered once, by Done or by one event.
class Courier {
 public:
  explicit Courier(Transport& transport) : transport_(transport) {}

  // Until it is accepted. Gives it a cookie. False: the transport says Failed.
  bool send(Put put);
  // One poll; checks each event against the books.
  void pump();
  // Until everything is answered.
  void drain();
  // Until put number `cookie` is answered.
  void settle(std::uint64_t cookie);
  // Until the arrival slot's flag is `flag`; any other value than the one that was there is an
  // error.
  void await(const ArrivalSlot& arrival, std::uint64_t flag);

  // Until it is taken.
  void tell(std::uint32_t peer, std::uint64_t completed);
  void awaitCompleted(std::uint32_t peer, std::uint64_t epoch);

  std::uint64_t lastCookie() const { return lastCookie_; }
  const std::set<std::uint64_t>& open() const { return open_; }
  const std::set<std::uint64_t>& failed() const { return failed_; }
  const std::vector<std::uint32_t>& linksDown() const { return linksDown_; }
  bool expectFailures = false;

 private:
  Transport& transport_;
  std::uint64_t lastCookie_ = 0;
  std::set<std::uint64_t> open_;  // Pending
  std::set<std::uint64_t> failed_;
  std::vector<std::uint32_t> linksDown_;
};

// Repeatable test data: byte i of the message `seed`.
std::byte patternAt(std::uint64_t seed, std::size_t i);
void fillPattern(std::span<std::byte> bytes, std::uint64_t seed);
void requirePattern(std::span<const std::byte> bytes, std::uint64_t seed);

// Byte offsets in a window.
std::uint64_t arrivalOffset(const WindowLayout& layout, std::uint32_t lane, std::uint32_t tag);
std::uint64_t arenaOffset(const WindowLayout& layout, std::uint32_t lane, std::size_t at);

}  // namespace weft::transport
