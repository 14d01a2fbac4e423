// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "transports/mapped/handle.h"
#include "transports/mapped/setup.h"

namespace weft {

// What each rank gives to each other one.
struct Descriptors {
  Fd memory;   // its segment
  Fd process;  // its own pidfd, if this kernel has them
  Fd stat;     // its /proc/self/stat, if /proc is there
  Fd heap;     // its process's heap, if it has one
};

struct Guest {
  pid_t pid = 0;  // as seen from here: from the socket's credentials, not from what the peer says
  Descriptors descriptors;
};

// Ranks of one host hand each other descriptors over abstract UNIX sockets: each listens, connects
// to all lower ranks and is connected to by all higher ones. The name of a socket is its rank's
// token; whoever connects must have our uid and know our secret before it is given anything. One
// loop of non-blocking steps, no thread; the sockets are gone when meet() returns.
class Rendezvous {
 public:
  // Listens; call before the cards are exchanged, so that nobody connects too soon.
  Status open(const Card& mine);
  // `guests` gets one entry a rank, empty for oneself.
  Status meet(const std::vector<Card>& cards, const Descriptors& mine, Deadline deadline,
              std::vector<std::optional<Guest>>* guests);

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
  Status hungUp(std::uint32_t peer) const;
  void admit(Link&, std::uint32_t peer, Descriptors);
  Status wait(bool busy, Deadline);
  Status checkMissing();
  bool complete() const;
  std::string missing() const;

  Card card_;
  Fd listener_;
  const std::vector<Card>* cards_ = nullptr;
  const Descriptors* mine_ = nullptr;
  std::vector<std::optional<Guest>>* guests_ = nullptr;
  std::vector<Link> links_;
  std::uint32_t nextCall_ = 0;  // lower ranks are called in order
  std::uint32_t missed_ = 0;    // the higher rank that did not listen when last looked for
};

}  // namespace weft
