// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "net/channel.h"

namespace weft::control {

// The communicators on one control link: group 0 has all ranks of the link, those that were split off
// from others and have its rank 0 as theirs have other numbers. Messages of those say of which they are.

// By rank in a group: which it is on the link, or in the family of communicators (link_family.h).
using Members = std::vector<std::uint32_t>;

// Of a message of type Grouped: the group, and the message.
net::Bytes encodeGrouped(std::uint32_t group, net::MessageType type, const net::Bytes& body);
bool decodeGrouped(net::ByteView bytes, std::uint32_t* group, net::Message* message);

// What rank 0 tells the server of groups: in the same process, so that it knows of them before any rank
// can say something. Any thread.
class NewGroups {
 public:
  struct Group {
    std::uint32_t number;
    Members members;
  };
  // `number`: unlike any before.
  void add(std::uint32_t number, Members members) {
    const std::lock_guard lock(mutex_);
    groups_.push_back({number, std::move(members)});
  }
  // Nothing came of that one.
  void drop(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(groups_, [&](const Group& group) { return group.number == number; }) == 0)
      dropped_.push_back(number);
  }
  std::vector<Group> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(groups_, {});
  }
  std::vector<std::uint32_t> takeDropped() {
    const std::lock_guard lock(mutex_);
    return std::exchange(dropped_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> dropped_;
};

}  // namespace weft::control
