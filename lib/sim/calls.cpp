// SPDX-License-Identifier: Apache-2.0
#include "sim/calls.h"

#include <algorithm>

#include "base/text.h"
#include "sim/noise.h"

namespace weft::sim {
namespace {

// Which draw of noise, of a message or an op.
enum Noise : std::uint64_t { kWorks, kTravels, kReceives };

}  // namespace

Calls::Calls(const Setting& setting, const Symmetry& symmetry, const Symmetry& likeness,
             const std::vector<Kind>& kinds, std::vector<std::uint32_t> calls, Clock& clock,
             Sharing& sharing, Cores& cores)
    : setting_(setting),
      symmetry_(symmetry),
      likeness_(likeness),
      kinds_(kinds),
      calls_(std::move(calls)),
      clock_(clock),
      sharing_(sharing),
      cores_(cores),
      ways_(*setting.network, symmetry, sharing),
      ranks_(symmetry.classes()),
      runs_(calls_.size() * ranks_),
      through_(calls_.size(), 0) {}

// Messages may come to a rank before it makes the call itself.
void Calls::open(std::uint32_t call) {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    Run& run = runs_[runOf(call, rank)];
    const Program& program = kinds_[calls_[call]].programs[likeness_.classOf(rank)];
    run.program = &program;
    run.lanes.open(std::min<std::uint64_t>(setting_.lanes, program.segments), program.waits);
    if (program.segments > program.depth) run.completedAt.resize(program.segments, kNever);
  }
}

void Calls::begin(std::uint32_t number, std::uint32_t worker) {
  if (runs_[number].program == nullptr) open(callOf(number));
  runs_[number].state = Run::State::In;
  runs_[number].worker = worker;
  wake(number);
}

// When all ranks are through nothing is on its way: each message has been waited for, and has left.
void Calls::finish(std::uint32_t number) {
  runs_[number].state = Run::State::Through;
  finished_.push_back(number);
  const std::uint32_t call = callOf(number);
  if (++through_[call] < ranks_) return;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    Run& run = runs_[runOf(call, rank)];
    const std::uint32_t worker = run.worker;
    run = {};
    run.worker = worker;
    run.state = Run::State::Through;
  }
}

void Calls::left(std::uint32_t number) {
  const Message& message = messages_[number];
  if (message.channel != kNoChannel) ways_.left(message.channel);
  clock_.post(clock_.now() + message.latency, Event::Kind::Arrival, number);
}

void Calls::arrive(std::uint32_t number) {
  const Message message = messages_[number];
  freeMessages_.push_back(number);
  observeMessage(message);
  Run& to = runs_[message.to];
  Run& from = runs_[message.from];
  if (receiptNs(message.to, message.byMemory) <= 0)
    to.lanes.arrive(message.segment, message.target);
  else
    to.came.push({clock_.now(), message.segment, message.target, message.byMemory});
  wake(message.to);
  if (message.byMemory) return;
  --from.lanes.of(message.segment).pending;
  wake(message.from);
}

void Calls::wake(std::uint32_t number) {
  Run& run = runs_[number];
  if (run.busy || run.state != Run::State::In || std::exchange(run.woken, true)) return;
  woken_.push_back(number);
}

bool Calls::goOn() {
  const bool any = !woken_.empty();
  while (!woken_.empty()) {
    const std::vector<std::uint32_t> now = std::exchange(woken_, {});
    for (const std::uint32_t number : now) {
      Run& run = runs_[number];
      run.woken = false;
      if (!run.busy && run.state == Run::State::In) advance(number);
    }
  }
  return any;
}

// ---- the engine's loop

