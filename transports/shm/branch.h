// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "transports/mapped/mapped_transport.h"

namespace weft::shm {

using namespace transport;

// A further transport among ranks of one that have each other's heaps mapped: their windows lie in
// the heaps, so that nothing is opened, sent or mapped. One exchange. Null where there are no heaps
// or where one of them has no room, the same on all ranks.
Status branchShm(const mapped::MappedParts& parent, const TransportSetup& setup,
                 std::span<const std::uint32_t> members, std::unique_ptr<Transport>* out);

}  // namespace weft::shm
