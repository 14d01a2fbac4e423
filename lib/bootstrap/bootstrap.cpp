// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/bootstrap.h"

#include <algorithm>
#include <utility>

#include "base/invalid.h"
#include "base/text.h"
#include "bootstrap/agreed_root.h"
#include "bootstrap/handshake.h"
#include "bootstrap/job.h"
#include "bootstrap/joiner.h"
#include "net/fd_limit.h"
#include "net/stream.h"

namespace weft::bootstrap {
namespace {

// The root's error at a deadline that we share with it needs a moment to reach us.
constexpr std::int64_t kGraceMs = 1000;
// Good-byes are small; a root that does not take one is dead, and its kernel tells it that we left.
constexpr std::int64_t kByeMs = 100;
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
  Joiner joiner(content, hello, deadline);
  if (content.origin == IdContent::Origin::Address && rank == 0) {
    joiner.beforeEachRound(
        [&, agreed = AgreedRoot(content, options.root)](auto* addresses, auto* taken) mutable {
          const Status started = agreed.start(addresses);
          *taken = agreed.taken();
          return started;
        });
  }
  const auto size = static_cast<std::size_t>(ranks);
  PeerName self = nameOfThisProcess(rank);  // opens files, perhaps with the last descriptor
  std::unique_ptr<net::Stream> stream;
  std::string rootName;
  WEFT_TRY(joiner.run(std::max(maxRosterBytes(size), maxPartsBytes(size)), &stream, &rootName));

  std::unique_ptr<Bootstrap> joined(new Bootstrap(std::move(stream), rank, std::move(rootName)));
  const InfoMessage info{std::move(self), std::move(configText), patienceOf(deadline)};
  net::Bytes roster;
  WEFT_TRY(joined->exchange(net::MessageType::Info, encode(info), net::MessageType::Roster, &roster,
                            deadline));
  if (!decodeRoster(roster, size, &joined->ranks_))
    return Status::error(Code::InternalError, "the bootstrap's roster does not decode");
  *out = std::move(joined);
  return {};
}

Bootstrap::Bootstrap(std::unique_ptr<net::Stream> stream, int rank, std::string rootName)
    : stream_(std::move(stream)), rank_(rank), rootName_(std::move(rootName)) {}

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
  if (!stream_)
    return Status::error(Code::InvalidUsage, "set-up round after the bootstrap was closed");
  net::Message message{};
  const Status answered = stream_->ask(type, std::move(body), withGrace(deadline), &message);
  failure_ = read(answered, message, answerType);
  *answer = std::move(message.body);
  return failure_;
}

Status Bootstrap::heard() {
  net::Message message{};
  if (!failure_.ok()) return failure_;
  const Status received = stream_->awaitMessage(Deadline::in(0), &message);
  if (received.code() == Code::Timeout) return {};
  return failure_ = read(received, message, net::MessageType::Error);
}

Status Bootstrap::read(const Status& received, const net::Message& message,
                       net::MessageType expected) const {
  if (received.code() == Code::Timeout)
    return Status::error(Code::Timeout, "rank ", rank_, " heard nothing from the bootstrap root (",
                         rootName_, ") by its deadline. fix: check that process and host");
  if (!received.ok())
    return Status::error(Code::RemoteError, "the communicator's bootstrap root (", rootName_,
                         ") died or closed: ", received.text(),
                         ". fix: see what ended that process");
  Status said;
  if (message.type == net::MessageType::Error && decode(message.body, &said)) return said;
  return message.type == expected
             ? Status()
             : Status::error(Code::InternalError, "unexpected bootstrap message");
}

// Heard or not: nobody waits for an answer.
void Bootstrap::say(net::MessageType type, net::Bytes body) {
  stream_->channel().send(type, std::move(body));
  (void)stream_->awaitFlushed(Deadline::in(kByeMs));
}

void Bootstrap::close() {
  if (!stream_) return;
  say(net::MessageType::Bye, net::Bytes());
  stream_.reset();
}

void Bootstrap::abandon(const Status& why) {
  if (stream_ && !why.ok()) say(net::MessageType::Failed, encode(why));
  close();
}

}  // namespace weft::bootstrap
