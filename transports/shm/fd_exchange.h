// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/status.h"
#include "transports/setup.h"
#include "transports/shm/fd_hub.h"
#include "transports/shm/fd_message.h"

namespace weft::shm {

using namespace transport;

// Ranks of one host hand each other descriptors: all connect to the first, which gives every one
// those of all others (fd_hub.h). The name of a socket is its rank's token; both ends must run as
// our user, and know the other's secret before they are given anything. No thread; the sockets are
// gone when meet() returns. All listen, so that the first rank sees who has ended.
class FdExchange {
 public:
  // Listens; call before the peer infos are exchanged, so that nobody connects too soon.
  Status open(const PeerInfo& mine);
  Status meet(const std::vector<PeerInfo>& infos, const Descriptors& mine, Deadline deadline,
              Handles* handles);

 private:
  std::uint32_t rank_ = 0;
  Fd listener_;
};

}  // namespace weft::shm
