// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace weft::ofi {

// WEFT_NET_DEVICES: names or their beginnings, separated by commas; ^ in front means all but these,
// = means exact names. A :port behind a name is for verbs and means nothing here.
class DeviceFilter {
 public:
  explicit DeviceFilter(const std::string& spec);

  bool given() const { return !names_.empty(); }
  bool allows(const std::string& device) const;

 private:
  bool matches(const std::string& device) const;

  bool except_ = false;
  bool exact_ = false;
  std::vector<std::string> names_;
};

}  // namespace weft::ofi
