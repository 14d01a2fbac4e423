// SPDX-License-Identifier: Apache-2.0
#include "api/submit.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/threads.h"
#include "engine/junction.h"

namespace weft {
namespace {

using Streams = std::vector<std::shared_ptr<WorkStream>>;

// An operation and where it runs: on this thread if a call of it had no stream, else on the first
// of its streams. The others wait at the junction until it is done.
struct Pending {
  std::shared_ptr<Communicator> comm;
  Streams streams;
  Operation operation;
  bool onThisThread = true;
  std::uint64_t ticket = 0;
  std::shared_ptr<Junction> junction;
};

struct Group {
  std::vector<Pending> operations;
  std::vector<std::function<Status()>> creations;
};

Group& group() {
  thread_local Group mine;
  return mine;
}

Status usedByTwoThreads(const Communicator& comm) {
  return Status::error(Code::InvalidUsage,
                       text("communicator ", comm.name(), " rank ", comm.rank(),
                            " is used by two threads at once; fix: one thread at a time"));
}

constexpr int kLookForVerdictMs = 20;

// What was issued before has deadlines of its own; this one's starts when they are through. A
// verdict ends the wait: calls that were issued before may be held up by the application.
Status awaitTurn(Communicator& comm, std::uint64_t ticket) {
  while (!comm.turns().await(ticket, Deadline::in(kLookForVerdictMs))) {
    if (const Status verdict = comm.end(); !verdict.ok()) return verdict;
  }
  return {};
}

Status takeTicket(Communicator& comm, std::uint64_t* ticket) {
  if (!comm.turns().beginIssue()) return usedByTwoThreads(comm);
  *ticket = comm.turns().take();
  comm.turns().endIssue();
  return {};
}

// The same for what was queued on the operation's streams.
Status awaitStreams(Communicator& comm, Junction& junction) {
  while (!junction.awaitStreams(Deadline::in(kLookForVerdictMs))) {
    if (const Status verdict = comm.end(); !verdict.ok()) return verdict;
  }
  return {};
}

Status runInTurn(const Pending& p) {
  Status status = awaitTurn(*p.comm, p.ticket);
  if (status.ok() && p.junction) status = awaitStreams(*p.comm, *p.junction);
  if (status.ok()) status = p.comm->run(p.operation);
  p.comm->turns().done(p.ticket);
  if (p.junction) p.junction->open(status);
  return status;
}

// Queues what streams have to do with the operation. Returns it if this thread must run it.
std::shared_ptr<Pending> enqueue(Pending p) {
  const Streams streams = std::exchange(p.streams, {});  // a stream must not own itself
  const auto held = std::make_shared<Pending>(std::move(p));
  const std::size_t waiting = streams.size() - (held->onThisThread ? 0 : 1);
  if (waiting != 0) held->junction = std::make_shared<Junction>(waiting);
  std::vector<std::pair<WorkStream*, WorkStream::Work>> pieces;
  for (const auto& stream : streams)
    pieces.emplace_back(stream.get(), [at = held->junction] { return at->pass(); });
  if (!held->onThisThread) pieces.front().second = [held] { return runInTurn(*held); };
  WorkStream::enqueueTogether(std::move(pieces));
  return held->onThisThread ? held : nullptr;
}

void append(Pending& batch, const Pending& p) {
  batch.operation.pairs.insert(batch.operation.pairs.end(), p.operation.pairs.begin(),
                               p.operation.pairs.end());
  batch.onThisThread = batch.onThisThread || p.onThisThread;
  for (const auto& stream : p.streams) {
    if (std::ranges::find(batch.streams, stream) == batch.streams.end())
      batch.streams.push_back(stream);
  }
}

// Sends and receives of one communicator become one batch, where the first of them stands: as two,
// on two streams, one would wait for the other's peer, and a pair's messages could change places.
std::vector<Pending> mergePairs(std::vector<Pending> pending) {
  std::vector<Pending> merged;
  std::map<Communicator*, std::size_t> batches;
  for (Pending& p : pending) {
    if (!p.operation.isPairs) {
      merged.push_back(std::move(p));
      continue;
    }
    const auto [at, first] = batches.try_emplace(p.comm.get(), merged.size());
    if (first)
      merged.push_back(std::move(p));
    else
      append(merged[at->second], p);
  }
  return merged;
}

Status inParallel(std::vector<std::function<Status()>> jobs) {
  if (jobs.size() == 1) return jobs[0]();
  return onThreads(jobs.size(), [&](std::size_t i) { return jobs[i](); });
}

// All or none: a ticket that is never used would block its communicator.
Status takeTickets(std::vector<Pending>& pending) {
  std::set<Communicator*> comms;
  Status status;
  for (const Pending& p : pending) {
    if (comms.contains(p.comm.get())) continue;
    if (!p.comm->turns().beginIssue()) {
      status = usedByTwoThreads(*p.comm);
      break;
    }
    comms.insert(p.comm.get());
  }
  if (status.ok()) {
    for (Pending& p : pending) p.ticket = p.comm->turns().take();
  }
  for (Communicator* comm : comms) comm->turns().endIssue();
  return status;
}

// Without streams, communicators run side by side: with several ranks in one thread, each waits for
// the others.
Status runGroup(std::vector<Pending> pending) {
  WEFT_TRY(takeTickets(pending));
  std::map<Communicator*, std::vector<std::shared_ptr<Pending>>> direct;
  for (Pending& p : pending) {
    Communicator* const comm = p.comm.get();
    if (auto mine = enqueue(std::move(p))) direct[comm].push_back(std::move(mine));
  }
  std::vector<std::function<Status()>> jobs;
  for (auto& [comm, operations] : direct) {
    jobs.push_back([&operations = operations] {
      Status first;
      for (const auto& p : operations) {
        const Status status = runInTurn(*p);
        if (first.ok()) first = status;
      }
      return first;
    });
  }
  return jobs.empty() ? Status() : inParallel(std::move(jobs));
}

}  // namespace

constinit thread_local int groupDepth = 0;

Status groupStart() {
  ++groupDepth;
  return {};
}

Status groupEnd() {
  if (groupDepth == 0)
    return Status::error(Code::InvalidUsage, "weftGroupEnd without weftGroupStart on this thread");
  if (--groupDepth > 0) return {};
  Group ended = std::exchange(group(), {});
  Status status;
  if (!ended.creations.empty()) status = inParallel(std::move(ended.creations));
  const Status ran = runGroup(mergePairs(std::move(ended.operations)));
  return status.ok() ? ran : status;
}

Status runNow(Communicator& comm, const Call& call, const void* in, void* out, const void* scalar,
              int timeoutMs, const char* label) {
  Turns& turns = comm.turns();
  if (!turns.beginIssue()) return usedByTwoThreads(comm);
  const std::uint64_t ticket = turns.take();
  Status status = turns.isTurn(ticket) ? Status() : awaitTurn(comm, ticket);
  if (status.ok()) status = comm.run(call, in, out, scalar, timeoutMs, label);
  turns.doneWhileIssuing(ticket);
  turns.endIssue();
  return status;
}

Status runInTurn(Communicator& comm, const std::function<Status()>& call) {
  std::uint64_t ticket = 0;
  WEFT_TRY(takeTicket(comm, &ticket));
  Status status = awaitTurn(comm, ticket);
  if (status.ok()) status = call();
  comm.turns().done(ticket);
  return status;
}

Status submit(std::shared_ptr<Communicator> comm, std::shared_ptr<WorkStream> stream,
              Operation operation) {
  Pending p;
  p.comm = std::move(comm);
  p.operation = std::move(operation);
  p.onThisThread = stream == nullptr;
  if (stream) p.streams.push_back(std::move(stream));
  if (inGroup()) {
    group().operations.push_back(std::move(p));
    return {};
  }
  WEFT_TRY(takeTicket(*p.comm, &p.ticket));
  if (p.onThisThread) return runInTurn(p);
  enqueue(std::move(p));
  return {};
}

Status submitCreation(std::function<Status()> create) {
  if (!inGroup()) return create();
  group().creations.push_back(std::move(create));
  return {};
}

}  // namespace weft
