// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/libtorch_error.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace weft::train {

Failure failureOf(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (text.find("allocate memory") != std::string::npos) {
    constexpr std::string_view kBefore = "you tried to allocate ";
    const std::size_t at = text.find(kBefore);
    const double bytes =
        at == std::string::npos ? 0 : std::strtod(text.c_str() + at + kBefore.size(), nullptr);
    return {Exit::kConfiguration,
            fmt::format("there is no memory for a tensor of {:.3g} GB; lower --seq, --batch or the "
                        "model's sizes",
                        bytes / 1e9)};
  }
  return {Exit::kInternal, "libtorch: " + text.substr(0, text.find('\n'))};
}

}  // namespace weft::train
