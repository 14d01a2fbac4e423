// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/device_filter.h"

#include <algorithm>

#include "base/invalid.h"
#include "base/number.h"

namespace weft::wire {

Status DeviceFilter::parse(std::string_view knob, DeviceFilter* out) {
  *out = DeviceFilter();
  std::string_view rest = knob;
  for (; rest.starts_with('^') || rest.starts_with('='); rest.remove_prefix(1))
    (rest.front() == '^' ? out->not_ : out->exact_) = true;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const auto colon = word.rfind(':');
    Name name{std::string(word.substr(0, colon))};
    const bool sound = colon == std::string_view::npos ||
                       (parseNumber(word.substr(colon + 1), &name.port) && name.port != 0);
    if (name.device.empty() || !sound)
      return invalidVariable(
          "WEFT_NET_DEVICES", "WEFT_NET_DEVICES is '", knob, "', where '", word,
          "' is no device; fix: names separated by commas, such as mlx5_0,mlx5_1:1");
    out->names_.push_back(std::move(name));
  }
  return {};
}

bool DeviceFilter::allows(std::string_view device, std::optional<std::uint32_t> port) const {
  const bool named = std::ranges::any_of(names_, [&](const Name& name) {
    // "Any port" of a device that is left out by one port only is not left out.
    const bool anyPort = !port || name.port == 0 || (*port == 0 && !not_);
    return (exact_ ? device == name.device : device.starts_with(name.device)) &&
           (anyPort || name.port == port);
  });
  return names_.empty() || named != not_;
}

}  // namespace weft::wire
