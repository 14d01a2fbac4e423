// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "net/bytes.h"
#include "transports/window.h"

namespace weft::control {

// An excerpt of a rank's control page for the others: what it did last, and whether it makes the
// same calls as they do.
struct PageReport {
  // The newest calls, oldest first. A rank is seldom ahead of another by more than kMaxLanes calls.
  static constexpr std::size_t kCalls = 4 * transport::kMaxLanes;
  static constexpr std::size_t kMaxBytes = 12 + kCalls * 32;  // encoded

  struct Call {
    std::uint64_t seq = 0;  // 0: none, or it was being written
    std::uint64_t fingerprint = 0;
    std::uint64_t count = 0;
    std::uint64_t what = 0;
  };

  std::uint64_t callSeq = 0;
  bool inCall = false;
  bool left = false;
  std::array<Call, kCalls> calls;
};

// While its owner goes on writing it.
PageReport readPage(const transport::ControlPage& page);
// Makes a mirror say the same. One thread at a time, reports in their order.
void writePage(const PageReport& report, transport::ControlPage* mirror);

void encode(const PageReport& report, net::ByteWriter* to);
// As from ByteReader: what it read is valid if the reader is ok() in the end.
PageReport decodePage(net::ByteReader* from);

}  // namespace weft::control
