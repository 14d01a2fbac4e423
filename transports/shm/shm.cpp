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
#include "transports/setup.h"
#include "transports/shm/branch.h"
#include "transports/shm/fd_exchange.h"
#include "transports/shm/heap.h"
#include "transports/shm/heap_views.h"
#include "transports/shm/memory.h"
#include "transports/shm/peer_processes.h"
#include "transports/shm/shm.h"
#include "transports/shm/trial.h"
#include "transports/shm/windows.h"

namespace weft::shm {
namespace {

// One rank's set-up, step by step.
class ShmSetup {
 public:
  explicit ShmSetup(const TransportSetup& setup) : setup_(setup) {}
  Status run(std::unique_ptr<Transport>* out);

 private:
  Status prepare();
  Status checkHost() const;
  Status join();
  Status reserve(std::size_t ranksHere) const;
  Status makeWindows();
  Status openWindow(const Handles&);
  mapped::MappedPeer peerOf(const PeerInfo&, std::optional<Descriptors>&) const;
  std::unique_ptr<mapped::AttachPermit> keepPermit();
  void offerHeap();
  Status viewHeaps(Handles&);
  Status tryOthers() const;

  const TransportSetup& setup_;
  const Deadline deadline_ = Deadline::in(setup_.timeoutMs);
  PeerInfo info_;
  std::vector<PeerInfo> infos_;
  Descriptors mine_;
  std::shared_ptr<Mapping> windows_;
  std::unique_ptr<mapped::AttachPermit> permit_;  // for the trial; null: this rank wants none
  FdExchange exchange_;
  std::vector<mapped::MappedPeer> peers_;
  Status shared_;  // do the heaps of all ranks have room here?
};

// What a rank can do once it is set up. The communicator can do what all ranks can.
struct Abilities {
  std::uint8_t direct = 0;
  std::uint8_t shares = 0;
};

// What needs no peer.
Status ShmSetup::prepare() {
  WEFT_TRY(randomToken(&info_.token));
  WEFT_TRY(randomToken(&info_.secret));
  Probe* probe = nullptr;
  WEFT_TRY(ownProbe(&probe));
  info_.process = probe->process;
  info_.probe = reinterpret_cast<std::uint64_t>(probe);
  info_.namespaces = namespaces();
  WEFT_TRY(makeWindows());
  mine_[kProcess] = Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  mine_[kStat] = Fd(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  offerHeap();
  if (setup_.allowDirect) permit_ = std::make_unique<mapped::AttachPermit>();
  return exchange_.open(info_);
}

// What most communicators come to use must be there, so that too small a limit is told at creation.
Status ShmSetup::makeWindows() {
  const WindowLayout& layout = setup_.layout;
  WEFT_TRY(checkAvailable(firstBytes(layout) + kMaxLanes * layout.arenaBytes, kFewerRanks));
  if (info_.rank != 0) return {};
  WEFT_TRY(createWindows(layout, &mine_[kMemory]));
  return openWindow({});
}

// One's own in the memory that the first rank has made.
Status ShmSetup::openWindow(const Handles& handles) {
  const Fd& memory = info_.rank == 0 ? mine_[kMemory] : (*handles[0])[kMemory];
  const Token& name = info_.rank == 0 ? info_.token : infos_[0].token;
  WEFT_TRY(viewWindows(name, memory, setup_.layout, &windows_));
  if (info_.rank != 0) WEFT_TRY(checkControlPage(infos_[0], windows_->base()));
  placeWindow(*windows_, setup_.layout, info_.rank, setup_.node);
  WEFT_TRY(fillWindow(memory, windows_->base(), setup_.layout, info_.rank));
  initControlPage(info_, controlOf(*windows_, setup_.layout, info_.rank));
  return {};
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

// And some for files that are read meanwhile.
Status ShmSetup::reserve(std::size_t ranksHere) const {
  const std::size_t most = ranksHere * mostDescriptors(setup_.ranks) + 16;
  return reserveOpenFiles(most, 0, "the shm transport's peers");
}

// Ranks of this process need nothing but their windows.
mapped::MappedPeer ShmSetup::peerOf(const PeerInfo& info,
                                    std::optional<Descriptors>& theirs) const {
  mapped::MappedPeer peer;
  peer.window = windowOf(windows_, setup_.layout, info.rank);
  peer.control = controlOf(*windows_, setup_.layout, info.rank);
  if (info.process == info_.process) return peer;
  const pid_t pid = pidHere(info, info_, (*theirs)[kProcess]);
  peer.process = knownProcess(info.process,
                              {pid, std::move((*theirs)[kProcess]), std::move((*theirs)[kStat])});
  return peer;
}

Status ShmSetup::join() {
  const auto here = std::ranges::count(infos_, info_.process, &PeerInfo::process);
  if (here > 1) WEFT_TRY(reserve(static_cast<std::size_t>(here)));
  Handles handles;
  WEFT_TRY(exchange_.meet(infos_, mine_, deadline_, &handles));
  if (info_.rank != 0) WEFT_TRY(openWindow(handles));
  for (std::size_t i = 0; i < infos_.size(); ++i) peers_.push_back(peerOf(infos_[i], handles[i]));
  shared_ = viewHeaps(handles);
  chooseBarriers(infos_, peers_[info_.rank].control);
  return {};
}

// One rank without a heap makes all the others' useless.
Status ShmSetup::viewHeaps(Handles& handles) {
  for (const PeerInfo& info : infos_)
    if (info.heapBytes == 0) return Status::error(Code::OutOfMemory, nameOf(info), " has no heap");
  std::vector<OthersHeap> heaps;
  for (std::size_t i = 0; i < infos_.size(); ++i)
    if (!peers_[i].sameProcess())
      heaps.push_back({infos_[i].process, std::move((*handles[i])[kHeap]), infos_[i].heapBytes});
  std::vector<std::shared_ptr<mapped::PeerHeap>> views;
  WEFT_TRY(shm::viewHeaps(std::move(heaps), &views));
  auto view = views.begin();
  for (mapped::MappedPeer& peer : peers_) {
    peer.ownHeap = Heap::own()->memory();
    if (!peer.sameProcess()) peer.itsHeap = std::move(*view++);
  }
  return {};
}

Status ShmSetup::tryOthers() const {
  for (const std::uint32_t peer : triedBy(info_.rank, infos_))
    if (!peers_[peer].sameProcess()) WEFT_TRY(tryDirect(infos_[peer], *peers_[peer].process));
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
  if (joined.ok() && allAllowDirect(infos_)) direct = tryOthers();
  if (!direct.ok()) logInfo("shm transport: no direct writes: ", direct.text());

  if (!shared_.ok()) logInfo("shm transport: memory of weftMemAlloc is copied: ", shared_.text());

  const Abilities mine{allAllowDirect(infos_) && direct.ok(), shared_.ok()};
  std::vector<Abilities> all;
  WEFT_TRY(gather(setup_, joined, mine, &all));
  const bool everywhere = std::ranges::all_of(all, [](auto can) { return can.direct != 0; });
  if (!std::ranges::all_of(all, [](auto can) { return can.shares != 0; }))
    for (mapped::MappedPeer& peer : peers_) peer.ownHeap = {}, peer.itsHeap.reset();
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