// Looks at the lanes in turn until the core is busy, nothing moves or all is done.
void Calls::advance(std::uint32_t number) {
  Run& run = runs_[number];
  if (run.idle && !turnTo(number)) return;
  while (true) {
    const bool looks = run.looksAt < run.opened || mayOpen(run);
    if (looks) {
      Lane& lane = run.lanes.of(run.looksAt);
      if (run.looksAt == run.opened) lane = {run.opened++, 0, 0, true};
      if (lane.active && !advanceLane(number, lane)) return;
      ++run.looksAt;
      continue;
    }
    while (run.closed < run.opened && !run.lanes.of(run.closed).active) ++run.closed;
    if (run.closed == run.program->segments) return finish(number);
    if (!std::exchange(run.moved, false)) {
      run.idle = !receive(number);
      if (run.idle) cores_.pause(run.worker, waits(number));
      return;
    }
    run.looksAt = run.closed;
  }
}

// The next segment?
bool Calls::mayOpen(const Run& run) const {
  if (run.opened == std::min(run.program->segments, run.closed + run.lanes.size())) return false;
  if (run.opened == 0) return true;
  const Lane& before = run.lanes.of(run.opened - 1);
  return !before.active || before.next >= run.program->lead;
}

// A rank that waits begins anew with its first lane. A core that others use turns to it when it has
// something to do, which takes a while: false.
bool Calls::turnTo(std::uint32_t number) {
  Run& run = runs_[number];
  if (setting_.sharesCores() && !hasWork(number)) return false;
  run.idle = false;
  run.looksAt = run.closed;
  if (!setting_.sharesCores()) return true;
  run.turnsTo = run.busy = true;
  cores_.resume(run.worker);
  return false;
}

// As the engine's: is any rank whose arrival or credit is missing now on this core? Asked only where cores
// are shared, as a lane may wait for all other ranks.
Cores::Waits Calls::waits(std::uint32_t number) const {
  const Run& run = runs_[number];
  const std::vector<Step>& steps = run.program->steps;
  const auto isHere = [&](const Step& step) {
    return step.kind != Step::Kind::Work &&
           cores_.shareACore(rankOf(number), rankOfPeer(number, step.peer));
  };
  const auto awaitsHere = [&](const Lane& lane) {
    if (!lane.active || lane.next == steps.size()) return false;
    if (steps[lane.next].kind != Step::Kind::Wait) return isHere(steps[lane.next]);
    for (std::size_t i = lane.next; i < steps.size() && steps[i].kind == Step::Kind::Wait; ++i)
      if (!run.lanes.hasArrived(lane.segment, steps[i].target) && isHere(steps[i])) return true;
    return false;
  };
  const bool polls = cores_.takeTurns() && std::ranges::none_of(run.lanes, awaitsHere);
  return polls ? Cores::Waits::ForOthers : Cores::Waits::ForThisCore;
}

bool Calls::hasWork(std::uint32_t number) {
  Run& run = runs_[number];
  if (!run.came.empty()) return true;
  if (mayOpen(run)) return true;
  return std::ranges::any_of(run.lanes, [&](const Lane& lane) {
    if (!lane.active) return false;
    if (lane.next == run.program->steps.size()) return lane.pending == 0;
    const Step& step = run.program->steps[lane.next];
    if (step.kind == Step::Kind::Wait) return run.lanes.hasArrived(lane.segment, step.target);
    return (!step.drain || lane.pending == 0) && mayRun(number, lane, step);
  });
}

// False: the core is busy.
bool Calls::advanceLane(std::uint32_t number, Lane& lane) {
  Run& run = runs_[number];
  const std::vector<Step>& steps = run.program->steps;
  while (lane.next < steps.size()) {
    const Step& step = steps[lane.next];
    if (step.drain && lane.pending != 0) return true;
    if (step.kind == Step::Kind::Wait) {
      if (!run.lanes.hasArrived(lane.segment, step.target)) return true;
    } else {
      if (!mayRun(number, lane, step)) return true;
      const double ns = workOf(number, lane, step);
      if (ns > 0) {
        run.busy = true;
        cores_.work(run.worker, ns, step.price.memoryPerByte * bytesOf(run, lane, step));
        return false;
      }
      send(number, lane, step);
    }
    ++lane.next;
    run.moved = true;
  }
  if (lane.pending == 0) close(run, lane);
  return true;
}

