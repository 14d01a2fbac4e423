// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "watch/remote_ranks.h"

namespace weft::watch {

// A control link on which nothing happens: tests give it the part that they ask for.
class NobodyRemote : public RemoteRanks {
 public:
  transport::FirstError& firstError() override { return first_; }
  void propose(const Status&) override {}
  void refresh(std::chrono::milliseconds) override {}
  Status ended(std::uint32_t) const override { return {}; }
  std::chrono::milliseconds silence(std::uint32_t) const override { return {}; }
  Status gather(std::span<const std::byte>, std::vector<std::vector<std::byte>>*,
                Deadline) override {
    return {};
  }
  Status overruled() const override { return {}; }
  void leave() override {}

 private:
  transport::FirstError first_;
};

}  // namespace weft::watch
