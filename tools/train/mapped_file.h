// SPDX-License-Identifier: Apache-2.0
// A file's bytes, mapped and not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weft::train {

class MappedFile {
 public:
  // Throws Failure if it cannot be read.
  explicit MappedFile(const std::string& file);

  std::span<const uint8_t> bytes() const { return {memory_.get(), memory_.get_deleter().bytes}; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(memory_.get()), memory_.get_deleter().bytes};
  }

 private:
  struct Unmap {
    size_t bytes;
    void operator()(const uint8_t* memory) const;
  };
  std::unique_ptr<const uint8_t, Unmap> memory_{nullptr, Unmap{0}};
};

}  // namespace weft::train
