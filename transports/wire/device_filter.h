// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace weft {

// WEFT_NET_DEVICES: "mlx5_0,mlx5_1:2" (beginnings of names), "^lo" (all but these), "=rc0p1" (exact
// names). Empty: all.
class DeviceFilter {
 public:
  static Status parse(std::string_view knob, DeviceFilter* out);
  // Port 0: any port of that device.
  bool allows(std::string_view device, std::uint32_t port) const;
  // For wires that know no ports: a :port behind a name means nothing.
  bool allows(std::string_view device) const;

 private:
  struct Name {
    std::string device;
    std::uint32_t port = 0;  // 0: all
  };
  bool names(const Name& name, std::string_view device) const;

  bool not_ = false;
  bool exact_ = false;
  std::vector<Name> names_;
};

}  // namespace weft
