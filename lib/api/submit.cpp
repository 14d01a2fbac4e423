// SPDX-License-Identifier: Apache-2.0
#include "api/submit.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/threads.h"
#include "engine/work_stream.h"

namespace weft::api {
namespace {

using Streams = std::vector<std::shared_ptr<engine::WorkStream>>;

// An operation and where it runs: on this thread if a call of it had no stream, else on the first
// of its streams. The others wait at a barrier until it is done.
struct Pending {
  std::shared_ptr<comm::Communicator> comm;
  Streams streams;
  comm::Operation operation;
  bool onThisThread = true;
  std::uint64_t ticket = 0;
  std::shared_ptr<engine::StreamBarrier> barrier;
};

// Sends and receives of this thread, on one communicator. Most groups are nothing else.
struct Batch {
  std::shared_ptr<comm::Communicator> comm;
  std::vector<engine::PairOp> pairs;
  int timeoutMs = 0;
  std::string label;

  bool empty() const { return pairs.empty(); }
  // Its room stays, for the next one.
  void clear() {
    comm.reset();
    pairs.clear();
    label.clear();
  }
};

// And the communicator that is split.
using Creation = std::pair<std::function<Status()>, std::shared_ptr<comm::Communicator>>;

struct Group {
  std::vector<Pending> operations;
  std::vector<Creation> creations;
  Batch batch;  // the first operation, while there is no other

  // There are others.
  void unfold() {
    if (batch.empty()) return;
    Pending p;
    p.comm = batch.comm;
    p.operation.isPairs = true;
    p.operation.pairs = batch.pairs;
    p.operation.timeoutMs = batch.timeoutMs;
    p.operation.label = batch.label;
    operations.push_back(std::move(p));
    batch.clear();
  }
};

Group& group() {
  thread_local Group mine;
  return mine;
}

// Waits for what was issued before. The communicator's first error ends the wait, and so does the
// deadline, with an error for all ranks: theirs would wait for this call.
template <class AwaitUntil>
Status awaitEarlier(comm::Communicator& comm, Deadline deadline, const AwaitUntil& await) {
  constexpr int kLookForErrorMs = 20;
  while (!await(deadline.orSooner(Deadline::in(kLookForErrorMs)))) {
    if (const Status firstError = comm.end(); !firstError.ok()) return firstError;
    if (deadline.expired())
      return comm.fail(Status::error(
          {.code = Code::Timeout,
           .who = comm.me(),
           .what = text("{who}: a call on communicator ", comm.name(),
                        " timed out before its turn: those issued before it, or its streams, "
                        "are not done"),
           .fix = "find out what holds up the earlier calls, or raise WEFT_TIMEOUT_MS"}));
  }
  return {};
}

Status awaitTurn(comm::Communicator& comm, std::uint64_t ticket, Deadline deadline) {
  return awaitEarlier(comm, deadline,
                      [&](Deadline until) { return comm.turns().await(ticket, until); });
}

Status takeTicket(comm::Communicator& comm, std::uint64_t* ticket) {
  if (!comm.turns().beginIssue()) return refusal(comm);
  *ticket = comm.turns().take();
  comm.turns().endIssue();
  return {};
}

// One deadline for the wait and for the call.
Status runWhenAwaited(Pending& p) {
  const Deadline deadline = Deadline::in(p.operation.timeoutMs);
  WEFT_TRY(awaitTurn(*p.comm, p.ticket, deadline));
  if (p.barrier)
    WEFT_TRY(awaitEarlier(*p.comm, deadline,
                          [&](Deadline until) { return p.barrier->awaitStreams(until); }));
  p.operation.timeoutMs = deadline.pollTimeoutMs();
  return p.comm->run(p.operation);
}

Status runPending(Pending& p) {
  const Status status = failingAll(*p.comm, [&] { return runWhenAwaited(p); });
  p.comm->turns().done(p.ticket);
  if (p.barrier) p.barrier->open(status);
  return status;
}

// Queues what streams have to do with the operation. Returns it if this thread must run it.
std::shared_ptr<Pending> enqueue(Pending p) {
  const Streams streams = std::exchange(p.streams, {});  // a stream must not own itself
  const auto held = std::make_shared<Pending>(std::move(p));
  const std::size_t waiting = streams.size() - (held->onThisThread ? 0 : 1);
  if (waiting != 0) held->barrier = std::make_shared<engine::StreamBarrier>(waiting);
  std::vector<std::pair<engine::WorkStream*, engine::WorkStream::Work>> pieces;
  for (const auto& stream : streams)
    pieces.emplace_back(stream.get(), [at = held->barrier] { return at->pass(); });
  if (!held->onThisThread) pieces.front().second = [held] { return runPending(*held); };
  engine::WorkStream::enqueueTogether(std::move(pieces));
  return held->onThisThread ? held : nullptr;
}

void append(Pending& batch, const Pending& p) {
  batch.operation.pairs.insert(batch.operation.pairs.end(), p.operation.pairs.begin(),
                               p.operation.pairs.end());
  batch.onThisThread = batch.onThisThread || p.onThisThread;
  for (const auto& stream : p.streams)
    if (std::ranges::find(batch.streams, stream) == batch.streams.end())
      batch.streams.push_back(stream);
}

// Sends and receives of one communicator become one batch, where the first of them stands: as two,
// on two streams, one would wait for the other's peer, and a pair's messages could change places.
// In place, so that an exception loses no operation's communicator.
void mergePairs(std::vector<Pending>* pending) {
  std::map<comm::Communicator*, std::size_t> batches;
  std::size_t kept = 0;
  for (Pending& p : *pending) {
    const auto [at, first] = p.operation.isPairs ? batches.try_emplace(p.comm.get(), kept)
                                                 : std::pair(batches.end(), true);
    if (!first)
      append((*pending)[at->second], p);
    else if (Pending& place = (*pending)[kept++]; &place != &p)
      place = std::move(p);
  }
  pending->resize(kept);
}

// *began: one of them has, so all will.
Status inParallel(std::size_t n, const std::function<Status(std::size_t)>& job, bool* began) {
  const auto run = [&](std::size_t i) {
    std::atomic_ref(*began).store(true);
    return job(i);
  };
  return n == 0 ? Status() : n == 1 ? run(0) : onThreads(n, run);
}

// Tickets that were taken together. One that is never used would block its communicator.
struct Tickets {
  std::vector<std::pair<std::shared_ptr<comm::Communicator>, std::uint64_t>> taken;

