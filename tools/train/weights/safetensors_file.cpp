// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "tools/train/weights/file_formats.h"

namespace weft::train {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLongestHeader = 100'000'000;  // as the reference implementation
constexpr int kDeepest = 3;                       // of a header's values
constexpr uint64_t kHeaderAt = sizeof(uint64_t);

struct Type {
  StoredType type;
  uint64_t bytes;
};

std::optional<Type> typeOf(const std::string& word) {
  static const std::map<std::string, Type> types{
      {"F64", {StoredType::kFloat64, 8}},     {"F32", {StoredType::kFloat32, 4}},
      {"F16", {StoredType::kFloat16, 2}},     {"BF16", {StoredType::kBfloat16, 2}},
      {"I64", {StoredType::kNoFloat, 8}},     {"U64", {StoredType::kNoFloat, 8}},
      {"C64", {StoredType::kNoFloat, 8}},     {"I32", {StoredType::kNoFloat, 4}},
      {"U32", {StoredType::kNoFloat, 4}},     {"I16", {StoredType::kNoFloat, 2}},
      {"U16", {StoredType::kNoFloat, 2}},     {"I8", {StoredType::kNoFloat, 1}},
      {"U8", {StoredType::kNoFloat, 1}},      {"BOOL", {StoredType::kNoFloat, 1}},
      {"F8_E5M2", {StoredType::kNoFloat, 1}}, {"F8_E4M3", {StoredType::kNoFloat, 1}}};
  const auto found = types.find(word);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

// Null if it is no JSON of that depth, or if a name comes twice.
Json parseHeader(std::string_view text) {
  std::set<std::string> names;
  bool strict = true;
  const Json::parser_callback_t look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    strict = strict && depth <= kDeepest;
    if (strict && depth == 1 && event == Json::parse_event_t::key)
      strict = names.insert(parsed.get<std::string>()).second;
    return strict;
  };
  Json json = Json::parse(text, look, false);
  return strict && json.is_object() ? json : Json();
}

bool areLengths(const Json& list) {
  constexpr uint64_t kMost = uint64_t{1} << 60;
  return list.is_array() && std::ranges::all_of(list, [](const Json& each) {
           return each.is_number_unsigned() && each.get<uint64_t>() <= kMost;
         });
}

// Their product times `bytes`, if that is at most `most`.
std::optional<uint64_t> productOf(const std::vector<int64_t>& shape, uint64_t bytes,
                                  uint64_t most) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  for (const int64_t extent : shape) {
    if (static_cast<uint64_t>(extent) > most / bytes) return std::nullopt;
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes <= most ? std::optional(bytes) : std::nullopt;
}

// Where tensors lie in the data, to find holes and what overlaps.
using Places = std::set<std::pair<uint64_t, uint64_t>>;

// What is wrong with a tensor's entry; null if nothing is.
const char* parseEntry(const Json& entry, std::span<const uint8_t> data, StoredTensor& tensor,
                       Places& places) {
  const bool whole = entry.is_object() && entry.size() == 3 && entry.contains("dtype") &&
                     entry.contains("shape") && entry.contains("data_offsets");
  if (!whole || !entry["dtype"].is_string()) return "is not {dtype, shape, data_offsets}";
  tensor.typeName = entry["dtype"].get<std::string>();
  const std::optional<Type> type = typeOf(tensor.typeName);
  if (!type) return "has a type that is not known here";
  tensor.type = type->type;
  if (!areLengths(entry["shape"])) return "has no shape";
  tensor.shape = entry["shape"].get<std::vector<int64_t>>();
  const Json& span = entry["data_offsets"];
  if (!areLengths(span) || span.size() != 2) return "has no offsets";
  const auto from = span[0].get<uint64_t>(), to = span[1].get<uint64_t>();
  if (from > to || to > data.size()) return "does not lie in the file (is it truncated?)";
  if (productOf(tensor.shape, type->bytes, data.size()) != to - from)
    return "has not the length of its shape";
  tensor.strides = rowMajor(tensor.shape);
  tensor.data = data.data() + from;
  places.emplace(from, to);
  return nullptr;
}

bool tile(const Places& places, uint64_t bytes) {
  uint64_t end = 0;
  for (const auto& [from, to] : places) {
    if (from != end) return false;
    end = to;
  }
  return end == bytes;
}

}  // namespace

std::vector<StoredTensor> safetensorsOf(std::span<const uint8_t> file, const std::string& name) {
  uint64_t length = 0;
  if (file.size() >= kHeaderAt) std::memcpy(&length, file.data(), kHeaderAt);
  if (file.size() < kHeaderAt || length > std::min(kLongestHeader, file.size() - kHeaderAt))
    refuse(name, 0, "it is truncated, or no safetensors file");
  const Json json = parseHeader({reinterpret_cast<const char*>(file.data()) + kHeaderAt, length});
  if (json.is_null()) refuse(name, kHeaderAt, "the header is no valid JSON of safetensors");
  const std::span<const uint8_t> data = file.subspan(kHeaderAt + length);
  std::vector<StoredTensor> tensors;
  Places places;
  uint64_t bytes = 0;
  for (const auto& [key, entry] : json.items()) {
    if (key == "__metadata__") continue;
    StoredTensor tensor;
    tensor.name = key;
    if (const char* const wrong = parseEntry(entry, data, tensor, places))
      refuse(name, kHeaderAt, fmt::format("tensor {} {}", key, wrong));
    bytes += entry["data_offsets"][1].get<uint64_t>() - entry["data_offsets"][0].get<uint64_t>();
    tensors.push_back(std::move(tensor));
  }
  if (!tile(places, data.size()) || bytes != data.size())
    refuse(name, kHeaderAt + length, "the tensors overlap, or leave holes");
  return tensors;
}

}  // namespace weft::train
