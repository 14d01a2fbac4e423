// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace weft::wire {

// WEFT_NET_DEVICES: "mlx5_0,mlx5_1:2" (prefixes), "^lo" (all but), "=rc0p1" (exact). Empty: all.
class DeviceFilter {
 public:
  static Status parse(std::string_view knob, DeviceFilter* out);
  // Port 0: any port of that device. Without one, as wires have none: a :port means nothing.
  bool allows(std::string_view device, std::optional<std::uint32_t> port = {}) const;

 private:
  struct Name {
    std::string device;
    std::uint32_t port = 0;  // 0: all
  };
  bool not_ = false;
  bool exact_ = false;
  std::vector<Name> names_;
};

}  // namespace weft::wire
