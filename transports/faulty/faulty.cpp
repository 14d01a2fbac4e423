// SPDX-License-Identifier: Apache-2.0
#include "transports/faulty/faulty.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "base/text.h"

namespace weft {
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
  broken_.resize(inner_->layout().ranks);
  puts_.resize(inner_->layout().ranks);
  large_.resize(inner_->layout().ranks);
  held_.reserve(faults_.depth);
  late_.reserve(2 * std::size_t{faults_.depth});
}

Caps FaultyTransport::caps() const {
  Caps caps = inner_->caps();
  caps.maps = false;
  caps.polls = true;
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

bool FaultyTransport::fetch(std::uint32_t peer, std::uint64_t from, void* to, std::size_t bytes) {
  return answers(peer, !broken_[peer] && inner_->fetch(peer, from, to, bytes));
}

bool FaultyTransport::deposit(std::uint32_t peer, std::uint64_t to, const void* from,
                              std::size_t bytes) {
  return answers(peer, !broken_[peer] && inner_->deposit(peer, to, from, bytes));
}

bool FaultyTransport::answers(std::uint32_t peer, bool done) {
  if (!done) fail(broken_[peer] ? cutText(peer) : inner_->lastError());
  return done;
}

PutResult FaultyTransport::put(const Put& asked) {
  Put put = asked;
  if (cutsNow(put)) breakLink(put.peer, text("cut at put ", puts_[put.peer]));
  if (broken_[put.peer]) {
    fail(cutText(put.peer));
    return PutResult::Failed;
  }
  if (full() || chance(faults_.again)) return PutResult::Again;
  const Faults::Link* lag = find(faults_.lags, put.peer);
  if (!corrupts(&put) && lag == nullptr && !chance(faults_.hold)) return pass(put);
  hold(put, lag == nullptr ? 0 : lag->number);
  return PutResult::Pending;
}

bool FaultyTransport::cutsNow(const Put& put) {
  const std::uint64_t puts = ++puts_[put.peer];
  return !broken_[put.peer] && std::ranges::any_of(faults_.cuts, [&](const Faults::Link& cut) {
    return cut.number == puts && cut.peer == put.peer && cut.from.value_or(self_) == self_;
  });
}

const Faults::Link* FaultyTransport::find(const std::vector<Faults::Link>& links,
                                          std::uint32_t peer) const {
  const auto found = std::ranges::find_if(links, [&](const Faults::Link& link) {
    return link.peer == peer && link.from.value_or(self_) == self_;
  });
  return found == links.end() ? nullptr : &*found;
}

// Whether the put is the one to spoil; then its source is a copy with one bit flipped. Smaller puts
// may be addresses and counts of the engine, which is not made to survive false ones.
bool FaultyTransport::corrupts(Put* put) {
  constexpr std::size_t kSmallest = 64;
  const Faults::Link* link = find(faults_.corrupts, put->peer);
  if (link == nullptr || put->bytes < kSmallest) return false;
  if (++large_[put->peer] != link->number) return false;
  const std::byte* source = put->src;
  auto& copy = corrupted_.emplace_back(source, source + put->bytes);
  copy[random_() % copy.size()] ^= std::byte{1} << (random_() % 8);
  put->src = copy.data();
  logInfo("faulty transport: corrupted put ", link->number, " to rank ", put->peer);
  return true;
}

std::string FaultyTransport::cutText(std::uint32_t peer) const {
  return text("the link from rank ", self_, " to rank ", peer, " was cut");
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
  const SegmentView target = inner_->view(put.peer);
  if (!target || put.direct) return;
  if (put.target == kInCell) {
    auto& cell = *reinterpret_cast<Cell*>(target.base() + put.cell);
    std::memset(cell.inlined, 0xa5, sizeof(cell.inlined));
  } else if (put.bytes != 0) {
    std::memset(target.base() + put.target, 0xa5, put.bytes);
  }
}

int FaultyTransport::poll(Event* out, int max) {
  issueRipe();
  fetchInner();
  return tell(out, max);
}

void FaultyTransport::issueRipe() {
  const auto now = Deadline::Clock::now();
  std::shuffle(held_.begin(), held_.end(), random_);
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
    fail(text("the source of a put of ", put.bytes, " bytes to rank ", put.peer,
              " was changed before its PutDone: a bug of the caller"));
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

void FaultyTransport::fetchInner() {
  std::array<Event, 16> events;
  const std::size_t room = std::min(events.size(), late_.capacity() - late_.size());
  const int got = inner_->poll(events.data(), static_cast<int>(room));
  for (int i = 0; i < got; ++i) late_.push_back({events[static_cast<std::size_t>(i)], someTime()});
}

int FaultyTransport::tell(Event* out, int max) {
  std::shuffle(late_.begin(), late_.end(), random_);
  int told = 0;
  std::erase_if(late_, [&](Late& late) {
    if (late.polls != 0) --late.polls;
    if (late.polls != 0 || told == max) return false;
    out[told++] = late.event;
    return true;
  });
  return told;
}

void FaultyTransport::sever(std::uint32_t peer) { breakLink(peer, "severed"); }

// Accepted puts that were held end as Failed; LinkDown is told once.
void FaultyTransport::breakLink(std::uint32_t peer, const std::string& why) {
  if (broken_[peer]) return;
  broken_[peer] = true;
  inner_->sever(peer);
  fail(text("the link from rank ", self_, " to rank ", peer, " is ", why));
  std::erase_if(held_, [&](const Held& held) {
    if (held.put.peer != peer) return false;
    late_.push_back({{Event::Failed, peer, held.put.cookie}, 0});
    return true;
  });
  late_.push_back({{Event::LinkDown, peer, 0}, 0});
}

void FaultyTransport::fail(const std::string& why) {
  lastError_ = text(name_, " seed=", faults_.seed, ": ", why);
}

Status makeFaulty(std::unique_ptr<Transport> inner, const std::string& spec,
                  std::unique_ptr<Transport>* out) {
  Faults faults;
  WEFT_TRY(parseFaults(spec, &faults));
  logInfo("faulty transport over ", inner->name(), ": ", spec, " (seed=", faults.seed, ")");
  *out = std::make_unique<FaultyTransport>(std::move(inner), faults);
  return {};
}

}  // namespace weft
