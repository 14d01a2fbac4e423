// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/status.h"
#include "transports/transport.h"

namespace weft::local {

using namespace transport;

// Ranks are threads of this process: each finds the others' windows by their random tokens.
Status makeLocal(const TransportSetup& setup, std::unique_ptr<Transport>* out);

}  // namespace weft::local
