// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "shard/layout.h"

namespace weft::shard {

// The parameters of which several parts of a model have some elements each, under one name: numbered alike in all parts, so
// that what is summed by parameter can be summed over parts.
class SplitParameters {
 public:
  SplitParameters() = default;  // none
  // Collective over the ranks of equal number of all parts, in turn.
  static Status find(comm::Communicator& parts, const Layout& layout, int timeoutMs,
                     SplitParameters* out);

  // Of all parts.
  std::size_t count() const { return count_; }
  struct Own {
    std::uint32_t parameter;  // of this part
    std::size_t number;       // among those of all parts
    bool counts;              // no copy of what another part has
  };
  std::span<const Own> own() const { return own_; }

 private:
  std::size_t count_ = 0;
  std::vector<Own> own_;
};

}  // namespace weft::shard
