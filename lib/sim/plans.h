// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "sim/job.h"

namespace weft::sim {

// The plans of the ranks of calls, each of which takes a while to bind.
class Plans {
 public:
  using Pointer = std::shared_ptr<const plan::Plan>;

  // One that is asked for again: kept, as long as all those take no more than a gigabyte or so.
  Status keep(const Job& call, std::uint32_t rank, Pointer* plan);
  // One that is not.
  Status find(const Job& call, std::uint32_t rank, Pointer* plan) const;

 private:
  std::map<std::pair<const Job*, std::uint32_t>, Pointer> kept_;
  std::size_t ops_ = 0;
};

}  // namespace weft::sim
