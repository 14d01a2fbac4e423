// SPDX-License-Identifier: Apache-2.0
#include "tune/transfers.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/copy.h"
#include "base/threads.h"
#include "reduce/reduce.h"
#include "reduce/store_choice.h"
#include "tune/pair.h"
#include "tune/patience.h"
#include "tune/stopwatch.h"

namespace weft::tune {
namespace {

enum Kind : std::size_t { kCopy, kPut, kTake, kStream, kCmaPut, kCmaTake, kKinds };

constexpr std::size_t kWindow = 512 << 10;  // what is copied and timed at once
constexpr auto kBufferBytes = static_cast<std::size_t>(kFootprints.back()) / 2;
constexpr std::size_t kFieldBytes = 4 * kBufferBytes;

// How a footprint is gone through: window by window, each with the next kind of copy, so that what
// disturbs the machine disturbs all kinds; and over again, except for the largest, until there are
// several tries of each kind. Calls repeat: what a copy costs depends on where the one before it has
// left the lines, so a kind comes twice in a row and the second counts.
struct Walk {
  explicit Walk(double footprint)
      : buffer(static_cast<std::size_t>(footprint) / 2),
        window(std::min(buffer, kWindow)),
        windows(buffer / window),
        turns(windows >= kTries * kKinds ? 1 : 2 * ((kTries * kKinds + windows - 1) / windows)) {}
  bool counts(std::size_t turn) const { return turns == 1 || turn % 2 == 1; }
  // Which part of the tries is quicker than what a machine takes: an idle one what the quickest quarter
  // takes. Of the largest footprint some windows are in the caches by luck, which calls of that size
  // seldom have.
  std::size_t part() const { return turns == 1 ? 2 : 4; }
  static Kind kindOf(std::size_t turn, std::size_t k) {
    return static_cast<Kind>((turn / 2 + k) % kKinds);
  }
  static constexpr std::size_t kTries = 3;

  std::size_t buffer, window, windows, turns;
};

// Times of one kind at one footprint.
class Tries {
 public:
  void add(double ns) {
    if (count_ < ns_.size()) ns_[count_++] = ns;
  }
  void add(const Tries& others) {
    for (std::size_t i = 0; i < others.count_; ++i) add(others.ns_[i]);
  }
  // What all but the quickest part take at least, of so many parts. 0 without any.
  double ns(std::size_t part = 4) const { return count_ > 0 ? sorted()[(count_ - 1) / part] : 0; }
  bool steady() const { return count_ == 0 || ns() <= 1.5 * sorted()[0]; }

 private:
  std::array<double, 32> sorted() const {
    std::array<double, 32> ns = ns_;
    std::sort(ns.begin(), ns.begin() + count_);
    return ns;
  }

  std::array<double, 32> ns_{};
  std::size_t count_ = 0;
};

// What one side has found at one footprint: how long copies took, and the reading of what they left.
struct Notes {
  std::array<Tries, kKinds> copies, reads;

  void add(const Notes& others) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      copies[kind].add(others.copies[kind]);
      reads[kind].add(others.reads[kind]);
    }
  }
  bool empty() const { return copies[kCopy].ns() == 0; }
  bool steady() const {
    return std::ranges::all_of(copies, [](const Tries& tries) { return tries.steady(); });
  }
};
using AllNotes = std::array<Notes, kFootprints.size()>;

template <class Body>
double timeOf(Body&& body) {
  const double start = nowNs();
  body();
  return nowNs() - start;
}

constexpr int kNowhere = 0xff;  // a byte that nobody writes

// Reads all of it, at the rate of the C library's own loops.
bool readAll(const std::byte* from, std::size_t bytes) {
  return std::memchr(from, kNowhere, bytes) == nullptr;
}

// Within this process, which costs the kernel the same work as between two. As transports do it:
// they look first whether the process still lives.
bool cmaCopy(bool put, std::byte* to, const std::byte* from, std::size_t bytes) {
  const iovec source{const_cast<std::byte*>(from), bytes}, target{to, bytes};
  ::poll(nullptr, 0, 0);
  const ssize_t done = put ? ::process_vm_writev(::getpid(), &source, 1, &target, 1, 0)
                           : ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0);
  return done == static_cast<ssize_t>(bytes);
}

