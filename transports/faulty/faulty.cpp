// SPDX-License-Identifier: Apache-2.0
#include "transports/faulty/faulty.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "base/text.h"

namespace weft::faulty {
namespace {

std::uint64_t sumOf(const Put& put) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(put.src), put.bytes});
}

}  // namespace

FaultyTransport::FaultyTransport(std::unique_ptr<Transport> inner, const Faults& faults)
    : inner_(std::move(inner)),
      faults_(faults),
      name_(text("faulty(", inner_->name(), ")")),
      self_(static_cast<std::uint32_t>(inner_->own().control().rank)) {
  std::seed_seq seed{faults_.seed, faults_.seed >> 32, std::uint64_t{self_}};
  random_.seed(seed);
  peers_.resize(inner_->layout().ranks);
  held_.reserve(faults_.depth);
  late_.reserve(2 * std::size_t{faults_.depth});
}

Caps FaultyTransport::caps() const {
  Caps caps = inner_->caps();
  caps.polls = true;
  caps.sleeps = false;  // what is held back becomes ripe by polls
  return caps;
}

std::size_t FaultyTransport::outstanding() const {
  return held_.size() + late_.size() + inner_->outstanding();
}

// Compared as integers: a distribution's draw may differ between standard libraries.
bool FaultyTransport::chance(double rate) {
  return static_cast<double>(random_() >> 11) < rate * 0x1p53;
}

std::uint32_t FaultyTransport::someTime() {
  return static_cast<std::uint32_t>(random_() % (std::uint64_t{faults_.delay} + 1));
}

bool FaultyTransport::getFrom(std::uint32_t peer, std::uint64_t from, void* to, std::size_t bytes) {
  const std::lock_guard lock(copying_);
  const bool done = answers(peer, !peers_[peer].broken && inner_->getFrom(peer, from, to, bytes));
  if (done && isSpoiled(peer, self_, bytes, &peers_[peer].largeGets)) flipOneBit(to, bytes);
  return done;
}

bool FaultyTransport::putTo(std::uint32_t peer, std::uint64_t to, const void* from,
                            std::size_t bytes) {
  const std::lock_guard lock(copying_);
  return answers(peer, !peers_[peer].broken && inner_->putTo(peer, to, from, bytes));
}

bool FaultyTransport::answers(std::uint32_t peer, bool done) {
  if (!done) fail(peers_[peer].broken ? brokenLink(peer, "was cut") : inner_->lastError());
  return done;
}

PutResult FaultyTransport::put(const Put& asked) {
  Put put = asked;
  raiseNow();
  if (cutsNow(put)) breakLink(put.peer, text("cut at put ", peers_[put.peer].puts));
  if (peers_[put.peer].broken) {
    fail(brokenLink(put.peer, "was cut"));
    return PutResult::Failed;
  }
  if (full() || chance(faults_.again)) return PutResult::Again;
  const Faults::Link* lag = find(faults_.lags, self_, put.peer);
  if (!corrupts(&put) && lag == nullptr && !chance(faults_.hold)) return pass(put);
  hold(put, lag == nullptr ? 0 : lag->number);
  return PutResult::Pending;
}

// The signal decides whether this rank dies, stops or does something else in the midst of a call.
void FaultyTransport::raiseNow() {
  ++puts_;
  for (const Faults::Link& at : faults_.raises)
    if (at.number == puts_ && at.from == self_) ::raise(static_cast<int>(at.peer));
}

bool FaultyTransport::cutsNow(const Put& put) {
  const std::uint64_t puts = ++peers_[put.peer].puts;
  return !peers_[put.peer].broken &&
         std::ranges::any_of(faults_.cuts, [&](const Faults::Link& cut) {
           return cut.number == puts && cut.peer == put.peer && cut.from.value_or(self_) == self_;
         });
}

const Faults::Link* FaultyTransport::find(const std::vector<Faults::Link>& links,
                                          std::uint32_t from, std::uint32_t to) {
  const auto found = std::ranges::find_if(links, [&](const Faults::Link& link) {
    return link.peer == to && link.from.value_or(from) == from;
  });
  return found == links.end() ? nullptr : &*found;
}

// Smaller messages may be addresses and counts of the engine, which must be true.
bool FaultyTransport::isSpoiled(std::uint32_t from, std::uint32_t to, std::size_t bytes,
                                std::uint64_t* large) const {
  constexpr std::size_t kSmallest = 64;
  const Faults::Link* link = find(faults_.corrupts, from, to);
  if (link == nullptr || bytes < kSmallest || ++*large != link->number) return false;
  logInfo("faulty transport: corrupted message ", link->number, " from rank ", from, " to rank ",
          to);
  return true;
}

void FaultyTransport::flipOneBit(void* memory, std::size_t bytes) {
  static_cast<std::byte*>(memory)[random_() % bytes] ^= std::byte{1} << (random_() % 8);
}

