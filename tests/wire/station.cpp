// SPDX-License-Identifier: Apache-2.0
#include "station.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "base/deadline.h"

namespace weft::wire {
namespace {

constexpr int kPatienceMs = 30000;

}  // namespace

Board::Board() {
  void* pages =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) std::abort();
  shared_ = new (pages) Shared{};
}
Board::~Board() { ::munmap(shared_, sizeof(Shared)); }

WireSetup Station::setupOf(transport::Rank& rank, const Memory& memory, std::vector<bool> members) {
  WireSetup setup{rank.setup({}), {}, kCompletions};
  if (members.empty()) members.assign(rank.ranks, true);
  for (std::uint32_t r = 0; r < rank.ranks; ++r) {
    setup.peers.push_back(r != rank.rank && members[r] && members[rank.rank]);
    setup.names.push_back({static_cast<int>(r), "here", 4000 + static_cast<int>(r)});
  }
  setup.regions[0] = {memory.window.base(), kWindowBytes};
  setup.regions[1] = {memory.bounce.base(), kBounce};
  setup.regions[kOutgoing] = {memory.outgoing.base(), kOutgoingBytes};
  setup.timeoutMs = kPatienceMs;
  return setup;
}

Station::Station(transport::Rank& rank, const Board& board) : rank_(rank), board_(board) {
  for (const WireRegion region : {WireRegion::Window, WireRegion::Bounce})
    std::ranges::fill(memory(region), kBlank);
  const Status status = makeWire(rank, memory_, &wire_);
  REQUIRE(status.ok(), status.text());
}

bool Station::allowed(std::uint32_t peer) const {
  return posted_[peer] - board_.taken(self(), peer).load() < kCompletions;
}

WireResult Station::attempt(const WireWrite& asked) {
  WireWrite write = asked;
  write.cookie = nextCookie_;
  const WireResult result = wire_->write(write);
  if (result != WireResult::Accepted) return result;
  open_.emplace(nextCookie_++, write.peer);
  ++posted_[write.peer];
  return result;
}

bool Station::trySend(const WireWrite& write) {
  if (!allowed(write.peer)) return false;
  const WireResult result = attempt(write);
  REQUIRE(result != WireResult::Failed, wire_->lastError().text());
  return result == WireResult::Accepted;
}

void Station::send(WireWrite write) {
  until("a write to be accepted", [&] { return trySend(write); });
}

void Station::poll() {
  std::array<WireEvent, 8> events;
  const int count = wire_->poll(events.data(), static_cast<int>(events.size()));
  REQUIRE(count >= 0 && count <= static_cast<int>(events.size()));
  for (const WireEvent& event : std::span(events).first(static_cast<std::size_t>(count))) {
    REQUIRE(event.peer < ranks() && event.peer != self());
    if (event.kind == WireEvent::Sent) {
      REQUIRE(!down.contains(event.peer), "an answer on a link that is down");
      const auto open = open_.find(event.cookie);
      REQUIRE(open != open_.end(), "answered twice, or never accepted: cookie ", event.cookie);
      REQUIRE(open->second == event.peer);
      open_.erase(open);
    } else if (event.kind == WireEvent::RemoteCompletion) {
      REQUIRE(!down.contains(event.peer), "a completion on a link that is down");
      completions.emplace_back(event.peer, event.immediate);
      board_.taken(event.peer, self()).fetch_add(1);
    } else {
      REQUIRE(down.insert(event.peer).second, "LinkDown twice");
      downText = wire_->lastError().text();
      REQUIRE(!downText.empty());
      std::erase_if(open_, [&](const auto& open) { return open.second == event.peer; });
    }
  }
}

void Station::until(const char* whatFor, const std::function<bool()>& what) {
  const Deadline deadline = Deadline::in(kPatienceMs);
  while (!what()) {
    poll();
    REQUIRE(!deadline.expired(), "rank ", self(), " waits for ", whatFor, "; ", unanswered(),
            " writes are open, ", heard(), " completions came; ", downText);
    ::sched_yield();
  }
}

void Station::meet() {
  std::vector<std::uint32_t> all(ranks());
  std::iota(all.begin(), all.end(), 0u);
  meet(all);
}

void Station::meet(const std::vector<std::uint32_t>& members) {
  until("answers", [&] {
    return std::ranges::none_of(
        open_, [&](const auto& open) { return std::ranges::count(members, open.second) != 0; });
  });
  std::atomic<std::uint32_t>& arrivals = board_.arrivals(phase_++);
  arrivals.fetch_add(1);
  until("the others", [&] { return arrivals.load() >= members.size(); });
}

void runStations(const WireCase& wire, std::uint32_t ranks,
                 const std::function<void(Station&)>& body) {
  if (const std::string why = unavailable(wire); !why.empty()) GTEST_SKIP() << why;
  setEnvironment(wire);
  const Board board;
  transport::runAllWell(wire.fabric, ranks, [&](transport::Rank& rank) {
    Station station(rank, board);
    body(station);
  });
}

}  // namespace weft::wire
