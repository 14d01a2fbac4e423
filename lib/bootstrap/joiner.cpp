// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/joiner.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>
#include <thread>

#include "base/invalid.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/handshake.h"
#include "net/fd_limit.h"

namespace weft::bootstrap {
namespace {

using std::chrono::milliseconds;

// A created id's root listens before the id exists, so a refusal means that it is gone; the
// patience covers a host whose queue of connections overflowed.
constexpr milliseconds kRefusalPatience{300};
// At an agreed address the root of a job that is just ending may still answer.
constexpr milliseconds kForeignPatience{1000};
constexpr std::int64_t kFirstAttemptMs = 1000;
constexpr std::int64_t kLongestAttemptMs = 8000;
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kLongestPause{50};

}  // namespace

Status Joiner::run(std::size_t maxMessage, std::unique_ptr<net::Stream>* out,
                   std::string* rootName) {
  maxMessage_ = maxMessage;
  std::int64_t attemptMs = kFirstAttemptMs;
  for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    std::vector<Attempt> attempts;
    WEFT_TRY(prepare_(&id_.addresses, &taken_));
    for (const net::Address& address : id_.addresses) {
      attempts.push_back(tryOnce(address, Deadline::in(attemptMs).orSooner(deadline_)));
      if (attempts.back().result == Result::Joined) {
        *out = std::move(stream_);
        *rootName = rootName_;
        return {};
      }
    }
    // A round that the deadline cut short says less than the one before.
    if (!deadline_.expired() || lastFailures_.empty())
      lastFailures_ = joined(attempts, "; ", &Attempt::why);
    WEFT_TRY(hopeless(attempts));
    if (deadline_.expired()) return outOfTime();
    std::this_thread::sleep_for(std::min<Deadline::Clock::duration>(pause, deadline_.remaining()));
    attemptMs = std::min(2 * attemptMs, kLongestAttemptMs);
  }
}

Joiner::Attempt Joiner::tryOnce(const net::Address& address, Deadline limit) {
  net::Socket socket;
  int error = 0;
  const Status connected = net::connectTo(address, limit, &socket, &error);
  // Ranks that are threads of one process may have asked for room when none had taken its own yet.
  const bool raised = error == EMFILE && net::reserveFds(1).ok();
  if (net::outOfResources(error) && !raised) return {Result::Poor, connected.text()};
  if (error == ECONNREFUSED) return {Result::Refused, connected.text()};
  if (!connected.ok()) return {Result::Failed, connected.text()};
  auto stream = std::make_unique<net::Stream>(std::move(socket));
  // The root that has seen our proof misses us if we start over, however slow it is.
  Attempt attempt = prove(stream.get(), limit, deadline_);
  if (attempt.result == Result::Joined) stream_ = std::move(stream);
  attempt.why = text(address.text(), ": ", attempt.why);
  return attempt;
}

Joiner::Result Joiner::tryHub(net::Socket hub, std::size_t maxMessage, Deadline patience,
                              std::unique_ptr<net::Stream>* out) {
  maxMessage_ = maxMessage;
  *out = std::make_unique<net::Stream>(std::move(hub));
  return prove(out->get(), patience, patience).result;
}

Joiner::Attempt Joiner::prove(net::Stream* stream, Deadline limit, Deadline welcome) {
  const Status random = net::randomBytes(hello_.nonce);
  if (!random.ok()) return {Result::Failed, random.text()};
  const net::Bytes hello = encode(hello_);
  net::Message answer{};
  const Status answered = stream->ask(net::MessageType::Hello, hello, limit, &answer);
  if (!answered.ok()) return {Result::Failed, answered.text()};
  const Attempt attempt = answerChallenge(stream, hello, answer, limit);
  return attempt.result == Result::Joined ? awaitWelcome(stream, welcome) : attempt;
}

Joiner::Attempt Joiner::awaitWelcome(net::Stream* stream, Deadline limit) {
  net::Message welcome{};
  const bool answered = stream->awaitMessage(limit, &welcome).ok();
  if (answered && welcome.type == net::MessageType::Welcome) return {Result::Joined, ""};
  if (answered && welcome.type == net::MessageType::Refusal)
    return {Result::Foreign, "it refused our proof of the secret"};
  return {Result::Failed, "it closed the connection during the handshake"};
}

