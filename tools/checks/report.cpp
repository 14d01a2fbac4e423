// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/checks/host.h"

namespace weft::checks {

void HostReport::add(std::string name, double value, std::string unit) {
  facts.push_back({std::move(name), value, {}, std::move(unit)});
}

void HostReport::add(std::string name, std::string text) {
  facts.push_back({std::move(name), 0, std::move(text), {}});
}

const Fact* HostReport::find(std::string_view name) const {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? nullptr : &*found;
}

}  // namespace weft::checks
