// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "tools/train/weights/file_formats.h"
#include "tools/train/weights/unpickler.h"
#include "tools/train/weights/zip_archive.h"

namespace weft::train {
namespace {

constexpr std::string_view kPickle = "data.pkl";
constexpr size_t kLongestPickle = size_t{64}
                                  << 20;  // a thousand tensors take a quarter of a megabyte

struct Storage {
  StoredType type;
  int64_t bytes;  // of an element
};

const std::map<std::string, Storage>& storages() {
  static const std::map<std::string, Storage> all{
      {"DoubleStorage", {StoredType::kFloat64, 8}}, {"FloatStorage", {StoredType::kFloat32, 4}},
      {"HalfStorage", {StoredType::kFloat16, 2}},   {"BFloat16Storage", {StoredType::kBfloat16, 2}},
      {"LongStorage", {StoredType::kNoFloat, 8}},   {"IntStorage", {StoredType::kNoFloat, 4}},
      {"ShortStorage", {StoredType::kNoFloat, 2}},  {"CharStorage", {StoredType::kNoFloat, 1}},
      {"ByteStorage", {StoredType::kNoFloat, 1}},   {"BoolStorage", {StoredType::kNoFloat, 1}}};
  return all;
}

// The folder in the archive that the pickle lies in, with its slash.
std::optional<std::string> folderOf(const ZipEntries& entries) {
  for (const auto& [name, content] : entries) {
    const size_t slash = name.rfind('/');
    if (slash != std::string::npos && name.substr(slash + 1) == kPickle)
      return name.substr(0, slash + 1);
  }
  return std::nullopt;
}

// Whether all elements lie among `elements`.
bool liesInside(const PickledTensor& tensor, int64_t elements) {
  if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) return true;
  int64_t last = tensor.offset;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return last < elements;
}

StoredTensor located(const PickledTensor& pickled, std::span<const uint8_t> content) {
  const Storage& storage = storages().at(pickled.storageType);
  return {pickled.name,
          storage.type,
          pickled.storageType,
          pickled.shape,
          pickled.strides,
          content.data() + std::min<int64_t>(pickled.offset * storage.bytes,
                                             static_cast<int64_t>(content.size()))};
}

}  // namespace

std::vector<StoredTensor> torchTensorsOf(std::span<const uint8_t> file, const std::string& name) {
  const ZipEntries entries = zipEntriesOf(file, name);
  const std::optional<std::string> folder = folderOf(entries);
  if (!folder) refuse(name, 0, "the zip archive has no data.pkl: it is none of torch.save");
  const auto order = entries.find(*folder + "byteorder");
  if (order != entries.end() && !std::ranges::equal(order->second, std::string_view("little")))
    refuse(name, static_cast<uint64_t>(order->second.data() - file.data()),
           "it was written on a big-endian machine");
  const std::span<const uint8_t> pickle = entries.at(*folder + std::string(kPickle));
  const auto at = static_cast<uint64_t>(pickle.data() - file.data());
  if (pickle.size() > kLongestPickle)
    refuse(name, at, fmt::format("a pickle of {} bytes, which no state dict needs", pickle.size()));
  std::vector<StoredTensor> tensors;
  for (const PickledTensor& tensor : tensorsOfPickle(pickle, name, at)) {
    const auto content = entries.find(*folder + "data/" + tensor.storage);
    if (content == entries.end())
      refuse(name, at, fmt::format("tensor {} has no entry data/{}", tensor.name, tensor.storage));
    const auto elements =
        static_cast<int64_t>(content->second.size()) / storages().at(tensor.storageType).bytes;
    if (!liesInside(tensor, std::min(elements, tensor.storageElements)))
      refuse(
          name, static_cast<uint64_t>(content->second.data() - file.data()),
          fmt::format("tensor {} does not lie in its entry data/{}", tensor.name, tensor.storage));
    tensors.push_back(located(tensor, content->second));
  }
  return tensors;
}

std::vector<StoredTensor> tensorsOf(std::span<const uint8_t> file, const std::string& name) {
  const auto begins = [&](std::string_view with) {
    return file.size() >= with.size() &&
           std::ranges::equal(file.first(with.size()), with, {}, {},
                              [](char c) { return static_cast<uint8_t>(c); });
  };
  if (begins("PK")) return torchTensorsOf(file, name);
  if (begins("\x80\x02"))
    refuse(name, 0, "it is of a torch before 1.6; load it there and save it again");
  return safetensorsOf(file, name);
}

}  // namespace weft::train
