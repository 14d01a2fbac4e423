// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/peer_name.h"
#include "control/groups.h"
#include "control/link_end.h"

namespace weft::control {

class ControlClient;

// A control link as a family of communicators knows it. The server is in the process of its first rank,
// relays in those of the first rank of each other host, so a communicator may be on it if all of these
// are of it: whoever ends takes nothing along that strangers need.
struct FamilyLink {
  FamilyLink(std::uint64_t theId, std::shared_ptr<LinkEnd> theEnd,
             std::shared_ptr<ControlClient> theKeeper, const Members& inFamily,
             const std::vector<PeerName>& names);
  FamilyLink(const FamilyLink&) = delete;
  FamilyLink& operator=(const FamilyLink&) = delete;

  // By rank of a communicator its rank on the link, if it may be on it. `inFamily`: by rank its number in
  // the family.
  std::optional<Members> placesOf(const Members& inFamily) const;

  const std::uint64_t id;  // the same on all ranks
  const std::shared_ptr<LinkEnd> end;
  // Group 0 of a link on which no communicator is for good: it keeps the rank there meanwhile, and
  // detaches when it is dropped.
  const std::shared_ptr<ControlClient> keeper;
  const Members rankOf;   // by number in the family: its rank on the link, if it has one
  const Members leaders;  // by rank on the link: the first of its host there
};

// The control links of one rank's communicators that were split off from one another: each is used by
// all whom it fits, and those that none uses any more are kept for the next, a few of them. Ranks are
// numbered as in the communicator that was first. It lives as long as any of them. Any thread.
class LinkFamily {
 public:
  static constexpr std::size_t kMostOffered = 4;  // for one communicator
  static constexpr std::size_t kMostIdle = 4;

  // A number for a group or a link; those of one rank differ.
  std::uint32_t next();
  void add(const std::shared_ptr<FamilyLink>& link);
  // Those on which a communicator may be that has a parent on that one: some.
  std::vector<std::shared_ptr<FamilyLink>> links(const std::shared_ptr<FamilyLink>& parents);

 private:
  std::mutex mutex_;
  std::uint32_t last_ = 0;
  std::vector<std::shared_ptr<FamilyLink>> kept_;  // with keepers; the latest last
};

// Where a communicator is: what of its family it keeps alive.
struct FamilyPlace {
  std::shared_ptr<LinkFamily> family;
  std::shared_ptr<FamilyLink> link;
  Members inFamily;
};

}  // namespace weft::control
