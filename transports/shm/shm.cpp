// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/log.h"
#include "base/open_files.h"
#include "base/text.h"
#include "transports/mapped/direct.h"
#include "transports/mapped/mapped_transport.h"
#include "transports/mapped/offer.h"
#include "transports/mapped/setup.h"
#include "transports/shm/heap.h"
#include "transports/shm/memory.h"
#include "transports/shm/rendezvous.h"

// Ranks as processes of one host (or as threads in them): each makes its segment in a memfd and
// maps those of all others.
namespace weft {
namespace {

// One rank's set-up, step by step.
class ShmSetup {
 public:
  explicit ShmSetup(const TransportSetup& setup) : setup_(setup) {}
  Status run(std::unique_ptr<Transport>* out);

 private:
  Status prepare();
  Status join();
  Status checkHost() const;
  Status reserve(std::size_t ranksHere) const;
  Status mapPeer(const Card&, Guest*, MappedPeer*) const;
  void offerHeap();
  Status mapHeap(const Card&, const Fd& memory, MappedPeer*) const;
  Status mapHeaps(const std::vector<std::optional<Guest>>&);
  Status tryDirect() const;
  Status tryDirect(const Card&, const MappedPeer&) const;
  bool directWanted() const;

  const TransportSetup& setup_;
  const Deadline deadline_ = Deadline::in(setup_.timeoutMs);
  Card card_;
  std::vector<Card> cards_;
  Descriptors mine_;
  std::shared_ptr<Mapping> segment_;
  std::optional<Offer> offer_;  // to other ranks of this process, which need no second mapping
  Rendezvous rendezvous_;
  std::vector<MappedPeer> peers_;
  Status shared_;  // are the heaps of all ranks mapped here?
};

// What a rank can do when it is set up. The communicator can what all ranks can.
struct Abilities {
  std::uint8_t direct = 0;
  std::uint8_t shares = 0;
};

Status mapMemory(const Fd& memory, std::size_t bytes, std::shared_ptr<Mapping>* segment) {
  *segment = std::make_shared<Mapping>(bytes, memory.get());
  if ((*segment)->base() != nullptr) return {};
  return Status::error(Code::OutOfMemory,
                       text("cannot map ", bytes, " bytes of shared memory: ", std::strerror(errno),
                            "; fix: ulimit -v unlimited, or fewer ranks"));
}

// Everything of our own; nothing of it needs a peer.
Status ShmSetup::prepare() {
  WEFT_TRY(randomToken(&card_.token));
  WEFT_TRY(randomToken(&card_.secret));
  WEFT_TRY(createMemory(setup_.layout.size(), &mine_.memory));
  WEFT_TRY(mapMemory(mine_.memory, setup_.layout.size(), &segment_));
  initControlPage(card_, segment_->base());
  offer_.emplace(card_.token, segment_);
  card_.base = reinterpret_cast<std::uint64_t>(segment_->base());
  mine_.process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  mine_.stat = Fd(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  offerHeap();
  if (setup_.allowDirect && permitAttach()) {
    static std::once_flag said;
    std::call_once(said, [] {
      logInfo(
          "kernel.yama.ptrace_scope is 1: processes of this user may now attach to this one,"
          " for copies without staging (WEFT_CMA=off avoids it)");
    });
  }
  return rendezvous_.open(card_);
}

void ShmSetup::offerHeap() {
  const Heap* const heap = Heap::own();
  if (heap == nullptr) return;
  card_.heapBytes = heap->memory().size();
  card_.heapToken = heap->token();
  mine_.heap = Fd(::fcntl(heap->descriptor().get(), F_DUPFD_CLOEXEC, 0));
}

Status ShmSetup::checkHost() const {
  WEFT_TRY(checkCards("shm", cards_));
  const Card& first = cards_[0];
  for (const Card& card : cards_) {
    if (card.uid != first.uid)
      return Status::error(Code::InvalidUsage,
                           text("shm transport: ", nameOf(first), " and ", nameOf(card),
                                " run as different users (uid ", first.uid, " and ", card.uid,
                                "), who may not share memory; fix: the same user for all ranks"));
    if (card.netNamespace != first.netNamespace)
      return Status::error(Code::InvalidUsage,
                           text("shm transport: ", nameOf(first), " and ", nameOf(card),
                                " are in different network namespaces, where UNIX sockets do not"
                                " meet; fix: one network namespace (docker --network host)"));
  }
  return {};
}

// While the peers are met: a socket and four descriptors each, for every rank of this process, and
// some for the heap, for files that are read meanwhile, and for those who only look whether we
// live.
Status ShmSetup::reserve(std::size_t ranksHere) const {
  const std::size_t each = 5 * (std::size_t{setup_.ranks} + 1) + setup_.ranks;
  return reserveOpenFiles(ranksHere * each + 16, 0, "the shm transport's peers");
}

Status ShmSetup::mapPeer(const Card& card, Guest* guest, MappedPeer* peer) const {
  WEFT_TRY(checkMemory(guest->descriptors.memory, setup_.layout.size()));
  peer->segment = findOffer(card.token);
  peer->sameProcess = peer->segment != nullptr;
  if (!peer->sameProcess)
    WEFT_TRY(mapMemory(guest->descriptors.memory, setup_.layout.size(), &peer->segment));
  WEFT_TRY(checkControlPage(card, peer->segment->base()));
  guest->descriptors.memory.reset();
  if (peer->sameProcess) return {};
  peer->pid = guest->pid;
  peer->death = std::move(guest->descriptors.process);
  peer->stat = std::move(guest->descriptors.stat);
  return {};
}

Status ShmSetup::join() {
  const auto here = std::count_if(cards_.begin(), cards_.end(),
                                  [&](const Card& card) { return card.pid == card_.pid; });
  if (here > 1) WEFT_TRY(reserve(static_cast<std::size_t>(here)));
  std::vector<std::optional<Guest>> guests;
  WEFT_TRY(rendezvous_.meet(cards_, mine_, deadline_, &guests));
  peers_.resize(cards_.size());
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    if (!guests[i]) {
      peers_[i].segment = segment_;
      peers_[i].sameProcess = true;
    } else {
      WEFT_TRY(mapPeer(cards_[i], &*guests[i], &peers_[i]));
    }
  }
  shared_ = mapHeaps(guests);
  chooseBarriers(cards_, reinterpret_cast<ControlPage&>(*segment_->base()));
  return {};
}

Status ShmSetup::mapHeap(const Card& card, const Fd& memory, MappedPeer* peer) const {
  if (peer->sameProcess) {
    peer->heap = Heap::own()->memory();
    return {};
  }
  WEFT_TRY(viewHeap(card.heapToken, memory, card.heapBytes, &peer->heapView));
  peer->heap = {peer->heapView->base(), card.heapBytes};
  return {};
}

// One rank without a heap makes all the others' useless.
Status ShmSetup::mapHeaps(const std::vector<std::optional<Guest>>& guests) {
  for (const Card& card : cards_)
    if (card.heapBytes == 0)
      return Status::error(Code::OutOfMemory, text(nameOf(card), " has no heap"));
  for (std::size_t i = 0; i < cards_.size(); ++i)
    WEFT_TRY(mapHeap(cards_[i], guests[i] ? guests[i]->descriptors.heap : mine_.heap, &peers_[i]));
  return {};
}

bool ShmSetup::directWanted() const {
  return std::all_of(cards_.begin(), cards_.end(),
                     [](auto& card) { return card.allowDirect != 0; });
}

// Reads the token first, so that nothing is written to a process that is not the peer (a pid of
// another pid namespace would be).
Status ShmSetup::tryDirect(const Card& card, const MappedPeer& peer) const {
  if (peer.sameProcess) return {};
  if (peer.pid == 0 || !peer.death)
    return Status::error(Code::SystemError, text("the pid of ", nameOf(card), " is not visible"));
  const Process process{peer.pid, peer.death.get()};
  Token token{};
  WEFT_TRY(readMemory(process, card.base + offsetof(ControlPage, token), &token, sizeof(token)));
  if (token != card.token)
    return Status::error(Code::SystemError, text(nameOf(card), " is not pid ", peer.pid, " here"));
  const std::uint64_t sent = kSegmentMagic;
  WEFT_TRY(writeMemory(process, card.base + offsetof(ControlPage, probe), &sent, sizeof(sent)));
  const auto& page = *reinterpret_cast<const ControlPage*>(peer.segment->base());
  if (page.probe.load(std::memory_order_acquire) == sent) return {};
  return Status::error(Code::SystemError, text("a trial write to ", nameOf(card), " got lost"));
}

Status ShmSetup::tryDirect() const {
  for (std::size_t i = 0; i < cards_.size(); ++i) WEFT_TRY(tryDirect(cards_[i], peers_[i]));
  return {};
}

Status ShmSetup::run(std::unique_ptr<Transport>* out) {
  const Status roomy = reserve(1);  // first: to describe oneself takes descriptors, too
  card_ = describe(setup_);
  const Status prepared = roomy.ok() ? prepare() : roomy;
  WEFT_TRY(gather(setup_, prepared, card_, &cards_));
  WEFT_TRY(checkHost());

  const Status joined = join();
  Status direct;
  if (joined.ok() && directWanted()) direct = tryDirect();
  if (!direct.ok()) logInfo("shm transport: no direct writes: ", direct.text());

  if (!shared_.ok()) logInfo("shm transport: memory of weftMemAlloc is copied: ", shared_.text());

  const Abilities mine{directWanted() && direct.ok(), shared_.ok()};
  std::vector<Abilities> all;
  WEFT_TRY(gather(setup_, joined, mine, &all));
  const bool everywhere = std::ranges::all_of(all, [](auto can) { return can.direct != 0; });
  if (!std::ranges::all_of(all, [](auto can) { return can.shares != 0; }))
    for (MappedPeer& peer : peers_) peer.heap = {}, peer.heapView.reset();
  *out = std::make_unique<MappedTransport>(
      MappedParts{"shm", setup_.rank, setup_.layout, everywhere, std::move(peers_)});
  return {};
}

}  // namespace

Status makeShm(const TransportSetup& setup, std::unique_ptr<Transport>* out) {
  return ShmSetup(setup).run(out);
}

}  // namespace weft
