// SPDX-License-Identifier: Apache-2.0
#include "api/together.h"

#include "api/submit.h"
#include "base/text.h"

namespace weft::api {
namespace {

using engine::CallerTeam;

constexpr int kLookEveryMs = 20;
constexpr std::size_t kMostNamed = 8;

const TeamCall& callOf(const CallerTeam& team, std::uint32_t seat) {
  return *static_cast<const TeamCall*>(team.wishOf(seat).call);
}

Status tooMany(const comm::Communicator& comm) {
  return Status::error(Code::InvalidUsage, "communicator ", comm.name(), " rank ", comm.rank(),
                       " is called by more than its ", comm.callers()->size(),
                       " threads at once; fix: one thread of the team in each call, or a larger "
                       "weftConfig_t.threads");
}

// Those that have made calls before and are not in this one, and how many have come.
std::string attendance(const CallerTeam& team) {
  std::uint32_t come = 0;
  std::vector<pid_t> missing;
  for (std::uint32_t seat = 0; seat < team.size(); ++seat) {
    if (team.isTaken(seat))
      ++come;
    else if (team.threadOf(seat) != 0 && missing.size() < kMostNamed)
      missing.push_back(team.threadOf(seat));
  }
  std::string line = text(come, " of ", team.size(), " threads have made it");
  const auto show = [](pid_t thread) { return text(thread); };
  if (!missing.empty()) line += text(", not thread ", joined(missing, ", ", show));
  return line;
}

Status late(const comm::Communicator& comm, const TeamCall& mine) {
  return Status::error(
      {.code = Code::Timeout,
       .who = comm.me(),
       .what = text("{who}: ", mine.describe(), " on communicator ", comm.name(),
                    " timed out after ", mine.timeoutMs, " ms: ", attendance(*comm.callers())),
       .fix = "make each call from all threads of the team, as many as weftConfig_t.threads says"});
}

// What ends the wait for other threads before the deadline.
Status endOf(comm::Communicator& comm) {
  WEFT_TRY(comm.end());
  return comm.turns().isClosed() ? refusal(comm) : Status();
}

Status awaitAll(comm::Communicator& comm, const TeamCall& mine, CallerTeam::Caller& me) {
  const Deadline deadline = Deadline::in(mine.timeoutMs);
  while (!me.awaitAll(deadline.orSooner(Deadline::in(kLookEveryMs)))) {
    const Status ended = endOf(comm);
    const bool expired = ended.ok() && deadline.expired();
    if (ended.ok() && !expired) continue;
    const Status why = expired ? late(comm, mine) : ended;
    if (me.giveUp()) return expired ? comm.fail(why) : why;
  }
  return {};
}

Status disagreement(comm::Communicator& comm, const TeamCall& mine, std::uint32_t seat) {
  const CallerTeam& team = *comm.callers();
  const auto describe = [](const TeamCall& call) {
    return call.describe() + call.describeBuffers();
  };
  const std::string here = describe(mine), there = describe(callOf(team, seat));
  return comm.fail(Status::error(
      {.code = Code::Mismatch,
       .who = comm.me(),
       .call = text("thread ", team.threadOf(0), " called ", here, ", thread ", team.threadOf(seat),
                    " called ", there, here == there ? " with other options" : ""),
       .what = text("{who}: its threads disagree on communicator ", comm.name(), ": {call}"),
       .fix = "all threads of the team make the same calls in the same order"}));
}

Status runForAll(comm::Communicator& comm, const TeamCall& mine) {
  const CallerTeam& team = *comm.callers();
  for (std::uint32_t seat = 1; seat < team.size(); ++seat)
    if (team.wishOf(seat).fingerprint != mine.arguments.value())
      return disagreement(comm, mine, seat);
  return mine.run();
}

}  // namespace

Status runTogether(comm::Communicator& comm, const TeamCall& mine) {
  CallerTeam& team = *comm.callers();
  CallerTeam::Caller me(team);
  if (!me.isSeated()) return tooMany(comm);
  me.arrive({mine.arguments.value(), &mine});
  WEFT_TRY(awaitAll(comm, mine, me));
  if (!me.leads()) return me.follow();
  team.begin(comm.callersHaveCores());
  const Status result = failingAll(comm, [&] { return runForAll(comm, mine); });
  team.end(result);
  return result;
}

Status notTogether(const comm::Communicator& comm) {
  return Status::error(
      Code::InvalidUsage, "communicator ", comm.name(), " is called by all ",
      comm.callers()->size(),
      " threads of a rank together (weftConfig_t.teamCalls), with neither streams "
      "nor groups; fix: leave them out, or split off a communicator with teamCalls "
      "= 0");
}

}  // namespace weft::api
