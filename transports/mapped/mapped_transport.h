// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/fd.h"
#include "reduce/store_choice.h"
#include "transports/mapped/direct.h"
#include "transports/mapping.h"
#include "transports/transport.h"

namespace weft::mapped {

using namespace transport;

// Another process, as seen here. Communicators with ranks of it share what is open.
struct PeerProcess {
  pid_t pid = 0;  // 0 if it is not visible
  Fd death;       // its pidfd
  Fd stat;        // its /proc/self/stat
};

// Another process's heap (shm/heap.h), as it lies here.
class PeerHeap {
 public:
  virtual ~PeerHeap() = default;
  // Mapped when somebody first asks for it; empty if it cannot be. Any thread.
  virtual std::span<std::byte> memory() = 0;
};

// One rank as another one reaches it through mapped memory.
struct MappedPeer {
  std::shared_ptr<std::byte> window;           // and what keeps it there
  ControlPage* control = nullptr;              // null: where the window begins
  std::shared_ptr<const PeerProcess> process;  // null: an address of the peer's is ours too
  bool severed = false;
  bool sameProcess() const { return process == nullptr; }
  // Its process's heap: this one's, or another's; neither unless all ranks have each other's.
  std::span<std::byte> ownHeap;
  std::shared_ptr<PeerHeap> itsHeap;
  std::span<std::byte> heap() const { return itsHeap ? itsHeap->memory() : ownHeap; }
};

struct MappedParts {
  // As Transport::branch(): of a transport that is made of these parts.
  using Branch = Status (*)(const MappedParts& parent, const TransportSetup& setup,
                            std::span<const std::uint32_t> members,
                            std::unique_ptr<Transport>* out);

  const char* name = "";
  std::uint32_t rank = 0;
  WindowLayout layout;
  bool direct = false;
  std::vector<MappedPeer> peers;                   // one a rank, own included
  std::shared_ptr<AttachPermit> permit = nullptr;  // of peers that copy by address
  Branch branch = nullptr;
};

// The data path of ranks that share memory: a put is a copy and a release store, complete on
// return. How the windows came to be mapped is the business of local/ and shm/.
class MappedTransport final : public Transport {
 public:
  explicit MappedTransport(MappedParts parts);

  const char* name() const override { return parts_.name; }
  Caps caps() const override {
    const bool shares = sharesAll_ || !parts_.peers[parts_.rank].ownHeap.empty();
    return {.direct = parts_.direct, .shares = shares, .sharesAll = sharesAll_, .maps = true};
  }
  const WindowLayout& layout() const override { return parts_.layout; }
  WindowView own() const override { return view(parts_.rank); }
  std::shared_ptr<std::byte> window() const override { return parts_.peers[parts_.rank].window; }
  WindowView view(std::uint32_t peer) const override {
    return {base(peer), parts_.layout, control(peer)};
  }
  ControlPage* control(std::uint32_t peer) const override { return parts_.peers[peer].control; }
  int deathFd(std::uint32_t peer) const override { return fdOf(peer, &PeerProcess::death); }
  int statFd(std::uint32_t peer) const override { return fdOf(peer, &PeerProcess::stat); }

  std::uint64_t share(const void* memory, std::size_t bytes) const override;
  std::byte* reach(std::uint32_t peer, std::uint64_t reference) const override;

  bool getFrom(std::uint32_t peer, std::uint64_t from, void* to, std::size_t bytes) override;
  bool putTo(std::uint32_t peer, std::uint64_t to, const void* from, std::size_t bytes) override;

  Status branch(const TransportSetup& setup, std::span<const std::uint32_t> members,
                std::unique_ptr<Transport>* out) override {
    return parts_.branch == nullptr ? Status() : parts_.branch(parts_, setup, members, out);
  }
  Status commit(std::uint32_t rank, std::size_t from, std::size_t bytes) override;

  PutResult put(const Put&) override;
  void expectPut(std::uint32_t peer, std::uint64_t arrival, std::uint64_t target,
                 std::size_t bytes) override;
  int poll(Event*, int) override { return 0; }
  std::size_t outstanding() const override { return 0; }
  void wake(std::uint32_t peer) override;
  void sever(std::uint32_t peer) override { parts_.peers[peer].severed = true; }
  const Status& lastError() const override { return lastError_; }

 private:
  std::byte* base(std::uint32_t peer) const { return parts_.peers[peer].window.get(); }
  int fdOf(std::uint32_t peer, Fd PeerProcess::*which) const {
    const MappedPeer& p = parts_.peers[peer];
    return p.sameProcess() ? -1 : ((*p.process).*which).get();
  }
  bool succeeds(std::uint32_t peer, const char* what, const Status& status);

  MappedParts parts_;
  std::vector<reduce::StoreChoice> stores_;  // into a peer's window, by rank
  bool sharesAll_ = false;
  std::mutex failing_;  // copies, by several threads
  Status lastError_;
};

}  // namespace weft::mapped
