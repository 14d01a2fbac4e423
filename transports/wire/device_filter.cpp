// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/device_filter.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace weft {

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
    if (colon != std::string_view::npos) {
      const char* const end = word.data() + word.size();
      const auto [stop, error] = std::from_chars(word.data() + colon + 1, end, name.port);
      if (error != std::errc() || stop != end || name.port == 0) name.device.clear();
    }
    if (name.device.empty())
      return Status::error(Code::InvalidArgument,
                           text("WEFT_NET_DEVICES is '", knob, "', where '", word,
                                "' is no device; fix: names separated by commas, such as"
                                " mlx5_0,mlx5_1:1"));
    out->names_.push_back(std::move(name));
  }
  return {};
}

bool DeviceFilter::allows(std::string_view device, std::uint32_t port) const {
  if (names_.empty()) return true;
  // "Any port" of a device that is left out by one port only is not left out.
  const bool anyPort = port == 0 && !not_;
  const bool named = std::any_of(names_.begin(), names_.end(), [&](const Name& name) {
    return names(name, device) && (name.port == 0 || name.port == port || anyPort);
  });
  return named != not_;
}

bool DeviceFilter::allows(std::string_view device) const {
  if (names_.empty()) return true;
  const bool named = std::any_of(names_.begin(), names_.end(),
                                 [&](const Name& name) { return names(name, device); });
  return named != not_;
}

bool DeviceFilter::names(const Name& name, std::string_view device) const {
  return exact_ ? device == name.device : device.starts_with(name.device);
}

}  // namespace weft