// Whether the put is the one to spoil; then its source is a copy with one bit flipped.
bool FaultyTransport::corrupts(Put* put) {
  if (!isSpoiled(self_, put->peer, put->bytes, &peers_[put->peer].largePuts)) return false;
  auto& copy = corrupted_.emplace_back(put->src, put->src + put->bytes);
  flipOneBit(copy.data(), copy.size());
  put->src = copy.data();
  return true;
}

Status FaultyTransport::brokenLink(std::uint32_t peer, const std::string& how) const {
  ErrorData data{.code = Code::RemoteError};
  data.who.rank = static_cast<int>(peer);
  data.what = text("the link from rank ", self_, " to rank ", peer, " ", how);
  return Status::error(std::move(data));
}

PutResult FaultyTransport::pass(const Put& put) {
  const PutResult result = inner_->put(put);
  if (result == PutResult::Failed) fail(inner_->lastError());
  if (result != PutResult::Done || !chance(faults_.late)) return result;
  late_.push_back({{Event::PutDone, put.peer, put.cookie}, someTime()});
  return PutResult::Pending;
}

void FaultyTransport::hold(const Put& put, std::uint64_t microseconds) {
  if (faults_.scribble) scribble(put);
  const auto due = Deadline::Clock::now() + std::chrono::microseconds(microseconds);
  held_.push_back({put, someTime(), faults_.check ? sumOf(put) : 0, due});
}

// The target's bytes are undefined until the arrival, so they may be anything.
void FaultyTransport::scribble(const Put& put) {
  const WindowView target = inner_->view(put.peer);
  if (!target || put.direct) return;
  if (put.target == kInlined) {
    auto& arrival = *reinterpret_cast<ArrivalSlot*>(target.base() + put.arrival);
    std::memset(arrival.inlined, 0xa5, sizeof(arrival.inlined));
  } else if (put.bytes != 0) {
    std::memset(target.base() + put.target, 0xa5, put.bytes);
  }
}

int FaultyTransport::poll(Event* out, int max) {
  issueRipe();
  pollInner();
  return tell(out, max);
}

void FaultyTransport::issueRipe() {
  const auto now = Deadline::Clock::now();
  std::ranges::shuffle(held_, random_);
  std::erase_if(held_, [&](Held& held) {
    if (held.polls != 0) --held.polls;
    return held.polls == 0 && held.due <= now && issue(held);
  });
}

// False: the inner transport did not take it, later again.
bool FaultyTransport::issue(const Held& held) {
  const Put& put = held.put;
  Event event{Event::PutDone, put.peer, put.cookie};
  if (faults_.check && sumOf(put) != held.sum) {
    fail(Status::error(Code::RemoteError, "the source of a put of ", put.bytes, " bytes to rank ",
                       put.peer, " was changed before its PutDone: a bug of the caller"));
    event.kind = Event::Failed;
  } else {
    const PutResult result = inner_->put(put);
    if (result == PutResult::Again) return false;
    if (result == PutResult::Pending) return true;  // the inner transport tells when it is done
    if (result == PutResult::Failed) {
      fail(inner_->lastError());
      event.kind = Event::Failed;
    }
  }
  late_.push_back({event, chance(faults_.late) ? someTime() : 0});
  return true;
}

void FaultyTransport::pollInner() {
  std::array<Event, 16> events;
  const std::size_t room = std::min(events.size(), late_.capacity() - late_.size());
  const int got = inner_->poll(events.data(), static_cast<int>(room));
  for (int i = 0; i < got; ++i) late_.push_back({events[static_cast<std::size_t>(i)], someTime()});
}

int FaultyTransport::tell(Event* out, int max) {
  std::ranges::shuffle(late_, random_);
  int told = 0;
  std::erase_if(late_, [&](Late& late) {
    if (late.polls != 0) --late.polls;
    if (late.polls != 0 || told == max) return false;
    out[told++] = late.event;
    return true;
  });
  return told;
}

// Accepted puts that were held end as Failed; LinkDown is told once.
void FaultyTransport::breakLink(std::uint32_t peer, const std::string& why) {
  if (peers_[peer].broken) return;
  peers_[peer].broken = true;
  inner_->sever(peer);
  fail(brokenLink(peer, "is " + why));
  std::erase_if(held_, [&](const Held& held) {
    if (held.put.peer != peer) return false;
    late_.push_back({{Event::Failed, peer, held.put.cookie}, 0});
    return true;
  });
  late_.push_back({{Event::LinkDown, peer, 0}, 0});
}

void FaultyTransport::fail(const Status& why) {
  lastError_ = within(text(name_, " seed=", faults_.seed, ": "), {}, why);
}

Status makeFaulty(std::unique_ptr<Transport> inner, const std::string& spec,
                  std::unique_ptr<Transport>* out) {
  Faults faults;
  WEFT_TRY(parseFaults(spec, &faults));
  logInfo("faulty transport over ", inner->name(), ": ", spec, " (seed=", faults.seed, ")");
  *out = std::make_unique<FaultyTransport>(std::move(inner), faults);
  return {};
}

}  // namespace weft::faulty
