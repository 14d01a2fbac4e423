// SPDX-License-Identifier: Apache-2.0
#include "courier.h"

#include <array>
#include <thread>

#include "base/deadline.h"

namespace weft::transport {
namespace {

constexpr int kPatienceMs = 30000;

}  // namespace

bool Courier::send(Put put) {
  put.cookie = ++lastCookie_;
  const Deadline deadline = Deadline::in(kPatienceMs);
  for (;;) {
    const PutResult result = transport_.put(put);
    if (result == PutResult::Pending) open_.insert(put.cookie);
    if (result == PutResult::Failed) REQUIRE(expectFailures, transport_.lastError().text());
    if (result != PutResult::Again) return result != PutResult::Failed;
    REQUIRE(!deadline.expired(), "Again for ever");
    pump();
  }
}

void Courier::pump() {
  std::array<Event, 5> events;
  const int count = transport_.poll(events.data(), static_cast<int>(events.size()));
  REQUIRE(count >= 0 && count <= 5);
  for (int i = 0; i < count; ++i) {
    const Event& event = events[static_cast<std::size_t>(i)];
    if (event.kind == Event::LinkDown) {
      REQUIRE(expectFailures, transport_.lastError().text());
      linksDown_.push_back(event.peer);
      continue;
    }
    REQUIRE(open_.erase(event.cookie) == 1, "cookie ", event.cookie, " is not open");
    if (event.kind == Event::PutDone) continue;
    REQUIRE(expectFailures, transport_.lastError().text());
    failed_.insert(event.cookie);
  }
  std::this_thread::yield();
}

void Courier::drain() {
  const Deadline deadline = Deadline::in(kPatienceMs);
  while (!open_.empty() || transport_.outstanding() != 0) {
    REQUIRE(!deadline.expired(), open_.size(), " puts are not answered, the transport counts ",
            transport_.outstanding());
    pump();
  }
}

void Courier::settle(std::uint64_t cookie) {
  const Deadline deadline = Deadline::in(kPatienceMs);
  while (open_.contains(cookie)) {
    REQUIRE(!deadline.expired(), "put ", cookie, " is not answered");
    pump();
  }
}

void Courier::await(const ArrivalSlot& arrival, std::uint64_t flag) {
  const Deadline deadline = Deadline::in(kPatienceMs);
  const std::uint64_t before = arrival.flag.load(std::memory_order_acquire);
  for (std::uint64_t now = before; now != flag;
       now = arrival.flag.load(std::memory_order_acquire)) {
    REQUIRE(now == before, "the flag is ", now, ", expected ", flag, " after ", before);
    REQUIRE(!deadline.expired(), "no arrival of flag ", flag, ", there is ", now);
    pump();
  }
}

void Courier::tell(std::uint32_t peer, std::uint64_t completed) {
  const Deadline deadline = Deadline::in(kPatienceMs);
  while (!transport_.tell(peer, completed)) {
    REQUIRE(!deadline.expired(), "not now, for ever");
    pump();
  }
}

void Courier::awaitCompleted(std::uint32_t peer, std::uint64_t epoch) {
  const Deadline deadline = Deadline::in(kPatienceMs);
  const std::atomic<std::uint64_t>& completed = transport_.control(peer)->completed;
  while (completed.load(std::memory_order_acquire) != epoch) {
    REQUIRE(!deadline.expired(), "rank ", peer, " completed ", completed.load());
    pump();
  }
}

std::byte patternAt(std::uint64_t seed, std::size_t i) {
  return static_cast<std::byte>((seed * 31 + i * 7 + (i >> 8) * 13) & 0xff);
}

void fillPattern(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = patternAt(seed, i);
}

void requirePattern(std::span<const std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    REQUIRE(bytes[i] == patternAt(seed, i), "byte ", i, " of ", bytes.size(), ", message ", seed);
}

std::uint64_t arrivalOffset(const WindowLayout& layout, std::uint32_t lane, std::uint32_t tag) {
  return layout.arrivals() +
         (std::uint64_t{lane} * layout.arrivalSlots + tag) * sizeof(ArrivalSlot);
}

std::uint64_t arenaOffset(const WindowLayout& layout, std::uint32_t lane, std::size_t at) {
  return layout.arena() + lane * layout.arenaBytes + at;
}

}  // namespace weft::transport
