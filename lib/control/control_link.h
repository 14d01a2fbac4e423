// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "control/link_family.h"
#include "transports/transport.h"
#include "watch/remote_ranks.h"

namespace weft::control {

// Opens the control link of a communicator some of whose ranks share no memory: authenticated TCP
// connections around rank 0's process, which the communicator keeps. The ranks of any other host, if
// it has several, come through a relay in the process of the first of them (control_relay.h). Each
// rank has one thread for its connection, a relay another, and so has rank 0's process for the
// control server; they sleep in poll(2) until somebody asks, proposes or dies, and block all signals.
//
// Collective: all ranks get a link, or all get an error, which names the rank that it comes from.
// The transport's pages must outlive the link, which keeps those that are mirrors up to date.
// Dropping it says good-bye if watch::leaveForGood() has not, and does not wait. The server stays in
// rank 0's process until the last rank has left.
//
// Cost: nothing in a call that does not wait 20 ms. By default all ranks learn of the death of a
// process 50 ms after its connection closed, unless a rank of the same host knows more first, and
// of a host that is cut off after 3 to 4 s. A stopped process is not dead, since its kernel
// answers; after 3 s those who wait for it name it at WARN. If it has the relay of its host, the
// others of that host hear a second later, up to four where many threads share a core, and those that
// are in no call hear in their next one.
//
// The key of the link goes over the setup's exchange, so whoever could read that could join it.
Status openControlLink(const transport::TransportSetup& setup, transport::Transport& transport,
                       std::shared_ptr<watch::RemoteRanks>* out);

// What a rank has for a communicator to be: links of its family, and a number, which is rank 0's that
// counts.
struct LinkOffer {
  std::uint64_t number = 0;
  std::array<std::uint64_t, LinkFamily::kMostOffered> links{};  // 0: none more
};

// The same for ranks of a communicator that has a control link already. They use one that their family
// has (link_family.h), without a connection or a thread more: whose rank 0 is theirs as well, as is, of
// each of their hosts with a relay, the rank that has it. Else they open one more, for all whom it fits.
// A parent may leave before or after them.
class LinkBranch {
 public:
  // `parent`: that communicator's, or null; outlives open().
  explicit LinkBranch(watch::RemoteRanks* parent);
  ~LinkBranch();
  LinkBranch(const LinkBranch&) = delete;
  LinkBranch& operator=(const LinkBranch&) = delete;

  // For whomever may be with this rank: all of the parent's tell each other.
  const LinkOffer& offer() const { return mine_; }
  // Of those who are: their ranks in the parent, what they have told, and which this one is. All do so
  // before any of them may open it.
  void choose(std::uint32_t rank, const std::vector<std::uint32_t>& members,
              const std::vector<LinkOffer>& offers);
  // Once, or not at all. It exchanges nothing where there is one in common.
  Status open(const transport::TransportSetup& setup, transport::Transport& transport,
              std::shared_ptr<watch::RemoteRanks>* out);

 private:
  FamilyPlace parents_, place_;
  std::vector<std::shared_ptr<FamilyLink>> links_;  // that are offered
  LinkOffer mine_;
  std::uint32_t number_ = 0;
  std::shared_ptr<LinkEnd> server_;  // which knows of the communicator, though it has not come yet
};

}  // namespace weft::control
