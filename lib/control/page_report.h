// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/bytes.h"
#include "transports/window.h"

namespace weft::control {

// An excerpt of a rank's control page for the others: what it did last, and whether it makes the
// same calls as they do.
struct PageReport {
  // The newest calls. A rank is seldom ahead of another by more than kMaxLanes calls.
  static constexpr std::size_t kCalls = 4 * transport::kMaxLanes;
  static constexpr std::size_t kMaxBytes = 20 + kCalls * 32;  // encoded

  struct Call {
    std::uint64_t seq = 0;  // 0: none, or it was being written
    std::uint64_t fingerprint = 0;
    std::uint64_t count = 0;
    std::uint64_t what = 0;
    bool operator==(const Call&) const = default;
  };

  std::uint64_t callSeq = 0;
  std::uint64_t fingerprint = 0;  // of that call, and so of all calls up to it; 0: unknown
  bool inCall = false;
  bool left = false;
  std::vector<Call> calls;  // up to that one, the oldest first; often not told
};

// While its owner goes on writing it.
PageReport readPage(const transport::ControlPage& page, bool withCalls);
// What is there of that call; number 0 if it is not any more.
PageReport::Call readCall(const transport::ControlPage& page, std::uint64_t seq);
// Makes a mirror say the same. One thread at a time, reports in their order.
void writePage(const PageReport& report, transport::ControlPage* mirror);

void encode(const PageReport::Call& call, net::ByteWriter* to);
void encode(const PageReport& report, net::ByteWriter* to);
// As from ByteReader: what they read is valid if the reader is ok() in the end.
PageReport::Call decodeCall(net::ByteReader* from);
PageReport decodePage(net::ByteReader* from);

}  // namespace weft::control
