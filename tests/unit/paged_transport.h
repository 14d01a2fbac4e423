// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>
#include <vector>

#include "tests/unit/still_transport.h"

namespace weft::test {

// Has a window of that layout, whose control page is that of all ranks: peers have completed what this one has.
class PagedTransport : public StillTransport {
 public:
  explicit PagedTransport(const transport::WindowLayout& layout) : StillTransport(layout.ranks) {
    layout_ = layout;
    window_.resize(layout_.size() / sizeof(Page));
    new (window_.data()) transport::ControlPage;
  }

  transport::WindowView own() const override { return {base(), layout_}; }
  transport::ControlPage* control(std::uint32_t) const override { return &own().control(); }

 private:
  struct alignas(transport::kPage) Page {
    std::byte bytes[transport::kPage];
  };
  std::byte* base() const { return const_cast<std::byte*>(window_[0].bytes); }

  std::vector<Page> window_;
};

}  // namespace weft::test
