// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/status.h"
#include "transports/setup.h"
#include "transports/shm/fd_message.h"

namespace weft::shm {

using namespace transport;

// One entry a rank, empty for oneself.
using Handles = std::vector<std::optional<Descriptors>>;

// The first rank's part of the exchange of descriptors: it takes those of all others and hands
// every one all of them. Or it says why not, to all that it knows by then: who is late or has ended.
class FdHub {
 public:
  FdHub(const Fd& listener, const std::vector<PeerInfo>& infos, const Descriptors& mine,
        Deadline deadline, Handles* handles);
  Status run();

 private:
  struct Member {
    Fd socket;             // once it has said who it is
    std::size_t told = 0;  // so many of the tables
  };
  struct Table {
    FdMessage message;
    std::vector<int> descriptors;
  };

  Status collect();
  Status acceptAll();
  Status hear(Fd* caller);
  Status wait();
  Status checkMissing();
  void makeTables();
  Status handOut();
  Status tell(std::uint32_t rank, bool* busy);
  void tellWhy(const Status& verdict);
  Status late() const;

  const Fd& listener_;
  const std::vector<PeerInfo>& infos_;
  const Descriptors& mine_;
  const Deadline deadline_;
  Handles& handles_;
  std::vector<Fd> callers_;  // who have not said yet who they are
  std::vector<Member> members_;
  std::size_t missing_;
  std::uint32_t missed_ = 0;  // who did not listen at the last check
  std::vector<Table> tables_;
};

Status endedInSetup(const PeerInfo& peer, const std::string& how);
Status hungUpInSetup(const PeerInfo& peer);
Status descriptorsLost(const PeerInfo& sender);
ErrorData lateInSetup();

}  // namespace weft::shm