double Calls::bytesOf(const Run& run, const Lane& lane, const Step& step) const {
  return static_cast<double>(step.bytes(lane.segment * run.program->segmentBytes));
}

// What has come costs the core that it comes to: it polls for it. Over a link as much as that which sent it, as
// it renews what takes the next one; in memory it reads the line. False: nothing has come.
bool Calls::receive(std::uint32_t number) {
  Run& run = runs_[number];
  if (run.came.empty()) return false;
  const Came& first = run.came.first();
  const double noise =
      noiseOf(setting_.jitter, {number, first.segment(), first.target(), kReceives});
  run.receives = run.busy = true;
  const double ns = receiptNs(number, first.byMemory());
  cores_.work(run.worker, ns * cores_.slownessOf(rankOf(number)) * noise, 0);
  return true;
}

void Calls::received(std::uint32_t number) {
  Run& run = runs_[number];
  const Came& first = run.came.first();
  observeReceipt(number, first);
  run.lanes.arrive(first.segment(), first.target());
  run.came.pop();
  run.moved = true;
  wake(number);
}

// As the engine's: are the slots free that it writes?
bool Calls::mayRun(std::uint32_t number, const Lane& lane, const Step& step) {
  if (lane.segment < runs_[number].program->depth) return true;
  if (step.kind == Step::Kind::Message)
    return mayPut(number, lane, step.peer, latencyOf(number, rankOfPeer(number, step.peer), step));
  const auto has = [&](std::uint32_t reader) {
    return mayPut(number, lane, reader, memoryLatencyOf(number));
  };
  return !step.publishes() || std::ranges::all_of(runs_[number].program->readers, has);
}

// Slots are free again when the peer has completed what used them, and says so.
bool Calls::mayPut(std::uint32_t number, const Lane& lane, std::uint32_t peer, Time told) {
  Run& reader = runs_[peerOf(number, peer)];
  const Time done = reader.completedAt[lane.segment - runs_[number].program->depth];
  if (done == kNever) {
    const std::pair wish{number, told};
    if (std::ranges::find(reader.wantCredit, wish) == reader.wantCredit.end())
      reader.wantCredit.push_back(wish);
    return false;
  }
  if (done + told <= clock_.now()) return true;
  clock_.post(done + told, Event::Kind::Wake, number);
  return false;
}

double Calls::workOf(std::uint32_t number, const Lane& lane, const Step& step) const {
  const double ns = step.price.fixedNs + step.price.nsPerByte * bytesOf(runs_[number], lane, step);
  if (ns <= 0) return 0;
  return ns * cores_.slownessOf(rankOf(number)) * noise(number, lane, kWorks);
}

void Calls::worked(std::uint32_t number) {
  Run& run = runs_[number];
  run.busy = false;
  if (std::exchange(run.turnsTo, false)) return wake(number);
  if (std::exchange(run.receives, false)) return received(number);
  Lane& lane = run.lanes.of(run.looksAt);
  const Step& step = run.program->steps[lane.next];
  observeWork(number, lane, step);
  send(number, lane, step);
  ++lane.next;
  run.moved = true;
  wake(number);
}

void Calls::close(Run& run, Lane& lane) {
  lane.active = false;
  run.moved = true;
  while (run.completed < run.opened && !run.lanes.of(run.completed).active) {
    if (!run.completedAt.empty()) run.completedAt[run.completed] = clock_.now();
    ++run.completed;
  }
  for (const auto& [who, told] : std::exchange(run.wantCredit, {}))
    clock_.post(clock_.now() + told, Event::Kind::Wake, who);
}

// ---- messages

