// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "control/control_state.h"
#include "control/groups.h"

namespace weft::control {

// The communicators on one control link, at its server: what each knows and decides is a ControlState,
// which counts ranks as that communicator does; here they have the numbers that they have on the
// link. Whoever is on it is so with all communicators that it is of. No I/O. One thread.
class ServerGroups {
 public:
  using Clock = ControlState::Clock;
  using Outgoing = ControlState::Outgoing;
  using Leader = std::optional<std::uint32_t>;

  ServerGroups(std::vector<PeerName> names, std::shared_ptr<NewGroups> newGroups);

  // ---- events, as of ControlState ----
  void seat(std::uint32_t rank, Leader leader);
  void orphan(std::uint32_t rank, Clock::time_point now);
  void comeBack(std::uint32_t rank, Leader leader = {});
  // What a rank says of one of them.
  void hear(std::uint32_t rank, const net::Message& message, Clock::time_point now);
  void bye(std::uint32_t rank, Clock::time_point now);  // to all of them
  void lose(std::uint32_t rank, const Loss& loss, Clock::time_point now);
  void propose(std::uint32_t rank, const Status& cause);  // in all of which it is
  void tick(Clock::time_point now, const ControlState::Silence& moreSilence = {});
  void beginToLeave(Clock::time_point now);
  bool mayLeave() const;
  void leave(Clock::time_point now);

  // ---- what follows ----
  std::optional<Outgoing> take();
  std::optional<Clock::time_point> nextTick() const;
  bool here(std::uint32_t rank) const;  // with any of them
  bool hasCome(std::uint32_t rank) const { return first().hasCome(rank); }
  bool hasLeft(std::uint32_t rank) const { return hasCome(rank) && !here(rank); }
  bool everybodyCame() const { return first().everybodyCame(); }
  bool nobodyHere() const;

 private:
  struct Group {
    Group(Members theRanks, std::vector<PeerName> names, std::size_t ranksOfLink);
    // That rank's number in it.
    std::optional<std::uint32_t> find(std::optional<std::uint32_t> rank) const;

    const Members members;
    std::vector<std::uint32_t> rankOf;  // by rank on the link
    ControlState state;
  };

  ControlState& first() { return groups_.at(0).state; }
  const ControlState& first() const { return groups_.at(0).state; }
  template <class Visit>
  void forEachOf(std::uint32_t rank, const Visit& visit);
  // Before anything of a later message: opens those that rank 0 has added.
  void openNew();
  void open(const NewGroups::Group& made);
  void hearOf(Group& group, std::uint32_t r, const net::Message& message, Clock::time_point now);
  void collect(std::uint32_t number, Group& group);
  void forgetLeft();

  const std::vector<PeerName> names_;
  const std::shared_ptr<NewGroups> newGroups_;
  std::vector<Leader> leaders_;            // by rank: of the relay that it comes through
  std::map<std::uint32_t, Group> groups_;  // by number; the first for good
  std::deque<Outgoing> outgoing_;          // for ranks on the link
  std::set<std::uint32_t> farewell_;       // ranks whose connections say good-bye at last
};

}  // namespace weft::control
