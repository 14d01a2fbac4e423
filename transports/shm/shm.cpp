// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "base/log.h"
#include "base/open_files.h"
#include "base/text.h"
#include "transports/mapped/direct.h"
#include "transports/mapped/mapped_transport.h"
#include "transports/mapped/offer.h"
#include "transports/setup.h"
#include "transports/shm/branch.h"
#include "transports/shm/fd_exchange.h"
#include "transports/shm/heap.h"
#include "transports/shm/memory.h"
#include "transports/shm/shm.h"

namespace weft::shm {
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
  Status mapPeer(const PeerInfo&, std::optional<PeerHandles>&, mapped::MappedPeer*) const;
  std::unique_ptr<mapped::AttachPermit> keepPermit();
  void offerHeap();
  Status mapHeaps(const std::vector<std::optional<PeerHandles>>&);
  Status tryDirect() const;
  Status tryDirect(const PeerInfo&, const mapped::MappedPeer&) const;

  const TransportSetup& setup_;
  const Deadline deadline_ = Deadline::in(setup_.timeoutMs);
  PeerInfo info_;
  std::vector<PeerInfo> infos_;
  Descriptors mine_;
  std::shared_ptr<Mapping> window_;
  std::optional<mapped::Offer>
      offer_;  // to other ranks of this process, which need no second mapping
  std::unique_ptr<mapped::AttachPermit> permit_;  // for the trial; null: this rank wants none
  FdExchange exchange_;
  std::vector<mapped::MappedPeer> peers_;
  Status shared_;  // are the heaps of all ranks mapped here?
};

// What a rank can do once it is set up. The communicator can do what all ranks can.
struct Abilities {
  std::uint8_t direct = 0;
  std::uint8_t shares = 0;
};

// Pages for what all communicators use. What most of them come to use must be there, too, so that
// too small a limit is told at creation.
Status createWindow(const WindowLayout& layout, Fd* memory) {
  constexpr const char* kFix = "run fewer ranks a host or set a smaller WEFT_SEGMENT_KB";
  const std::size_t arrivals = kMaxLanes * layout.denseBytes();
  WEFT_TRY(checkAvailable(layout.arrivals() + arrivals + kMaxLanes * layout.arenaBytes, kFix));
  WEFT_TRY(createSparseMemory(layout.size(), memory));
  WEFT_TRY(allocatePages(*memory, 0, layout.arrivals() + layout.denseBytes(), kFix));
  for (std::uint32_t lane = 1; lane < kMaxLanes; ++lane)
    WEFT_TRY(allocatePages(*memory, layout.arrivals() + lane * layout.laneOfArrivals(),
                           layout.denseBytes(), kFix));
  return {};
}

Status mapMemory(const Fd& memory, const WindowLayout& layout, std::shared_ptr<Mapping>* window) {
  const std::size_t bytes = layout.size();
  *window = std::make_shared<Mapping>(mapSparse(memory, bytes, Pages::Small), bytes);
  if ((*window)->base() != nullptr) return {};
  return Status::error(Code::OutOfMemory, "cannot map ", bytes,
                       " bytes of shared memory: ", std::strerror(errno),
                       "; fix: ulimit -v unlimited, or fewer ranks");
}

