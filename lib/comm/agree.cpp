// SPDX-License-Identifier: Apache-2.0
#include "comm/agree.h"

#include "base/text.h"
#include "transports/gather.h"

namespace weft::comm {
namespace {

struct Outcome {
  Code code = Code::Ok;
  char text[1000] = {};
};

}  // namespace

Status shareFrom(Communicator* ranks, std::uint32_t root, void* data, std::size_t bytes,
                 int timeoutMs, const char* label) {
  if (ranks == nullptr) return {};
  plan::Call call;
  call.collective = schedule::Collective::Broadcast;
  call.root = static_cast<int>(root);
  call.count = bytes;
  return ranks->run(call, data, data, nullptr, timeoutMs, label);
}

Status agreeOn(Communicator* ranks, const Status& mine, int timeoutMs, const char* label) {
  if (ranks == nullptr) return mine;
  Outcome own{mine.code()};
  mine.text().copy(own.text, sizeof(own.text) - 1);
  std::vector<Outcome> all;
  WEFT_TRY(gatherRecords(ranks, own, &all, timeoutMs, label));
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].code != Code::Ok)
      return Status::error(all[r].code, text("rank ", r, ": ", transport::fieldText(all[r].text)));
  return {};
}

}  // namespace weft::comm
