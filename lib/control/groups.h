// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "net/channel.h"

namespace weft::control {

// The communicators on one control link: the one that opened it is group 0, those that were split off
// from it and have its rank 0 as theirs have other numbers. Messages of those say of which they are.

// The members of a group by their ranks in it: which they are in group 0.
using Members = std::vector<std::uint32_t>;

// Of a message of type Grouped: the group, and the message.
net::Bytes encodeGrouped(std::uint32_t group, net::MessageType type, const net::Bytes& body);
bool decodeGrouped(net::ByteView bytes, std::uint32_t* group, net::Message* message);

// Groups that the server does not know yet, which rank 0 tells it: in the same process, so that it
// knows of them before any rank can say something. Any thread.
class NewGroups {
 public:
  struct Group {
    std::uint32_t number;
    Members members;
  };
  // Its number.
  std::uint32_t add(Members members) {
    const std::lock_guard lock(mutex_);
    groups_.push_back({++last_, std::move(members)});
    return last_;
  }
  std::vector<Group> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(groups_, {});
  }

 private:
  std::mutex mutex_;
  std::uint32_t last_ = 0;
  std::vector<Group> groups_;
};

}  // namespace weft::control