// Of a short message; 0 where it is not permitted.
double cmaCallNs() {
  std::byte from[64] = {}, to[64];
  if (!cmaCopy(true, to, from, sizeof(to))) return 0;
  Tries tries;
  for (int i = 0; i < 16; ++i) tries.add(timeOf([&] { cmaCopy(true, to, from, sizeof(to)); }));
  return tries.ns();
}

// At one footprint.
struct Meeting {
  Patience patience;
  std::array<std::atomic<std::uint32_t>, 2> steps{};
};
using Meetings = std::array<Meeting, kFootprints.size()>;

// One thread's part. Alone it has itself for a peer.
class Side {
 public:
  Side(const Transfers::Buffers& mine, const Transfers::Buffers& theirs, bool cma)
      : mine_(mine), theirs_(theirs), alone_(mine.in == theirs.in), cma_(cma) {}

  void touch() const { std::memset(mine_.in, 1, 2 * kBufferBytes); }

  void walk(std::size_t number, std::size_t side, Meeting* meeting, Notes* notes) {
    meeting_ = meeting;
    step_ = &meeting->steps[side];
    otherStep_ = &meeting->steps[alone_ ? side : 1 - side];
    if (!alone_) meeting->patience.meet();
    const Walk walk(kFootprints[number]);
    if (walk.turns == 1) copyByKernel(walk);
    for (std::size_t turn = 0; turn < walk.turns && !meeting_->patience.isOver(); ++turn) {
      awaitOther();
      copyAll(walk, turn, notes);
      awaitOther();
      useAll(walk, turn, notes);
    }
  }

 private:
  // The kernel's first copy to or from a page may take it microseconds (7, in a virtual machine whose
  // hypervisor keeps the page tables), and calls repeat.
  void copyByKernel(const Walk& walk) {
    for (std::size_t k = 0; k < walk.windows; ++k)
      if (const Kind kind = Walk::kindOf(0, k); isByKernel(kind) && isPossible(kind))
        copy(kind, k * walk.window, walk.window);
  }

  void copyAll(const Walk& walk, std::size_t turn, Notes* notes) {
    for (std::size_t k = 0; k < walk.windows; ++k) {
      const Kind kind = Walk::kindOf(turn, k);
      if (!isPossible(kind)) continue;
      const double ns = timeOf([&] { copy(kind, k * walk.window, walk.window); });
      if (walk.counts(turn)) notes->copies[kind].add(ns);
    }
  }

  // As the application does: it reads the results, and writes what the next call copies.
  void useAll(const Walk& walk, std::size_t turn, Notes* notes) {
    for (std::size_t k = 0; k < walk.windows; ++k) {
      const std::size_t at = k * walk.window;
      const double ns = timeOf([&] { read_ = readAll(mine_.out + at, walk.window); });
      if (walk.counts(turn)) notes->reads[Walk::kindOf(turn, k)].add(ns);
      std::memset(mine_.in + at, static_cast<int>(turn), walk.window);
    }
  }

  static bool isByKernel(Kind kind) { return kind == kCmaPut || kind == kCmaTake; }

  bool isPossible(Kind kind) const {
    if (kind == kPut || kind == kTake) return !alone_;
    return cma_ || !isByKernel(kind);
  }

  void copy(Kind kind, std::size_t at, std::size_t bytes) {
    const bool takes = kind == kTake || kind == kCmaTake;
    const std::byte* const from = (takes ? theirs_ : mine_).in + at;
    std::byte* const to = (takes || kind == kCopy ? mine_ : theirs_).out + at;
    void* const targets[] = {to};
    if (kind == kStream)
      reduce::copyStream(targets, 1, from, bytes);
    else if (isByKernel(kind))
      (void)cmaCopy(kind == kCmaPut, to, from, bytes);
    else
      copyBytes(to, from, bytes);
  }

  void awaitOther() {
    const std::uint32_t mine = step_->fetch_add(1, std::memory_order_acq_rel) + 1;
    std::uint32_t polls = 0;
    while (static_cast<std::int32_t>(otherStep_->load(std::memory_order_acquire) - mine) < 0 &&
           meeting_->patience.goesOn(&polls))
      relax();
  }

