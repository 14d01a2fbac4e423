// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/status.h"
#include "transports/setup.h"

namespace weft::shm {

using namespace transport;

// What each rank gives to each other one, as far as it has them; kProcess is its own pidfd.
enum Descriptor : std::size_t { kMemory, kProcess, kStat, kHeap, kDescriptors };
using Descriptors = std::array<Fd, kDescriptors>;

struct PeerHandles {
  pid_t pid = 0;  // as seen from here: from the socket's credentials, not from what the peer says
  Descriptors descriptors;
};

// Ranks of one host hand each other descriptors over abstract UNIX sockets: each listens, connects
// to all lower ranks and is connected to by all higher ones. The name of a socket is its rank's
// token; whoever connects must have our uid and know our secret before it is given anything. One
// loop of non-blocking steps, no thread; the sockets are gone when meet() returns.
class FdExchange {
 public:
  // Listens; call before the peer infos are exchanged, so that nobody connects too soon.
  Status open(const PeerInfo& mine);
  // `handles` gets one entry a rank, empty for oneself.
  Status meet(const std::vector<PeerInfo>& infos, const Descriptors& mine, Deadline deadline,
              std::vector<std::optional<PeerHandles>>* handles);

 private:
  struct Link {
    Fd socket;
    std::uint32_t peer = 0;
    bool known = false;  // we know the peer: we called it, or it has said its secret
    bool told = false;   // our descriptors are on their way
    bool heard = false;  // its descriptors have come
    pid_t pid = 0;
    bool finished() const { return !socket || (told && heard); }
  };

  Status call(std::uint32_t peer, bool* busy);
  Status acceptAll();
  Status serve(Link&, bool* busy);
  Status tell(Link&, bool* busy);
  Status hear(Link&);
  Status ended(std::uint32_t peer, const std::string& how) const;
  Status hungUp(std::uint32_t peer) const;
  void admit(Link&, std::uint32_t peer, Descriptors);
  Status wait(bool busy, Deadline);
  Status checkMissing();
  bool complete() const;
  Status late() const;

  PeerInfo info_;
  Fd listener_;
  const std::vector<PeerInfo>* infos_ = nullptr;
  const Descriptors* mine_ = nullptr;
  std::vector<std::optional<PeerHandles>>* handles_ = nullptr;
  std::vector<Link> links_;
  std::uint32_t nextCall_ = 0;  // lower ranks are called in order
  std::uint32_t missed_ = 0;    // the higher rank that did not listen at the last check
};

}  // namespace weft::shm
