// SPDX-License-Identifier: Apache-2.0
// Before anything is connected: does every edge carry bytes?
#include <sched.h>

#include <algorithm>

#include "base/text.h"
#include "transports/verbs/verbs_wire.h"

namespace weft::verbs {
namespace {

constexpr int kPingEveryMs = 20;  // what is not answered

}  // namespace

// Those above this rank first, so that not all begin with the same.
std::uint32_t VerbsWire::ping(Deadline deadline, bool wholly) {
  const auto above =
      std::ranges::partition_point(rails_, [&](const Rail& rail) { return rail.way.peer < rank_; });
  const auto first = static_cast<std::size_t>(above - rails_.begin());
  for (Deadline next = Deadline::in(0); !deadline.expired() && !isAnyDown();) {
    if (next.expired()) {
      next = Deadline::in(kPingEveryMs);
      for (std::size_t i = 0; i < rails_.size(); ++i) {
        const Rail& rail = rails_[(first + i) % rails_.size()];
        if (!rail.answered) send(rail.way.edge, {.kind = Word::Ping});
        readMail();
      }
    }
    if (!wholly && silent_ == 0) break;
    if (!readMail()) ::sched_yield();
    lookAround();
  }
  return silent_;
}

std::vector<std::uint32_t> VerbsWire::silentPeers() const {
  std::vector<std::uint32_t> peers;
  for (const Rail& rail : rails_)
    if (rail.silent() || links_[rail.way.peer].down()) peers.push_back(rail.way.peer);
  return peers;
}

Status VerbsWire::silence(Code code) const {
  const auto isWrong = [&](const Rail& rail) {
    return anyDown_ ? links_[rail.way.peer].down() : rail.silent();
  };
  const auto wrong = std::ranges::find_if(rails_, isWrong);
  if (wrong == rails_.end()) return {};
  const Way& way = wrong->way;
  const Link& link = links_[way.peer];
  const std::string why = link.down()                        ? link.error.message()
                          : wrong->pinged || wrong->answered ? "what was sent is not answered"
                                                             : "nothing has come over it";
  return Status::error({.code = code,
                        .who = names_[way.peer],
                        .device = way.port().info.device,
                        .port = way.port().number,
                        .what = text("verbs: the edge between ", names_[rank_], " and {who} (",
                                     way.route(), ") does not carry bytes: ", why)});
}

}  // namespace weft::verbs
