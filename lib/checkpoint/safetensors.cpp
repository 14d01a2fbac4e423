// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/invalid.h"
#include "base/text.h"
#include "checkpoint/strict_json.h"
#include "reduce/rounding.h"

namespace weft::checkpoint {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little);  // as the format is

constexpr std::uint64_t kLongestHeader = 100'000'000;  // as the reference implementation
constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
constexpr const char* kMetadata = "__metadata__";

const char* nameOfType(reduce::DType type) {
  return type == reduce::DType::F32 ? "F32" : type == reduce::DType::BF16 ? "BF16" : "F16";
}

std::optional<reduce::DType> typeOf(const std::string& name) {
  for (const reduce::DType type : {reduce::DType::F32, reduce::DType::BF16, reduce::DType::F16})
    if (name == nameOfType(type)) return type;
  return std::nullopt;
}

// One tensor's entry; null, or what is wrong with it. The offset is that in the data.
const char* parseTensor(const Json& entry, std::uint64_t dataBytes, Tensor* out) {
  if (!entry.is_object() || entry.size() != 3) return "is not {dtype, shape, data_offsets}";
  const auto type = entry.find("dtype"), shape = entry.find("shape"),
             span = entry.find("data_offsets");
  if (type == entry.end() || shape == entry.end() || span == entry.end())
    return "is not {dtype, shape, data_offsets}";
  const std::optional<reduce::DType> known =
      type->is_string() ? typeOf(type->get<std::string>()) : std::nullopt;
  if (!known) return "has a type other than F32, BF16 and F16";
  out->type = *known;
  if (!shape->is_array()) return "has no shape";
  bool empty = false;
  std::uint64_t elements = 1;
  for (const Json& extent : *shape) {
    if (!extent.is_number_unsigned()) return "has an extent that is no number";
    out->shape.push_back(extent.get<std::uint64_t>());
    empty |= out->shape.back() == 0;
    if (out->shape.back() > kMost / elements) return "is longer than any file";
    elements *= std::max<std::uint64_t>(out->shape.back(), 1);
  }
  const auto isOffset = [](const Json& j) { return j.is_number_unsigned(); };
  if (!span->is_array() || span->size() != 2 || !std::ranges::all_of(*span, isOffset))
    return "has no offsets";
  const auto begin = (*span)[0].get<std::uint64_t>(), end = (*span)[1].get<std::uint64_t>();
  if (begin > end || end > dataBytes) return "does not lie in the file (is it truncated?)";
  if (end - begin != (empty ? 0 : elements * reduce::sizeOf(*known)))
    return "has not the length of its shape";
  out->offset = begin;
  return nullptr;
}

Status checkHoles(const std::vector<Tensor>& tensors, std::uint64_t dataBytes) {
  std::uint64_t at = 0;
  for (const Tensor& t : tensors) {
    if (t.offset != at)
      return invalid("tensor '", t.name, t.offset < at ? "' overlaps" : "' leaves a hole after",
                     " the one before it");
    at += t.bytes();
  }
  return at == dataBytes
             ? Status()
             : invalid("the tensors end at byte ", at, " of ", dataBytes, " bytes of data");
}

Status parseHeader(const std::string& header, std::uint64_t dataBytes, std::vector<Tensor>* tensors,
                   TensorMetadata* metadata) {
  const std::optional<Json> json = parseStrictly<Json>(header);
  if (!json) return invalid("its header is not valid JSON");
  for (const auto& [name, entry] : json->items()) {
    if (name == kMetadata) {
      if (!entry.is_object()) return invalid("its metadata are no object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return invalid("its metadata '", key, "' are no string");
        (*metadata)[key] = value.get<std::string>();
      }
      continue;
    }
    Tensor tensor;
    tensor.name = name;
    if (const char* const wrong = parseTensor(entry, dataBytes, &tensor))
      return invalid("tensor '", name, "' ", wrong);
    tensors->push_back(std::move(tensor));
  }
  // Empty tensors come before others at the same offset.
  std::ranges::stable_sort(*tensors, [](const Tensor& a, const Tensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes() < b.bytes();
  });
  return checkHoles(*tensors, dataBytes);
}

}  // namespace

std::uint64_t Tensor::elements() const {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : shape) n *= extent;
  return n;
}

Status safetensorsHeader(const std::vector<Tensor>& tensors, const TensorMetadata& metadata,
                         std::string* header) {
  Json json = Json::object();
  if (!metadata.empty()) json[kMetadata] = metadata;
  std::uint64_t at = 0;
  for (const Tensor& t : tensors) {
    if (t.name == kMetadata || json.contains(t.name))
      return invalid("a file cannot hold a tensor of the name '", t.name, "' (again)");
    json[t.name] = {
        {"dtype", nameOfType(t.type)}, {"shape", t.shape}, {"data_offsets", {at, at + t.bytes()}}};
    at += t.bytes();
  }
  try {
    *header = json.dump();
  } catch (const Json::type_error&) {
    return invalid("the name of a parameter is not UTF-8; fix: rename it");
  }
  header->append((8 - header->size() % 8) % 8, ' ');
  if (header->size() > kLongestHeader) return invalid("there are too many tensors for one file");
  const std::uint64_t length = header->size();
  header->insert(0, reinterpret_cast<const char*>(&length), sizeof(length));
  return {};
}

Status SafetensorsFile::open(const std::string& path, SafetensorsFile* out) {
  SafetensorsFile made;
  WEFT_TRY(InputFile::open(path, &made.file_));
  const std::uint64_t all = made.file_.bytes();
  std::uint64_t length = 0;
  if (all < sizeof(length)) return invalid("'", path, "' is truncated, or not a safetensors file");
  WEFT_TRY(made.file_.read(0, &length, sizeof(length)));
  if (length > kLongestHeader || length > all - sizeof(length))
    return invalid("'", path, "' is truncated, or not a safetensors file: its header would be ",
                   length, " bytes");
  std::string header(length, '\0');
  WEFT_TRY(made.file_.read(sizeof(length), header.data(), length));
  const std::uint64_t dataAt = sizeof(length) + length;
  const Status parsed = parseHeader(header, all - dataAt, &made.tensors_, &made.metadata_);
  if (!parsed.ok()) return invalid("'", path, "': ", parsed.text());
  for (Tensor& t : made.tensors_) t.offset += dataAt;
  *out = std::move(made);
  return {};
}

Status SafetensorsFile::read(const Tensor& tensor, std::uint64_t from, std::uint64_t count,
                             reduce::DType to, void* data) const {
  const std::size_t size = reduce::sizeOf(tensor.type);
  if (to == tensor.type) return file_.read(tensor.offset + from * size, data, count * size);
  constexpr std::uint64_t kElements = 64 << 10;
  std::vector<std::byte> raw(std::min(count, kElements) * size);
  std::vector<float> wide(std::min(count, kElements));
  for (std::uint64_t at = 0; at < count; at += kElements) {
    const auto n = static_cast<std::size_t>(std::min(kElements, count - at));
    WEFT_TRY(file_.read(tensor.offset + (from + at) * size, raw.data(), n * size));
    reduce::widen(tensor.type, wide.data(), raw.data(), n);
    reduce::castFloats(to, static_cast<std::byte*>(data) + at * reduce::sizeOf(to), wide.data(), n,
                       {}, 0);
  }
  return {};
}

}  // namespace weft::checkpoint
