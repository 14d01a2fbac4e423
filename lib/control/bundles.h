// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "net/bytes.h"
#include "net/message_type.h"

namespace weft::control {

// Messages of several ranks that go over one connection: what equal ones say travels once, with the
// ranks that it is from, or for. One thread.
class Bundles {
 public:
  using Body = std::shared_ptr<const net::Bytes>;

  void add(std::uint32_t rank, net::MessageType type, Body body);
  bool empty() const { return bundles_.empty(); }
  // Bodies of messages of type Relayed. Those of a rank are in the order in which they were added.
  std::vector<net::Bytes> take();

 private:
  // Equal messages come close to each other; further back it is not worth a look.
  static constexpr std::size_t kLookBack = 8;

  struct Bundle {
    net::MessageType type;
    Body body;
    std::vector<std::uint32_t> ranks;
  };
  std::vector<Bundle> bundles_;
  std::map<std::uint32_t, std::size_t> lastOf_;  // by rank: its last bundle
};

}  // namespace weft::control
