// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/flow.h"
#include "formats/form.h"

namespace weft::formats {

// What the buffers of one rank hold while a foreign schedule is read: of each chunk the value, and
// the line that stored it.
class Contents {
 public:
  enum class Buffer : std::uint8_t { Input, Output, Scratch };
  struct Chunk {
    static constexpr Flow::Value kNothing = ~0u;
    Flow::Value value = kNothing;
    std::size_t line = 0;
    bool isThere() const { return value != kNothing; }
  };

  // In place, input and output are one buffer, where the collective has them.
  Contents(const Flow& flow, std::uint32_t rank, std::uint32_t scratchChunks, bool inPlace,
           std::size_t line)
      : form_(flow.form()), rank_(rank), inPlace_(inPlace), line_(line), scratch_(scratchChunks) {
    input_.resize(inPlace ? form_.chunks : form_.inChunks());
    output_.resize(inPlace ? 0 : form_.outChunks());
    for (std::uint32_t slot = 0; slot < form_.inChunks(); ++slot)
      at(Buffer::Input, slot).value = flow.input(rank, slot);
  }

  static std::string_view nameOf(Buffer buffer) {
    return buffer == Buffer::Input ? "i" : buffer == Buffer::Output ? "o" : "s";
  }

  std::uint32_t size(Buffer buffer) const {
    if (buffer == Buffer::Scratch) return static_cast<std::uint32_t>(scratch_.size());
    return buffer == Buffer::Input ? form_.inChunks() : form_.outChunks();
  }

  std::size_t line() const { return line_; }  // where the rank is described

  Chunk& at(Buffer buffer, std::uint32_t offset) {
    if (buffer == Buffer::Scratch) return scratch_[offset];
    if (!inPlace_) return buffer == Buffer::Input ? input_[offset] : output_[offset];
    const bool isBlock = buffer == Buffer::Input ? schedule::hasOneIn(form_.collective)
                                                 : schedule::hasOneOut(form_.collective);
    return input_[isBlock ? rank_ * form_.parts + offset : offset];
  }

 private:
  const Form& form_;
  const std::uint32_t rank_;
  const bool inPlace_;
  const std::size_t line_;
  std::vector<Chunk> input_, output_, scratch_;
};

}  // namespace weft::formats
