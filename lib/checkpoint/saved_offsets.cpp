// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/saved_offsets.h"

#include <nlohmann/json.hpp>

#include "base/invalid.h"
#include "checkpoint/strict_json.h"

namespace weft::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr const char* kInfo = "DCP_SHARDING_INFO";
constexpr const char* kOffsets = "saved_offsets";

// {"saved_offsets": [from]}
std::optional<std::uint64_t> offsetOf(const Json& entry) {
  if (!entry.is_object() || !entry.contains(kOffsets)) return {};
  const Json& offsets = entry[kOffsets];
  if (!offsets.is_array() || offsets.size() != 1 || !offsets[0].is_number_unsigned()) return {};
  return offsets[0].get<std::uint64_t>();
}

}  // namespace

Status printOffsets(const SavedOffsets& offsets, TensorMetadata* metadata) {
  Json info = Json::object();
  for (const auto& [name, from] : offsets) info[name] = {{kOffsets, Json::array({from})}};
  try {
    (*metadata)[kInfo] = info.dump();
  } catch (const Json::type_error&) {
    return invalid("the name of a parameter is not UTF-8; fix: rename it");
  }
  (*metadata)["DCP_VERSION"] = "1.0";
  (*metadata)["format"] = "pt";
  return {};
}

std::optional<SavedOffsets> parseOffsets(const TensorMetadata& metadata) {
  const auto text = metadata.find(kInfo);
  if (text == metadata.end()) return {};
  const std::optional<Json> info = parseStrictly<Json>(text->second);
  if (!info) return {};
  SavedOffsets offsets;
  for (const auto& [name, entry] : info->items()) {
    const std::optional<std::uint64_t> from = offsetOf(entry);
    if (!from) return {};
    offsets[name] = *from;
  }
  return offsets;
}

}  // namespace weft::checkpoint