// What needs no peer.
Status ShmSetup::prepare() {
  WEFT_TRY(randomToken(&info_.token));
  WEFT_TRY(randomToken(&info_.secret));
  WEFT_TRY(createWindow(setup_.layout, &mine_[kMemory]));
  WEFT_TRY(mapMemory(mine_[kMemory], setup_.layout, &window_));
  initControlPage(info_, window_->base());
  offer_.emplace(info_.token, window_);
  info_.base = reinterpret_cast<std::uint64_t>(window_->base());
  mine_[kProcess] = Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  mine_[kStat] = Fd(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  offerHeap();
  if (setup_.allowDirect) permit_ = std::make_unique<mapped::AttachPermit>();
  return exchange_.open(info_);
}

// Other processes copy from and to this one from now on. Where they do not, the permit for the
// trial ends with the set-up.
std::unique_ptr<mapped::AttachPermit> ShmSetup::keepPermit() {
  if (std::ranges::all_of(peers_, &mapped::MappedPeer::sameProcess) || !permit_->isNeeded())
    return nullptr;
  static std::atomic_flag said;
  if (!said.test_and_set())
    logInfo(
        "kernel.yama.ptrace_scope is 1: while it has communicators with other processes of this "
        "host, all processes of this user may attach to this one, for copies without staging "
        "(WEFT_CMA=off avoids it)");
  return std::move(permit_);
}

void ShmSetup::offerHeap() {
  const Heap* const heap = Heap::own();
  if (heap == nullptr) return;
  info_.heapBytes = heap->memory().size();
  info_.heapToken = heap->token();
  mine_[kHeap] = Fd(::fcntl(heap->descriptor().get(), F_DUPFD_CLOEXEC, 0));
}

Status ShmSetup::checkHost() const {
  WEFT_TRY(checkPeers("shm", infos_));
  const PeerInfo& first = infos_[0];
  for (const PeerInfo& info : infos_) {
    if (info.uid != first.uid)
      return Status::error(Code::InvalidUsage, "shm transport: ", nameOf(first), " and ",
                           nameOf(info), " run as different users (uid ", first.uid, " and ",
                           info.uid,
                           "), who may not share memory; fix: the same user for all ranks");
    if (info.netNamespace != first.netNamespace)
      return Status::error(Code::InvalidUsage, "shm transport: ", nameOf(first), " and ",
                           nameOf(info),
                           " are in different network namespaces, where UNIX sockets do not meet; "
                           "fix: one network namespace (docker --network host)");
  }
  return {};
}

// A socket and four descriptors for each peer of every rank of this process, and some for the heap,
// for files that are read meanwhile, and for those who only look whether we live.
Status ShmSetup::reserve(std::size_t ranksHere) const {
  const std::size_t each = 5 * (std::size_t{setup_.ranks} + 1) + setup_.ranks;
  return reserveOpenFiles(ranksHere * each + 16, 0, "the shm transport's peers");
}

// Other ranks of this process, and oneself, are found by their offers.
Status ShmSetup::mapPeer(const PeerInfo& info, std::optional<PeerHandles>& handles,
                         mapped::MappedPeer* peer) const {
  std::shared_ptr<Mapping> window = mapped::findOffer(info.token);
  if (!window) {
    Descriptors& theirs = handles->descriptors;
    const Fd memory = std::move(theirs[kMemory]);
    WEFT_TRY(checkMemory(memory, setup_.layout.size()));
    WEFT_TRY(mapMemory(memory, setup_.layout, &window));
    peer->process = std::make_shared<mapped::PeerProcess>(
        mapped::PeerProcess{handles->pid, std::move(theirs[kProcess]), std::move(theirs[kStat])});
  }
  peer->window = pagesOf(std::move(window));
  return checkControlPage(info, peer->window.get());
}

Status ShmSetup::join() {
  const auto here =
      std::ranges::count_if(infos_, [&](const PeerInfo& info) { return info.pid == info_.pid; });
  if (here > 1) WEFT_TRY(reserve(static_cast<std::size_t>(here)));
  std::vector<std::optional<PeerHandles>> handles;
  WEFT_TRY(exchange_.meet(infos_, mine_, deadline_, &handles));
  peers_.resize(infos_.size());
  for (std::size_t i = 0; i < infos_.size(); ++i)
    WEFT_TRY(mapPeer(infos_[i], handles[i], &peers_[i]));
  shared_ = mapHeaps(handles);
  chooseBarriers(infos_, window_->base());
  return {};
}

// One rank without a heap makes all the others' useless.
Status ShmSetup::mapHeaps(const std::vector<std::optional<PeerHandles>>& handles) {
  for (const PeerInfo& info : infos_)
    if (info.heapBytes == 0) return Status::error(Code::OutOfMemory, nameOf(info), " has no heap");
  for (std::size_t i = 0; i < infos_.size(); ++i) {
    mapped::MappedPeer& peer = peers_[i];
    peer.heap = Heap::own()->memory();
    if (peer.sameProcess()) continue;
    const std::size_t bytes = infos_[i].heapBytes;
    WEFT_TRY(viewHeap(infos_[i].heapToken, handles[i]->descriptors[kHeap], bytes, &peer.heapView));
    peer.heap = {peer.heapView->base(), bytes};
  }
  return {};
}

// Reads the token first: the pid may be another process's in this namespace, and is written to.
Status ShmSetup::tryDirect(const PeerInfo& info, const mapped::MappedPeer& peer) const {
  if (peer.sameProcess()) return {};
  if (peer.process->pid == 0 || !peer.process->death)
    return Status::error(Code::SystemError, "the pid of ", nameOf(info), " is not visible");
  const mapped::Process process{peer.process->pid, peer.process->death.get()};
  Token token{};
  WEFT_TRY(
      mapped::readMemory(process, info.base + offsetof(ControlPage, token), &token, sizeof(token)));
  if (token != info.token)
    return Status::error(Code::SystemError, nameOf(info), " is not pid ", peer.process->pid,
                         " here");
  const std::uint64_t sent = kWindowMagic;
  WEFT_TRY(
      mapped::writeMemory(process, info.base + offsetof(ControlPage, probe), &sent, sizeof(sent)));
  const auto& page = *reinterpret_cast<const ControlPage*>(peer.window.get());
  if (page.probe.load(std::memory_order_acquire) == sent) return {};
  return Status::error(Code::SystemError, "a trial write to ", nameOf(info), " got lost");
}

Status ShmSetup::tryDirect() const {
  for (std::size_t i = 0; i < infos_.size(); ++i) WEFT_TRY(tryDirect(infos_[i], peers_[i]));
  return {};
}

Status ShmSetup::run(std::unique_ptr<Transport>* out) {
  const Status roomy = reserve(1);  // first: describe() takes descriptors, too
  info_ = describe(setup_);
  const Status prepared = roomy.ok() ? prepare() : roomy;
  WEFT_TRY(gather(setup_, prepared, info_, &infos_));
  WEFT_TRY(checkHost());

  const Status joined = join();
  Status direct;
  if (joined.ok() && allAllowDirect(infos_)) direct = tryDirect();
  if (!direct.ok()) logInfo("shm transport: no direct writes: ", direct.text());

  if (!shared_.ok()) logInfo("shm transport: memory of weftMemAlloc is copied: ", shared_.text());

  const Abilities mine{allAllowDirect(infos_) && direct.ok(), shared_.ok()};
  std::vector<Abilities> all;
  WEFT_TRY(gather(setup_, joined, mine, &all));
  const bool everywhere = std::ranges::all_of(all, [](auto can) { return can.direct != 0; });
  if (!std::ranges::all_of(all, [](auto can) { return can.shares != 0; }))
    for (mapped::MappedPeer& peer : peers_) peer.heap = {}, peer.heapView.reset();
  std::unique_ptr<mapped::AttachPermit> permit = everywhere ? keepPermit() : nullptr;
  *out = std::make_unique<mapped::MappedTransport>(
      mapped::MappedParts{"shm", setup_.rank, setup_.layout, everywhere, std::move(peers_),
                          std::move(permit), branchShm});
  return {};
}

}  // namespace

Status makeShm(const TransportSetup& setup, std::unique_ptr<Transport>* out) {
  return ShmSetup(setup).run(out);
}

}  // namespace weft::shm