Joiner::Attempt Joiner::answerChallenge(net::Stream* stream, const net::Bytes& hello,
                                        const net::Message& message, Deadline limit) {
  Challenge challenge;
  if (message.type == net::MessageType::Refusal)
    return {Result::Foreign, "it serves another unique id or secret"};
  if (message.type != net::MessageType::Challenge || !decode(message.body, &challenge))
    return {Result::Failed, "it does not answer like a bootstrap root of weft"};
  if (!net::equalInConstantTime(challenge.proof, rootProof(id_.secret, hello, challenge)))
    return {Result::Foreign, "it could not prove that it holds our secret"};
  const net::Digest proof = rankProof(id_.secret, hello, message.body);
  stream->channel().send(net::MessageType::Proof, net::Bytes(proof.begin(), proof.end()));
  if (!stream->awaitFlushed(limit).ok())
    return {Result::Failed, "it closed the connection during the handshake"};
  const SessionKeys keys = sessionKeys(id_.secret, hello, message.body);
  stream->channel().secure(keys.toRoot, keys.toRank, maxMessage_);
  rootName_ = text("host ", challenge.host, ", pid ", challenge.pid);
  return {Result::Joined, ""};
}

// An error once more attempts make no sense: this process has nothing to make them with, or every
// address said no for long enough.
Status Joiner::hopeless(const std::vector<Attempt>& attempts) const {
  for (const Attempt& attempt : attempts)
    if (attempt.result == Result::Poor)
      return Status::error(Code::SystemError, "rank ", hello_.rank, ": ", attempt.why);
  const auto count = [&](Result result) {
    return std::ranges::count(attempts, result, &Attempt::result);
  };
  const auto all = std::ssize(attempts), refused = count(Result::Refused),
             foreign = count(Result::Foreign);
  const bool created = id_.origin == IdContent::Origin::Created;
  const auto waited = Deadline::Clock::now() - began_;
  // The port of a root that is gone may have become another job's.
  if (created && refused > 0 && refused + foreign == all && waited >= kRefusalPatience)
    return invalid(
        "stale unique id, created ", ageOf(id_.createdUnixSeconds, std::time(nullptr)),
        ": nobody listens at ", where(), " any more", foreign > 0 ? " but another job" : "",
        ". fix: make a new id for each "
        "communicator, and keep the process that made it alive until all ranks have joined");
  if (foreign == all && waited >= (created ? milliseconds(0) : kForeignPatience))
    return Status::error(
        {.code = Code::Authentication,
         .who = self(),
         .what = text("rank ", hello_.rank, " on host ", hostName(),
                      ": foreign unique id or secret: ", attempts.front().why, "."),
         .fix = "hand the same id, or the same WEFT_SECRET, to all ranks of a job"});
  return {};
}

Status Joiner::outOfTime() const {
  if (!taken_.empty())
    return Status::error(  // elsewhere the port may be free: it is worth another try
        {.code = Code::Timeout,
         .who = self(),
         .what = text("rank ", hello_.rank, " cannot listen at ", taken_,
                      ": another program does, which is no bootstrap root of this job: ",
                      lastFailures_, "."),
         .fix = text("choose another port, or end that program (ss -ltnp shows it)")});
  const auto ms = std::chrono::duration_cast<milliseconds>(Deadline::Clock::now() - began_).count();
  return Status::error(
      {.code = Code::Timeout,
       .who = self(),
       .what = text("rank ", hello_.rank, " could not reach the bootstrap root of its communicator",
                    " at ", where(), " within ", ms, " ms: ", lastFailures_, "."),
       .fix = "check that rank 0 was started, the address and the firewall"});
}

PeerName Joiner::self() const { return {hello_.rank, hostName(), ::getpid()}; }

std::string Joiner::where() const { return joined(id_.addresses, " or ", &net::Address::text); }

}  // namespace weft::bootstrap
