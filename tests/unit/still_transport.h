// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "transports/transport.h"

namespace weft::test {

// A transport that has no pages and moves nothing: tests give it the part that they ask for.
class StillTransport : public Transport {
 public:
  explicit StillTransport(std::uint32_t ranks = 1) { layout_.ranks = ranks; }

  const char* name() const override { return "still"; }
  Caps caps() const override { return {}; }
  const SegmentLayout& layout() const override { return layout_; }
  SegmentView own() const override { return {}; }
  SegmentView view(std::uint32_t) const override { return {}; }
  ControlPage* control(std::uint32_t) const override { return nullptr; }
  int deathFd(std::uint32_t) const override { return -1; }
  int statFd(std::uint32_t) const override { return -1; }
  std::uint64_t share(const void*, std::size_t) const override { return 0; }
  std::byte* reach(std::uint32_t, std::uint64_t) const override { return nullptr; }
  bool fetch(std::uint32_t, std::uint64_t, void*, std::size_t) override { return false; }
  bool deposit(std::uint32_t, std::uint64_t, const void*, std::size_t) override { return false; }
  PutResult put(const Put&) override { return PutResult::Failed; }
  int poll(Event*, int) override { return 0; }
  std::size_t outstanding() const override { return 0; }
  void wake(std::uint32_t) override {}
  void sever(std::uint32_t) override {}
  const std::string& lastError() const override { return error_; }

 protected:
  SegmentLayout layout_;

 private:
  std::string error_;
};

}  // namespace weft::test
