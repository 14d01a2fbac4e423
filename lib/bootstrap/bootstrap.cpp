// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/bootstrap.h"

#include <algorithm>
#include <utility>

#include "base/invalid.h"
#include "base/text.h"
#include "bootstrap/approach.h"
#include "bootstrap/handshake.h"
#include "bootstrap/job.h"
#include "net/fd_limit.h"

namespace weft::bootstrap {
namespace {

// The root's error at a deadline that we share with it needs a moment to reach us.
constexpr std::int64_t kGraceMs = 1000;
// Without a connection nobody can be told what is wrong; with one, everybody will be.
constexpr std::uint64_t kJoinFds = 1;

Status checkArguments(int ranks, int rank, std::size_t configBytes) {
  if (ranks < 1 || ranks > kMaxRanks)
    return invalid("world size ", ranks, " is not from 1 to ", kMaxRanks);
  if (rank < 0) return invalid("rank ", rank, " is negative");
  if (configBytes > kMaxConfigBytes)
    return invalid("configuration of ", configBytes, " bytes is over the limit of ",
                   kMaxConfigBytes);
  return {};
}

std::int64_t patienceOf(Deadline deadline) { return deadline.pollTimeoutMs(); }

Deadline withGrace(Deadline deadline) { return Deadline::in(patienceOf(deadline) + kGraceMs); }

}  // namespace

Status Bootstrap::join(const UniqueId& id, int ranks, int rank, std::string configText,
                       Deadline deadline, std::unique_ptr<Bootstrap>* out,
                       const JoinOptions& options) {
  WEFT_TRY(checkArguments(ranks, rank, configText.size()));
  IdContent content;
  WEFT_TRY(decodeId(id, &content));
  WEFT_TRY(checkSameJob(content));
  WEFT_TRY(net::reserveFds(kJoinFds));

  const Hello hello{{}, idTag(content.secret), rank, ranks, options.wire, options.version};
  PeerName self = nameOfThisProcess(rank);  // opens files, perhaps with the last descriptor
  Approach approach(content, hello, self, deadline, options);
  std::unique_ptr<Bootstrap> joined(new Bootstrap());
  net::Bytes roster;
  WEFT_TRY(approach.find(&joined->line_));
  WEFT_TRY(joined->meet(approach, {std::move(self), std::move(configText)}, deadline, &roster));
  if (!decodeRoster(roster, static_cast<std::size_t>(ranks), &joined->ranks_))
    return Status::error(Code::InternalError, "the bootstrap's roster does not decode");
  *out = std::move(joined);
  return {};
}

// A rank that loses its hub meanwhile goes on without. But once the hub has brought the last, the
// root closes to all who come by themselves, also to who has just been let in: then only the hub can
// tell, however long it waits for a core.
Status Bootstrap::meet(Approach& approach, InfoMessage info, Deadline deadline,
                       net::Bytes* roster) {
  const auto introduce = [&] {
    info.patienceMs = patienceOf(deadline);
    return exchange(net::MessageType::Info, encode(info), net::MessageType::Roster, roster,
                    deadline);
  };
  const Status met = introduce();
  if (!line_.lostItsHub()) return met;
  Line hub = std::exchange(line_, {});
  Status returned = approach.findAgain(&line_);
  if (returned.ok()) {
    failure_ = {};
    info.returns = true;
    returned = introduce();
    if (!line_.isCut()) return returned;
  }
  line_ = std::move(hub);
  if (!line_.namesItsHub()) return returned;
  if (!line_.hubIsSilent()) return met;
  return failure_ = line_.waitOn(net::MessageType::Roster, withGrace(deadline), roster);
}

Bootstrap::~Bootstrap() { close(); }

Status Bootstrap::allGather(std::span<const std::byte> mine,
                            std::vector<std::vector<std::byte>>* all, Deadline deadline) {
  if (mine.size() > kMaxPartBytes)
    return invalid("part of ", mine.size(), " bytes in a set-up round; the limit is ",
                   kMaxPartBytes);
  GatherMessage message{round_, patienceOf(deadline), net::Bytes(mine.begin(), mine.end())};
  net::Bytes table;
  WEFT_TRY(exchange(net::MessageType::Gather, encode(message), net::MessageType::Gathered, &table,
                    deadline));
  ++round_;
  if (!decodeParts(table, ranks_.size(), all))
    return failure_ = Status::error(Code::InternalError, "the bootstrap's table does not decode");
  return {};
}

Status Bootstrap::exchange(net::MessageType type, net::Bytes body, net::MessageType answerType,
                           net::Bytes* answer, Deadline deadline) {
  if (!failure_.ok()) return failure_;
  if (!line_)
    return Status::error(Code::InvalidUsage, "set-up round after the bootstrap was closed");
  return failure_ = line_.ask(type, std::move(body), answerType, withGrace(deadline), answer);
}

Status Bootstrap::heard() {
  if (failure_.ok() && line_) failure_ = line_.heard();
  return failure_;
}

void Bootstrap::close() {
  if (line_) line_.say(net::MessageType::Bye, net::Bytes());
  line_ = {};
}

void Bootstrap::abandon(const Status& why) {
  if (line_ && !why.ok()) line_.say(net::MessageType::Failed, encode(why));
  close();
}

}  // namespace weft::bootstrap
