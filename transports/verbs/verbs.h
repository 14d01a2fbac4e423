// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/status.h"
#include "transports/wire/wire.h"

namespace weft::verbs {

using namespace wire;

// RoCE: see verbs_wire.h.
Status makeVerbsWire(const WireSetup& setup, std::unique_ptr<Wire>* out);

}  // namespace weft::verbs
