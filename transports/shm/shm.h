// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/status.h"
#include "transports/transport.h"

namespace weft::shm {

using namespace transport;

// Ranks are processes of this host, or threads in them: each makes its window in a memfd and maps
// those of all others.
Status makeShm(const TransportSetup& setup, std::unique_ptr<Transport>* out);

}  // namespace weft::shm