void Calls::send(std::uint32_t number, Lane& lane, const Step& step) {
  if (step.kind != Step::Kind::Message) return;
  const double bytes = bytesOf(runs_[number], lane, step);
  const std::uint32_t peer = rankOfPeer(number, step.peer);
  Message message{.from = number,
                  .to = runOf(callOf(number), symmetry_.classOf(peer)),
                  .target = step.target,
                  .segment = lane.segment,
                  .sent = clock_.now(),
                  .bytes = static_cast<std::uint64_t>(bytes),
                  .op = lane.next,
                  .byMemory = step.byMemory};
  message.latency = latencyOf(number, peer, step);
  if (setting_.jitter.sigma > 0)
    message.latency = timeOf(nsOf(message.latency) * noise(number, lane, kTravels));
  ++messageCount_;
  if (!step.byMemory) ++lane.pending;
  if (step.byMemory || bytes == 0) return left(keep(message));
  message.channel = ways_.channelBetween(rankOf(number), peer);
  sharing_.startInQueue(message.channel, std::uint64_t{number} << 32 | step.peer, bytes,
                        keep(message), clock_.now());
}

std::uint32_t Calls::keep(const Message& message) {
  if (freeMessages_.empty()) {
    messages_.push_back(message);
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t number = freeMessages_.back();
  freeMessages_.pop_back();
  messages_[number] = message;
  return number;
}

Time Calls::latencyOf(std::uint32_t number, std::uint32_t peer, const Step& step) {
  if (step.byMemory) return memoryLatencyOf(number) - timeOf(jobOf(number).costs->receiptNs());
  return ways_.latencyBetween(rankOf(number), peer);
}

double Calls::receiptNs(std::uint32_t number, bool byMemory) const {
  return byMemory ? jobOf(number).costs->receiptNs() : setting_.messageNs;
}

Time Calls::memoryLatencyOf(std::uint32_t number) const {
  return timeOf(jobOf(number).costs->machine.exchangeNs);
}

// ---- noise, and what is seen

double Calls::noise(std::uint32_t number, const Lane& lane, std::uint32_t what) const {
  return noiseOf(setting_.jitter, {number, lane.segment, lane.next, what});
}

void Calls::observeWork(std::uint32_t number, const Lane& lane, const Step& step) const {
  if (!setting_.observe) return;
  const Run& run = runs_[number];
  const auto bytes = static_cast<std::uint64_t>(bytesOf(run, lane, step));
  setting_.observe({rankOf(number), run.lanes.numberOf(lane.segment), lane.next, lane.segment,
                    cores_.began(run.worker), clock_.now(), bytes, rankOfPeer(number, step.peer),
                    false, nameOf(step.planned)});
}

void Calls::observeReceipt(std::uint32_t number, const Came& message) const {
  if (!setting_.observe) return;
  const Run& run = runs_[number];
  const auto step = std::ranges::find_if(run.program->steps, [&](const Step& one) {
    return one.kind == Step::Kind::Wait && one.target == message.target();
  });
  setting_.observe({rankOf(number), run.lanes.numberOf(message.segment()),
                    static_cast<std::uint32_t>(step - run.program->steps.begin()),
                    message.segment(), cores_.began(run.worker), clock_.now(), 0,
                    rankOfPeer(number, step->peer), false, "Receive"});
}

void Calls::observeMessage(const Message& message) const {
  if (!setting_.observe) return;
  const Run& from = runs_[message.from];
  const Step& step = from.program->steps[message.op];
  setting_.observe({rankOf(message.from), from.lanes.numberOf(message.segment), message.op,
                    message.segment, message.sent, clock_.now(), message.bytes, rankOf(message.to),
                    true, nameOf(step.planned)});
}

Status Calls::whereItStands(std::uint32_t number) const {
  const Run& run = runs_[number];
  const Lane& lane = run.lanes.of(run.closed);
  const std::vector<Step>& steps = run.program->steps;
  std::string at;
  if (lane.next < steps.size()) {
    Step step = steps[lane.next];
    step.peer = rankOfPeer(number, step.peer);
    at = describe(step);
  }
  return Status::error(Code::InternalError, "rank ", rankOf(number),
                       " does not finish: in segment ", lane.segment, " it stands at op ",
                       lane.next, " (", at,
                       ") when nothing is left to happen; fix: report it as a bug, with the "
                       "command");
}

}  // namespace weft::sim
