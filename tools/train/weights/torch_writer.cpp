// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include "tools/train/failure.h"
#include "tools/train/output_file.h"
#include "tools/train/weights/stored_tensor.h"
#include "tools/train/weights/weights_writer.h"

namespace weft::train {
namespace {

constexpr size_t kAlignment = 64;  // of an entry's content

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// ---- the pickle ------------------------------------------------------------------------------

void putText(std::string& pickle, const std::string& text) {
  pickle += 'X';
  put(pickle, static_cast<uint32_t>(text.size()));
  pickle += text;
}

void putNumber(std::string& pickle, int64_t number) {
  if (number <= std::numeric_limits<int32_t>::max()) {
    pickle += 'J';
    put(pickle, static_cast<int32_t>(number));
  } else {
    pickle += "\x8a\x08";
    put(pickle, number);
  }
}

void putNumbers(std::string& pickle, const std::vector<int64_t>& numbers) {
  pickle += '(';
  for (const int64_t number : numbers) putNumber(pickle, number);
  pickle += 't';
}

constexpr const char* kEmptyDict = "ccollections\nOrderedDict\n)R";

// torch._utils._rebuild_tensor_v2(storage, 0, shape, strides, False, OrderedDict())
void putTensor(std::string& pickle, const std::string& name, const NamedShape& tensor,
               size_t storage) {
  putText(pickle, name);
  pickle += "ctorch._utils\n_rebuild_tensor_v2\n((";
  putText(pickle, "storage");
  pickle += "ctorch\nFloatStorage\n";
  putText(pickle, std::to_string(storage));
  putText(pickle, "cpu");
  putNumber(pickle, static_cast<int64_t>(tensor.elements()));
  pickle += "tQ";
  putNumber(pickle, 0);
  putNumbers(pickle, tensor.shape);
  putNumbers(pickle, rowMajor(tensor.shape));
  pickle += '\x89';
  pickle += kEmptyDict;
  pickle += "tR";
}

std::string pickleOf(const std::vector<NamedShape>& tensors,
                     const std::vector<SharedTensor>& shared) {
  std::string pickle = "\x80\x02";
  pickle += kEmptyDict;
  pickle += '(';
  for (size_t i = 0; i < tensors.size(); ++i) putTensor(pickle, tensors[i].name, tensors[i], i);
  for (const auto& [name, of] : shared) putTensor(pickle, name, tensors[of], of);
  return pickle + "u.";
}

// ---- the archive -----------------------------------------------------------------------------

// The CRC-32 of zip archives: polynomial edb88320, reflected.
uint32_t crcOf(std::span<const uint8_t> bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> all{};
    for (uint32_t byte = 0; byte < all.size(); ++byte) {
      all[byte] = byte;
      for (int bit = 0; bit < 8; ++bit)
        all[byte] = all[byte] >> 1 ^ ((all[byte] & 1) != 0 ? 0xedb88320u : 0u);
    }
    return all;
  }();
  uint32_t crc = ~uint32_t{0};
  for (const uint8_t byte : bytes) crc = table[(crc ^ byte) & 0xff] ^ crc >> 8;
  return ~crc;
}

class TorchWriter : public WeightsWriter {
 public:
  TorchWriter(const std::string& file, const std::vector<NamedShape>& tensors,
              const std::vector<SharedTensor>& shared, uint64_t narrow)
      : file_(file), narrow_(narrow) {
    entry("archive/data.pkl", asBytes(pickleOf(tensors, shared)));
    entry("archive/byteorder", asBytes("little"));
  }

  void append(std::span<const float> tensor) override {
    entry(fmt::format("archive/data/{}", next_++),
          {reinterpret_cast<const uint8_t*>(tensor.data()), tensor.size_bytes()});
  }

  void finish() override {
    entry("archive/version", asBytes("3\n"));
    const uint64_t at = file_.bytes();
    file_.write(directory_);
    file_.write(endOfArchive(at));
    file_.finish();
  }

