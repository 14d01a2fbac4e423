// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "transports/verbs/mesh.h"

namespace weft::verbs {

// Says hello on every port that has a network interface, to all who hear it without a router (UDP
// to ff02::1), and listens: who is at the other end of each cable. All ranks do so at the same
// time, for `ms`; `job` tells them from other jobs. No privileges.
Status sayHello(const std::vector<Port>& ports, std::uint32_t rank, std::uint64_t job, int ms,
                std::vector<Heard>* out);

}  // namespace weft::verbs
