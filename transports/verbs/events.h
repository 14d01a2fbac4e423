// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "transports/verbs/port.h"

namespace weft::verbs {

class Connection;

// What a device says unasked, of those events that end something.
struct DeviceEvent {
  std::uint32_t port = 0;                  // 0: of all ports
  const Connection* connection = nullptr;  // of that one only
  std::string what;
};

// The next of them that has not been read yet; false: none. Never blocks. The only reader of the
// device, so that no event is lost to another one.
bool nextEvent(const Device& device, DeviceEvent* out);

}  // namespace weft::verbs