 private:
  static std::span<const uint8_t> asBytes(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }

  // What a local header and a line of the directory have in common: from the version that it needs
  // to the length of the name.
  static std::string commonFields(const std::string& name, std::span<const uint8_t> content) {
    std::string fields;
    for (const int field : {45, 0, 0, 0, 0})
      put(fields, static_cast<uint16_t>(field));  // version 4.5, stored, no time
    put(fields, crcOf(content));
    put(fields, static_cast<uint32_t>(content.size()));
    put(fields, static_cast<uint32_t>(content.size()));
    put(fields, static_cast<uint16_t>(name.size()));
    return fields;
  }

  void entry(const std::string& name, std::span<const uint8_t> content) {
    if (content.size() > std::numeric_limits<uint32_t>::max() - 1)
      throw Failure(Exit::kUsage,
                    "a tensor of 4 GiB or more has no place in torch's file; export "
                    ".safetensors");
    const uint64_t at = file_.bytes();
    const std::string fields = commonFields(name, content);
    const uint64_t start = at + 4 + fields.size() + 2 + name.size() + 4;
    const auto padding = static_cast<uint16_t>((kAlignment - start % kAlignment) % kAlignment);
    std::string header = "PK\3\4" + fields;
    put(header, static_cast<uint16_t>(4 + padding));  // an extra field, as torch pads with
    header += name + "FB";
    put(header, padding);
    file_.write(header.append(padding, 'Z'));
    file_.write(content.data(), content.size());
    list(name, fields, at);
  }

  void list(const std::string& name, const std::string& fields, uint64_t at) {
    const bool wide = at >= narrow_;
    directory_ += "PK\1\2";
    put(directory_, uint16_t{45});
    directory_ += fields;
    put(directory_, static_cast<uint16_t>(wide ? 12 : 0));  // of the extra field
    directory_.append(10, '\0');                            // no comment, disk 0, no attributes
    put(directory_, wide ? ~uint32_t{0} : static_cast<uint32_t>(at));
    directory_ += name;
    if (wide) {
      put(directory_, uint16_t{1});
      put(directory_, uint16_t{8});
      put(directory_, at);
    }
    ++entries_;
  }

  std::string endOfArchive(uint64_t at) const {
    const bool wide = at >= narrow_ || entries_ >= 0xffff;
    std::string end;
    if (wide) {
      end += "PK\6\6";
      put(end, uint64_t{44});
      put(end, uint32_t{45 << 16 | 45});
      put(end, uint64_t{0});  // disks
      put(end, entries_);
      put(end, entries_);
      put(end, uint64_t{directory_.size()});
      put(end, at);
      end += "PK\6\7";
      put(end, uint32_t{0});
      put(end, at + directory_.size());
      put(end, uint32_t{1});
    }
    end += "PK\5\6";
    put(end, uint32_t{0});
    for (int i = 0; i < 2; ++i) put(end, wide ? uint16_t{0xffff} : static_cast<uint16_t>(entries_));
    put(end, wide ? ~uint32_t{0} : static_cast<uint32_t>(directory_.size()));
    put(end, wide ? ~uint32_t{0} : static_cast<uint32_t>(at));
    put(end, uint16_t{0});
    return end;
  }

  OutputFile file_;
  uint64_t narrow_;
  std::string directory_;
  uint64_t entries_ = 0;
  size_t next_ = 0;
};

}  // namespace

uint64_t NamedShape::elements() const {
  return std::accumulate(
      shape.begin(), shape.end(), uint64_t{1},
      [](uint64_t product, int64_t extent) { return product * static_cast<uint64_t>(extent); });
}

std::unique_ptr<WeightsWriter> torchWriter(const std::string& file,
                                           const std::vector<NamedShape>& tensors,
                                           const std::vector<SharedTensor>& shared,
                                           uint64_t narrow) {
  return std::make_unique<TorchWriter>(file, tensors, shared, narrow);
}

}  // namespace weft::train
