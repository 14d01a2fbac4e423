// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/admission.h"
#include "bootstrap/socket.h"
#include "bootstrap/stranger_log.h"
#include "bootstrap/stream.h"

namespace weft {

// Where connections wait until they have proved to be ours. Strangers cost their connection and the
// log one line a minute, whatever they send or do not send; at most kMaxStrangers of them stay at
// once. One thread.
class Lobby {
 public:
  struct Arrival {
    Stream stream;
    Admission::Guest guest;
  };

  Lobby(std::vector<Socket> listeners, const Key& secret, const Challenge& introduction,
        std::int64_t handshakeMs);
  ~Lobby() { close(); }

  // What poll(2) should wait for, and until when.
  void addTo(std::vector<pollfd>* entries) const;
  Deadline nextWake() const;
  // Never blocks; gives back those who have proved themselves and told their card since.
  std::vector<Arrival> serve();
  // Takes nobody any more.
  void close();

 private:
  struct Visitor {
    Stream stream;
    Address peer;
    Deadline limit;  // of the handshake
    Admission admission;
    std::optional<Admission::Guest> guest;
    bool open = true;
    bool stranger() const { return !admission.proven(); }
  };
  void acceptWaiting();
  void makeRoom();
  void serve(Visitor& visitor);
  void drop(Visitor& visitor, std::string_view why);

  std::vector<Socket> listeners_;
  const Key secret_;
  const Challenge introduction_;
  const std::int64_t handshakeMs_;
  std::optional<Deadline> acceptAgain_;  // set while connections cannot be taken
  std::list<Visitor> visitors_;
  StrangerLog log_;
};

}  // namespace weft
