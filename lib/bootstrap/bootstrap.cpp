// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/bootstrap.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "bootstrap/agreed_root.h"
#include "bootstrap/fd_limit.h"
#include "bootstrap/handshake.h"
#include "bootstrap/job.h"
#include "bootstrap/joiner.h"
#include "bootstrap/stream.h"

namespace weft {
namespace {

constexpr int kMaxRanks = 1 << 20;
// The root's verdict at a deadline that we share with it needs a moment to reach us.
constexpr std::int64_t kGraceMs = 1000;
// Good-byes are small; a root that does not take one is dead, and its kernel tells it that we left.
constexpr std::int64_t kByeMs = 100;
// Without a connection nobody can be told what is wrong; with one, everybody will be.
constexpr std::uint64_t kJoinFds = 1;

Status checkArguments(int ranks, int rank, std::size_t configBytes, std::size_t blobBytes) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return Status::error(Code::InvalidArgument,
                         text("world size ", ranks, " is not from 1 to ", kMaxRanks));
  }
  if (rank < 0) return Status::error(Code::InvalidArgument, text("rank ", rank, " is negative"));
  if (configBytes > kMaxConfigBytes || blobBytes > kMaxBlobBytes) {
    return Status::error(Code::InvalidArgument,
                         text("configuration of ", configBytes, " or blob of ", blobBytes,
                              " bytes is over the limit of ", kMaxBlobBytes));
  }
  return {};
}

std::int64_t patienceOf(Deadline deadline) { return deadline.pollTimeoutMs(); }

Deadline withGrace(Deadline deadline) { return Deadline::in(patienceOf(deadline) + kGraceMs); }

}  // namespace

Status Bootstrap::join(const UniqueId& id, int ranks, int rank, std::string configText,
                       std::span<const std::byte> blob, Deadline deadline,
                       std::unique_ptr<Bootstrap>* out, const JoinOptions& options) {
  WEFT_TRY(checkArguments(ranks, rank, configText.size(), blob.size()));
  IdContent content;
  WEFT_TRY(decodeId(id, &content));
  WEFT_TRY(checkSameJob(content));
  WEFT_TRY(reserveFds(kJoinFds));

  const Hello hello{{}, idTag(content.secret), rank, ranks, options.wire, options.version};
  Joiner joiner(content, hello, deadline);
  if (content.origin == IdContent::Origin::Address && rank == 0) {
    joiner.beforeEachRound([&, agreed = AgreedRoot(content, options.root)](
                               auto* addresses) mutable { return agreed.start(addresses); });
  }
  const std::size_t maxMessage = std::max(maxRosterBytes(static_cast<std::size_t>(ranks)),
                                          maxPartsBytes(static_cast<std::size_t>(ranks)));
  RankCard card = cardOfThisProcess();  // opens files, perhaps with the last descriptor
  std::unique_ptr<Stream> stream;
  std::string rootName;
  WEFT_TRY(joiner.run(maxMessage, &stream, &rootName));

  card.rank = rank;
  card.configText = std::move(configText);
  card.blob.assign(blob.begin(), blob.end());
  std::unique_ptr<Bootstrap> joined(new Bootstrap(std::move(stream), rank, std::move(rootName)));
  WEFT_TRY(joined->introduce(std::move(card), ranks, deadline));
  *out = std::move(joined);
  return {};
}

Bootstrap::Bootstrap(std::unique_ptr<Stream> stream, int rank, std::string rootName)
    : stream_(std::move(stream)), rank_(rank), rootName_(std::move(rootName)) {}

Bootstrap::~Bootstrap() { close(); }

Status Bootstrap::introduce(RankCard card, int ranks, Deadline deadline) {
  const std::string configText = card.configText;
  const std::string version = card.version;
  Bytes roster;
  WEFT_TRY(exchange(MessageType::Card, encode(CardMessage{std::move(card), patienceOf(deadline)}),
                    MessageType::Roster, &roster, deadline));
  if (!decodeRoster(roster, static_cast<std::size_t>(ranks), &ranks_)) {
    return failure_ = Status::error(Code::InternalError, "the bootstrap's roster does not decode");
  }
  for (RankCard& each : ranks_) {  // equal everywhere, or there were no roster
    each.configText = configText;
    each.version = version;
  }
  return {};
}

Status Bootstrap::allGather(std::span<const std::byte> mine,
                            std::vector<std::vector<std::byte>>* all, Deadline deadline) {
  if (mine.size() > kMaxPartBytes) {
    return Status::error(
        Code::InvalidArgument,
        text("part of ", mine.size(), " bytes in a set-up round; the limit is ", kMaxPartBytes));
  }
  GatherMessage message{round_, patienceOf(deadline), Bytes(mine.begin(), mine.end())};
  Bytes table;
  WEFT_TRY(exchange(MessageType::Gather, encode(message), MessageType::Gathered, &table, deadline));
  ++round_;
  if (!decodeParts(table, ranks_.size(), all)) {
    return failure_ = Status::error(Code::InternalError, "the bootstrap's table does not decode");
  }
  return {};
}

Status Bootstrap::exchange(MessageType type, Bytes body, MessageType answerType, Bytes* answer,
                           Deadline deadline) {
  if (!failure_.ok()) return failure_;
  if (!stream_)
    return Status::error(Code::InvalidUsage, "set-up round after the bootstrap was closed");
  stream_->channel().send(type, std::move(body));
  failure_ = receive(answerType, answer, withGrace(deadline));
  return failure_;
}

Status Bootstrap::receive(MessageType wanted, Bytes* body, Deadline deadline) {
  Message message{};
  Status error;
  // A connection that takes nothing more may still hold the verdict that explains it: always read.
  (void)awaitFlushed(stream_.get(), deadline, &error);
  if (!awaitMessage(stream_.get(), deadline, &message, &error)) {
    if (error.ok()) {
      return Status::error(
          Code::Timeout, text("rank ", rank_, " heard nothing from the meeting point (", rootName_,
                              ") by its deadline. fix: check that process and host"));
    }
    return Status::error(Code::RemoteError, text("the communicator's meeting point (", rootName_,
                                                 ") died or closed: ", error.text(),
                                                 ". fix: see what ended that process"));
  }
  Status verdict;
  if (message.type == MessageType::Verdict && decode(message.body, &verdict)) return verdict;
  if (message.type != wanted)
    return Status::error(Code::InternalError, "unexpected bootstrap message");
  *body = std::move(message.body);
  return {};
}

void Bootstrap::close() {
  if (!stream_) return;
  Status ignored;
  stream_->channel().send(MessageType::Bye, Bytes());
  (void)awaitFlushed(stream_.get(), Deadline::in(kByeMs), &ignored);
  stream_.reset();
}

void Bootstrap::abandon(const Status& why) {
  if (!stream_ || why.ok()) return close();
  Status ignored;
  stream_->channel().send(MessageType::Failed, encode(why));
  (void)awaitFlushed(stream_.get(), Deadline::in(kByeMs), &ignored);
  close();
}

}  // namespace weft
