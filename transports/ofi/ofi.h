// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/status.h"
#include "transports/wire/wire.h"

namespace weft::ofi {

using namespace wire;

// libfabric: see ofi_wire.h.
Status makeOfiWire(const WireSetup& setup, std::unique_ptr<Wire>* out);

}  // namespace weft::ofi
