// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/device_filter.h"

#include <algorithm>
#include <sstream>

namespace weft::ofi {

DeviceFilter::DeviceFilter(const std::string& spec) {
  std::size_t at = 0;
  for (; at < spec.size() && (spec[at] == '^' || spec[at] == '='); ++at)
    (spec[at] == '^' ? except_ : exact_) = true;
  std::istringstream list(spec.substr(at));
  for (std::string name; std::getline(list, name, ',');)
    if (name.erase(std::min(name.find(':'), name.size())); !name.empty()) names_.push_back(name);
}

bool DeviceFilter::matches(const std::string& device) const {
  return std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
    return exact_ ? device == name : device.starts_with(name);
  });
}

bool DeviceFilter::allows(const std::string& device) const {
  return !given() || matches(device) != except_;
}

}  // namespace weft::ofi