  // Nobody will use them, or so it may be: that is the end of their communicators.
  void abandon(const Status& why) {
    for (const auto& [comm, ticket] : taken) {
      (void)comm->fail(why);
      comm->turns().done(ticket);
    }
  }
};

// Operations of a group that this thread runs, in their order, by communicator.
using Direct = std::map<comm::Communicator*, std::vector<std::shared_ptr<Pending>>>;

// Streams that wait for them go on.
void abandon(const Direct& direct, const Status& why) {
  for (const auto& [comm, operations] : direct)
    for (const auto& p : operations)
      if (p->barrier) p->barrier->open(why);
}

// Communicators on which this thread is issuing.
struct Issuing {
  std::vector<comm::Communicator*> comms;
  ~Issuing() {
    for (comm::Communicator* comm : comms) comm->turns().endIssue();
  }
};

// All or none.
Status takeTickets(std::vector<Pending>& pending, Tickets* tickets) {
  Issuing issuing;
  issuing.comms.reserve(pending.size());
  tickets->taken.reserve(pending.size());
  for (const Pending& p : pending) {
    comm::Communicator* const comm = p.comm.get();
    if (std::ranges::find(issuing.comms, comm) != issuing.comms.end()) continue;
    if (!comm->turns().beginIssue()) return refusal(*comm);
    issuing.comms.push_back(comm);
  }
  for (Pending& p : pending) {
    p.ticket = p.comm->turns().take();
    tickets->taken.emplace_back(p.comm, p.ticket);
  }
  return {};
}

// Queues what streams do; the rest is *direct.
void distribute(std::vector<Pending> pending, Direct* direct) {
  for (const Pending& p : pending)
    if (p.onThisThread) (*direct)[p.comm.get()].reserve(pending.size());
  for (Pending& p : pending) {
    comm::Communicator* const comm = p.comm.get();
    if (auto mine = enqueue(std::move(p))) (*direct)[comm].push_back(std::move(mine));
  }
}

// Communicators run side by side: with several ranks in one thread, each waits for the others.
Status runDirect(const Direct& direct, bool* began) {
  const auto run = [&](std::size_t i) {
    Status first;
    for (const auto& p : std::next(direct.begin(), static_cast<std::ptrdiff_t>(i))->second) {
      const Status status = runPending(*p);
      if (first.ok()) first = status;
    }
    return first;
  };
  return inParallel(direct.size(), run, began);
}

Status runTicketed(std::vector<Pending> pending, Tickets& tickets) {
  Direct direct;
  bool began = false;
  const Status status = withoutExceptions([&] {
    distribute(std::move(pending), &direct);
    return runDirect(direct, &began);
  });
  if (!began && !status.ok()) {  // no memory, or no threads
    tickets.abandon(status);
    abandon(direct, status);
  }
  return status;
}

Status runBatch(Batch* batch) {
  const Status ran = runPairsNow(*batch->comm, batch->pairs, batch->timeoutMs,
                                 batch->label.empty() ? nullptr : batch->label.c_str());
  batch->clear();
  return ran;
}

Status runGroup(std::vector<Pending> pending) {
  Tickets tickets;
  try {
    mergePairs(&pending);
    WEFT_TRY(takeTickets(pending, &tickets));
  } catch (...) {
    const Status status = statusOfException();
    for (const Pending& p : pending)
      if (p.comm) (void)p.comm->fail(status);
    return status;
  }
  return runTicketed(std::move(pending), tickets);
}

Status createAll(const std::vector<Creation>& creations) {
  if (creations.empty()) return {};
  bool began = false;
  const auto create = [&](std::size_t i) {
    const auto& [make, parent] = creations[i];
    return parent ? failingAll(*parent, make) : make();
  };
  const auto run = [&] { return inParallel(creations.size(), create, &began); };
  Status status = withoutExceptions(run);
  if (!began) status = withoutExceptions(run);  // as tryingTwice
  for (const auto& [make, parent] : creations)
    if (!began && parent) (void)parent->fail(status);
  return status;
}

}  // namespace

constinit thread_local int groupDepth = 0;

Status refusal(comm::Communicator& comm) {
  return Status::error(Code::InvalidUsage, "communicator ", comm.name(), " rank ", comm.rank(),
                       comm.turns().isClosed()
                           ? " is being destroyed; fix: make no calls meanwhile"
                           : " is used by two threads at once; fix: one thread at a time");
}

Status groupStart() {
  ++groupDepth;
  return {};
}

Status groupEnd() {
  if (groupDepth == 0)
    return Status::error(Code::InvalidUsage, "weftGroupEnd without weftGroupStart on this thread");
  if (--groupDepth > 0) return {};
  Group& open = group();
  const Status status = createAll(std::exchange(open.creations, {}));
  const Status ran =
      open.batch.empty() ? runGroup(std::exchange(open.operations, {})) : runBatch(&open.batch);
  return status.ok() ? ran : status;
}

Status awaitOwnTurn(comm::Communicator& comm, const OwnTurn& turn, int* timeoutMs) {
  const Deadline deadline = Deadline::in(*timeoutMs);
  WEFT_TRY(failingAll(comm, [&] { return awaitTurn(comm, turn.ticket(), deadline); }));
  *timeoutMs = deadline.pollTimeoutMs();
  return {};
}

Status runInTurn(comm::Communicator& comm, const std::function<Status()>& call) {
  std::uint64_t ticket = 0;
  WEFT_TRY(takeTicket(comm, &ticket));
  const Status status = failingAll(comm, [&]() -> Status {
    WEFT_TRY(awaitTurn(comm, ticket, Deadline::in(comm.config().timeoutMs)));
    return call();
  });
  comm.turns().done(ticket);
  return status;
}

Status submit(std::shared_ptr<comm::Communicator> comm, std::shared_ptr<engine::WorkStream> stream,
              comm::Operation operation) {
  Pending p;
  p.comm = std::move(comm);
  p.operation = std::move(operation);
  p.onThisThread = stream == nullptr;
  if (stream) p.streams.push_back(std::move(stream));
  if (inGroup()) {
    group().unfold();
    group().operations.push_back(std::move(p));
    return {};
  }
  if (p.onThisThread) {
    WEFT_TRY(takeTicket(*p.comm, &p.ticket));
    return runPending(p);
  }
  std::vector<Pending> alone;
  alone.push_back(std::move(p));
  return runGroup(std::move(alone));
}

bool joinBatch(const std::shared_ptr<comm::Communicator>& comm, const engine::PairOp& pair,
               int timeoutMs, const char* label) {
  Batch& batch = group().batch;
  if (batch.empty() ? !group().operations.empty() : batch.comm != comm) return false;
  if (batch.empty()) {
    batch.comm = comm;
    batch.timeoutMs = timeoutMs;
    batch.label = label != nullptr ? label : "";
  }
  batch.pairs.push_back(pair);
  return true;
}

Status runPairsNow(comm::Communicator& comm, std::span<const engine::PairOp> pairs, int timeoutMs,
                   const char* label) {
  if (!comm.turns().beginIssue()) return refusal(comm);
  const OwnTurn turn(comm.turns());
  if (!turn.hasCome()) WEFT_TRY(awaitOwnTurn(comm, turn, &timeoutMs));
  return comm.runPairs(pairs, timeoutMs, label);
}

Status submitCreation(std::function<Status()> create, std::shared_ptr<comm::Communicator> parent) {
  if (!inGroup()) return create();
  return tryingTwice([&]() -> Status {
    group().creations.emplace_back(std::move(create), std::move(parent));
    return {};
  });
}

}  // namespace weft::api
