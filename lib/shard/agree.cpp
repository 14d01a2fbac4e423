// SPDX-License-Identifier: Apache-2.0
#include "shard/agree.h"

#include <cstring>
#include <vector>

#include "base/text.h"

namespace weft {
namespace {

struct Outcome {
  Code code = Code::Ok;
  char text[1000] = {};
};

Outcome outcomeOf(const Status& status) {
  Outcome outcome;
  outcome.code = status.code();
  status.text().copy(outcome.text, sizeof(outcome.text) - 1);
  return outcome;
}

}  // namespace

Status shareAll(Communicator* ranks, const void* mine, std::size_t bytes, void* all,
                int timeoutMs) {
  if (ranks == nullptr) {
    std::memcpy(all, mine, bytes);
    return {};
  }
  Call call;
  call.collective = Collective::AllGather;
  call.type = DType::U8;
  call.count = bytes;
  return ranks->run(call, mine, all, nullptr, timeoutMs, "checkpoint");
}

Status shareFrom(Communicator* ranks, std::uint32_t root, void* data, std::size_t bytes,
                 int timeoutMs) {
  if (ranks == nullptr) return {};
  Call call;
  call.collective = Collective::Broadcast;
  call.type = DType::U8;
  call.root = static_cast<int>(root);
  call.count = bytes;
  return ranks->run(call, data, data, nullptr, timeoutMs, "checkpoint");
}

Status agreeOn(Communicator* ranks, const Status& mine, int timeoutMs) {
  if (ranks == nullptr) return mine;
  const Outcome own = outcomeOf(mine);
  std::vector<Outcome> all(ranks->ranks());
  WEFT_TRY(shareAll(ranks, &own, sizeof(own), all.data(), timeoutMs));
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].code != Code::Ok)
      return Status::error(all[r].code, text("rank ", r, ": ", all[r].text));
  return {};
}

}  // namespace weft
