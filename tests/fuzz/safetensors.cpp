// SPDX-License-Identifier: Apache-2.0
// Files of tensors: as they come, or with the length of their header put right and as much data as the input asks for.
#include "checkpoint/safetensors.h"
#include "checkpoint/saved_offsets.h"

#include "fuzz.h"

namespace weft::fuzz {
namespace {

using checkpoint::Tensor;

bool isSame(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.type == b.type && a.shape == b.shape;
}

void tryFile(const std::string& content) {
  checkpoint::SafetensorsFile file;
  if (!isGood(checkpoint::SafetensorsFile::open(fileWith(content), &file))) return;
  if (const auto offsets = checkpoint::parseOffsets(file.metadata())) {
    checkpoint::TensorMetadata printed;
    require(isGood(checkpoint::printOffsets(*offsets, &printed)), "offsets can be written");
    require(checkpoint::parseOffsets(printed) == offsets, "and read as the same");
  }
  std::uint64_t bytes = 0;
  for (const Tensor& t : file.tensors()) {
    require(t.offset <= content.size() && t.bytes() <= content.size() - t.offset, "it lies inside");
    bytes += t.bytes();
  }
  std::string written;
  require(safetensorsHeader(file.tensors(), file.metadata(), &written).ok(), "it can be written");
  checkpoint::SafetensorsFile again;
  require(checkpoint::SafetensorsFile::open(fileWith(written.append(bytes, '\0')), &again).ok(),
          "what is written can be read");
  require(std::ranges::equal(file.tensors(), again.tensors(), isSame) &&
              file.metadata() == again.metadata(),
          "what is written reads as the same");
}

std::string framed(std::string_view header, std::size_t dataBytes) {
  std::string content;
  for (int byte = 0; byte < 8; ++byte)
    content += static_cast<char>(header.size() >> (8 * byte) & 0xff);
  return content.append(header).append(dataBytes, '\0');
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const std::string_view rest = textOf(input.subspan(1));
  tryFile(input[0] % 16 == 0 ? std::string(rest) : framed(rest, input[0]));
}

}  // namespace weft::fuzz