  const Transfers::Buffers mine_, theirs_;
  const bool alone_, cma_;
  Meeting* meeting_ = nullptr;
  std::atomic<std::uint32_t>*step_ = nullptr, *otherStep_ = nullptr;
  volatile bool read_ = false;  // so that the reading is not optimised away
};

// The largest footprint first, just after all was touched.
void play(Side side, std::size_t number, bool touch, Meetings* meetings, AllNotes* notes) {
  if (touch) side.touch();
  for (std::size_t i = kFootprints.size(); i-- > 0;)
    side.walk(i, number, &(*meetings)[i], &(*notes)[i]);
}

double rateOf(std::size_t bytes, double ns) { return ns > 0 ? static_cast<double>(bytes) / ns : 0; }

// The rates at footprint number i.
void fillIn(std::size_t i, const Notes& notes, Machine* m) {
  const Walk walk(kFootprints[i]);
  const std::size_t bytes = walk.window;
  const auto copyNs = [&](Kind kind) { return notes.copies[kind].ns(walk.part()); };
  const auto readNs = [&](Kind kind) { return notes.reads[kind].ns(walk.part()); };
  const auto cmaNs = [&](Kind kind) {
    return copyNs(kind) > 0 ? std::max(1.0, copyNs(kind) - m->cmaCallNs) : 0;
  };
  const double usual = readNs(copyNs(kPut) > 0 ? kPut : kCopy);
  m->load.at[i] = rateOf(bytes, readNs(kCopy));
  m->copy.at[i] = rateOf(bytes, copyNs(kCopy));
  m->take.at[i] = rateOf(bytes, copyNs(kTake));
  m->stream.at[i] = rateOf(bytes, copyNs(kStream) + std::max(0.0, readNs(kStream) - usual));
  // As calls store that have made their choice.
  const bool past = copyNs(kPut) > reduce::StorePreference::kMargin * copyNs(kStream);
  m->put.at[i] = past ? m->stream.at[i] : rateOf(bytes, copyNs(kPut));
  m->cmaPut.at[i] = rateOf(bytes, cmaNs(kCmaPut));
  m->cmaTake.at[i] = rateOf(bytes, cmaNs(kCmaTake));
}

}  // namespace

Transfers::Transfers() {
  void* const field = mmap(nullptr, kFieldBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (field == MAP_FAILED) return;
  base_ = static_cast<std::byte*>(field);
  for (std::size_t side = 0; side < buffers_.size(); ++side) {
    std::byte* const in = base_ + 2 * side * kBufferBytes;
    buffers_[side] = {in, in + kBufferBytes};
  }
}

Transfers::~Transfers() {
  if (base_ != nullptr) munmap(base_, kFieldBytes);
}

Transfers::Result Transfers::measure(const TwoCores& cores, Machine* machine) {
  Result result;
  if (base_ == nullptr) return result;
  const SignalsBlocked blocked;
  machine->cmaCallNs = cmaCallNs();
  const bool cma = machine->cmaCallNs > 0;
  std::array<AllNotes, 2> notes;
  std::array<long, 2> lost{};
  Meetings meetings, alone;
  const Status played = onThreads(cores.away < 0 ? 0 : 2, [&](std::size_t side) -> Status {
    if (!cores.place(side)) meetings.back().patience.end();
    const long before = evictions();
    play({buffers_[side], buffers_[1 - side], cma}, side, !touched_, &meetings, &notes[side]);
    lost[side] = evictions() - before;
    return {};
  });
  result.complete = played.ok() && std::ranges::none_of(meetings, [](const Meeting& meeting) {
                      return meeting.patience.isOver();
                    });
  if (notes[0].back().empty())  // one core, or a very busy machine
    play({buffers_[0], buffers_[0], cma}, 0, !touched_, &alone, &notes[0]);
  touched_ = true;
  result.steady = true;
  for (std::size_t i = 0; i < kFootprints.size(); ++i) {
    notes[0][i].add(notes[1][i]);
    fillIn(i, notes[0][i], machine);
    result.steady = result.steady && notes[0][i].steady();
  }
  result.evictions = lost[0] + lost[1];
  return result;
}

}  // namespace weft::tune
