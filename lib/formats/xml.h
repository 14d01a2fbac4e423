// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace weft::formats {

// An element as it begins.
struct XmlElement {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> attributes;
  std::size_t line = 0;
  std::size_t depth = 0;  // 0: the outermost
};

// Calls `begin` for each element of a document, in its order, until one is refused. It is read by
// libexpat, which is opened when somebody asks; InvalidArgument has `file` and the line.
Status readXml(std::string_view document, const std::string& file,
               const std::function<Status(const XmlElement&)>& begin);

}  // namespace weft::formats
