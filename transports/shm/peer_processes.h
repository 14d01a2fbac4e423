// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/fd.h"
#include "transports/mapped/mapped_transport.h"
#include "transports/setup.h"

namespace weft::shm {

using namespace transport;

// Other processes, each once for all communicators with ranks of it, however they came to be: `found`, or
// what is known of the one of that name, whose descriptors stay then. Any thread.
std::shared_ptr<const mapped::PeerProcess> knownProcess(const Token& name,
                                                        mapped::PeerProcess found);

}  // namespace weft::shm
