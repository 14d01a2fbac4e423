// SPDX-License-Identifier: Apache-2.0
#include "comm/pair_timing.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace weft::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = std::size_t{512} << 10;
constexpr std::uint64_t kMeetings = 1;  // rounds until both are here, and connected
constexpr std::uint64_t kTries = 2;     // rounds without and with bytes; the quickest count
constexpr std::uint64_t kRounds = kMeetings + 2 * kTries;

// One rank's part: what goes to one peer, and is answered. Meanwhile it answers what another one
// sends, whenever it comes: nobody waits for who measures a slower way.
class Timing {
 public:
  Timing(transport::Transport& transport, std::uint32_t rank, Deadline deadline)
      : transport_(transport),
        layout_(transport.layout()),
        rank_(rank),
        deadline_(deadline),
        bytes_(std::min({kBytes, layout_.stagingRegion(), transport.caps().maxPut})) {}

  // False: nothing more is to be measured.
  bool exchange(std::uint32_t to, std::uint32_t from, WayTimes* times);

 private:
  enum Index : std::uint32_t { Message, Answer };  // of the arrival slots of a peer

  bool commit() const;
  bool round(std::uint64_t number, std::size_t bytes, double* ns);
  bool put(std::uint32_t peer, Index index, std::uint64_t flag, std::size_t bytes);
  bool progress();
  bool answer();
  std::uint64_t slotOf(std::uint32_t writer, Index index) const {
    return layout_.regions().slotOf(writer, index);
  }
  std::uint64_t regionOf(std::uint32_t writer) const {
    return layout_.arena() + writer * layout_.stagingRegion();
  }
  std::atomic<std::uint64_t>& flagOf(std::uint32_t peer, Index index) const {
    return transport_.own().arrivals()[slotOf(peer, index)].flag;
  }

  transport::Transport& transport_;
  const transport::WindowLayout& layout_;
  const std::uint32_t rank_;
  const Deadline deadline_;
  const std::size_t bytes_;
  std::uint32_t to_ = 0, from_ = 0;
  std::uint64_t answered_ = 0;  // of from_
};

bool Timing::progress() {
  std::array<transport::Event, 8> events;
  const int count = transport_.poll(events.data(), static_cast<int>(events.size()));
  for (int i = 0; i < count; ++i)
    if (events[static_cast<std::size_t>(i)].kind != transport::Event::PutDone) return false;
  if (count == 0) ::sched_yield();
  return !deadline_.expired();
}

bool Timing::put(std::uint32_t peer, Index index, std::uint64_t flag, std::size_t bytes) {
  const std::uint64_t slot = slotOf(rank_, index);
  const transport::Put put{
      .peer = peer,
      .arrival = layout_.arrivals() + slot * sizeof(transport::ArrivalSlot),
      .flag = flag,
      .src = transport_.own().base() + regionOf(rank_),  // where nobody else writes
      .bytes = bytes,
      .target = bytes == 0 ? transport::kInlined : regionOf(rank_)};
  for (;;) {
    const transport::PutResult result = transport_.put(put);
    if (result == transport::PutResult::Failed) return false;
    if (result != transport::PutResult::Again) return true;
    if (!progress()) return false;
  }
}

bool Timing::answer() {
  if (answered_ == kRounds || flagOf(from_, Message).load(std::memory_order_acquire) <= answered_)
    return true;
  return put(from_, Answer, ++answered_, 0);
}

// From the put until its answer is here.
bool Timing::round(std::uint64_t number, std::size_t bytes, double* ns) {
  const Clock::time_point began = Clock::now();
  if (!put(to_, Message, number, bytes)) return false;
  while (flagOf(to_, Answer).load(std::memory_order_acquire) != number)
    if (!answer() || !progress()) return false;
  *ns = std::chrono::duration<double, std::nano>(Clock::now() - began).count();
  return true;
}

bool Timing::commit() const {
  return transport_.commit(rank_, regionOf(rank_), bytes_).ok() &&
         transport_.commit(to_, regionOf(rank_), bytes_).ok() &&
         transport_.commit(rank_, regionOf(from_), bytes_).ok();
}

bool Timing::exchange(std::uint32_t to, std::uint32_t from, WayTimes* times) {
  to_ = to, from_ = from, answered_ = 0;
  if (!commit()) return false;
  std::array<double, 2> least{1e18, 1e18};  // without and with bytes
  for (std::uint64_t number = 1; number <= kRounds; ++number) {
    const bool isLong = number % 2 == 1;
    double ns = 0;
    if (!round(number, isLong ? bytes_ : 0, &ns)) return false;
    if (number > kMeetings) least[isLong] = std::min(least[isLong], ns);
  }
  while (answered_ < kRounds || transport_.outstanding() > 0)
    if (!answer() || !progress()) return false;
  flagOf(from, Message) = flagOf(to, Answer) = 0;  // the others' may have begun the next step
  *times = {least[0] / 2, static_cast<double>(bytes_) / least[1]};
  return true;
}

}  // namespace

std::vector<WayTimes> timeWays(transport::Transport& transport, std::uint32_t rank,
                               std::uint32_t ranks, Deadline deadline) {
  std::vector<WayTimes> times(ranks);
  Timing timing(transport, rank, deadline);
  for (std::uint32_t step = 1; step < ranks; ++step) {
    const std::uint32_t to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
    if (!timing.exchange(to, from, &times[to])) break;
  }
  return times;
}

}  // namespace weft::comm
