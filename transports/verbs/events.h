// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "transports/verbs/port.h"

namespace weft::verbs {

class Connection;

// An asynchronous event of a device that ends something.
struct DeviceEvent {
  std::uint32_t port = 0;                  // 0: of all ports
  const Connection* connection = nullptr;  // of that one only
  std::string what;
};

// The next one; false: none. Never blocks. Nothing else reads the events, so none is lost.
bool nextEvent(const Device& device, DeviceEvent* out);

}  // namespace weft::verbs
