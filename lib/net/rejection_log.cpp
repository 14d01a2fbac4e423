// SPDX-License-Identifier: Apache-2.0
#include "net/rejection_log.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"

namespace weft::net {
namespace {

// The first bytes as readable text.
std::string excerpt(ByteView bytes) {
  std::string shown;
  for (std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 16))) {
    const char c = static_cast<char>(byte);
    shown += c >= 0x20 && c < 0x7f ? c : '.';
  }
  return shown;
}

}  // namespace

void RejectionLog::note(const Address& peer, ByteView said, std::string_view why) {
  if (count_++ == 0) first_ = text(peer.text(), ": \"", excerpt(said), "\": ", why);
  if (next_.expired()) report();
}

void RejectionLog::report() {
  if (count_ > 0) logInfo("ignored ", count_, " foreign connections (first ", first_, ')');
  count_ = 0;
  next_ = Deadline::in(60000);
}

}  // namespace weft::net
