// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "transports/transport.h"

namespace weft::test {

// A transport that has no pages and moves nothing: tests give it the part that they ask for.
class StillTransport : public transport::Transport {
 public:
  explicit StillTransport(std::uint32_t ranks = 1) { layout_.ranks = ranks; }

  const char* name() const override { return "still"; }
  transport::Caps caps() const override { return {}; }
  const transport::WindowLayout& layout() const override { return layout_; }
  transport::WindowView own() const override { return {}; }
  transport::WindowView view(std::uint32_t) const override { return {}; }
  transport::ControlPage* control(std::uint32_t) const override { return nullptr; }
  int deathFd(std::uint32_t) const override { return -1; }
  int statFd(std::uint32_t) const override { return -1; }
  std::uint64_t share(const void*, std::size_t) const override { return 0; }
  std::byte* reach(std::uint32_t, std::uint64_t) const override { return nullptr; }
  bool getFrom(std::uint32_t, std::uint64_t, void*, std::size_t) override { return false; }
  bool putTo(std::uint32_t, std::uint64_t, const void*, std::size_t) override { return false; }
  transport::PutResult put(const transport::Put&) override { return transport::PutResult::Failed; }
  int poll(transport::Event*, int) override { return 0; }
  std::size_t outstanding() const override { return 0; }
  void wake(std::uint32_t) override {}
  void sever(std::uint32_t) override {}
  const Status& lastError() const override { return error_; }

 protected:
  transport::WindowLayout layout_;

 private:
  Status error_;
};

}  // namespace weft::test
