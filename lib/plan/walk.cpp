// SPDX-License-Identifier: Apache-2.0
#include "plan/walk.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace weft::plan {
namespace {

using schedule::Op;
using schedule::OpKind;

// A call is planned once for each size, by each rank: this many take it a millisecond or two.
constexpr double kMostOps = 1 << 13;

}  // namespace

Walk::Walk(OpPrices& prices)
    : prices_(prices),
      costs_(prices.costs()),
      links_(prices),
      ranks_(prices.schedule().ranks),
      states_(ranks_),
      ofRank_(ranks_),
      ofNode_(costs_.between ? 1 + *std::ranges::max_element(costs_.between->nodes) : 0) {}

bool Walk::isShort(OpPrices& prices) {
  const schedule::Schedule& schedule = prices.schedule();
  double most = 0;  // of the ranks that stand for all
  for (const std::uint32_t rank : schedule.typical)
    if (rank != schedule.root || schedule.ranks == 1 || !schedule::isRooted(schedule.collective))
      most = std::max(most, static_cast<double>(prices.program(rank).ops.size()));
  return most * schedule.ranks + static_cast<double>(prices.program(schedule.root).ops.size()) <=
         kMostOps;
}

double Walk::ns() {
  countBytes();
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) ready_.push_back(rank);
  while (!ready_.empty()) {
    const std::uint32_t rank = ready_.back();
    ready_.pop_back();
    advance(rank);
  }
  double first = 0;
  for (const State& state : states_) first = std::max({first, state.now, state.out});
  return first + (prices_.segments() - 1) * busiestNs();
}

void Walk::countBytes() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> cables;
  std::size_t messages = 0;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    for (const Op& op : prices_.program(rank).ops) {
      if (op.kind != OpKind::Put) continue;
      ++messages;
      const Medium by = costs_.mediumTo(rank, op.peer);
      const double bytes = prices_.bytes(op) / prices_.segments();
      if (by == Medium::Cable)
        cables_ = std::max(
            cables_, (cables[{rank, op.peer}] += bytes) * links_.nsPerByte(rank, op.peer, by));
      if (by != Medium::Rails) continue;
      ofRank_[rank].out += bytes;
      ofRank_[op.peer].in += bytes;
      ofNode_[costs_.between->nodes[rank]].out += bytes;
      ofNode_[costs_.between->nodes[op.peer]].in += bytes;
    }
  messages_.reserve(messages);
}

// Those of a node who send share its rails.
double Walk::railNs(std::uint32_t rank, double bytes) const {
  const double alone = 1 / links_.rankRate();
  const double all = ofNode_[costs_.between->nodes[rank]].out / costs_.between->bytesPerNs;
  const double slower = ofRank_[rank].out > 0 ? all / (ofRank_[rank].out * alone) : 1;
  return bytes * alone * std::max(1.0, slower);
}

double Walk::busiestNs() const {
  double ns = cables_;
  for (const State& state : states_) ns = std::max(ns, state.core);
  for (const Ports& ports : ofRank_)
    if (costs_.between) ns = std::max(ns, ports.most() / links_.rankRate());
  for (const Ports& ports : ofNode_) ns = std::max(ns, ports.most() / costs_.between->bytesPerNs);
  return ns;
}

// A Put writes the very run that its Wait is for.
std::uint64_t Walk::keyOf(std::uint32_t from, std::uint32_t to, const Op& op) const {
  const auto slot = std::uint64_t{op.dst.index} << 2 | static_cast<std::uint64_t>(op.dst.buf);
  return (slot * ranks_ + from) * ranks_ + to;
}

void Walk::advance(std::uint32_t rank) {
  const schedule::Program& program = prices_.look(rank);
  State& state = states_[rank];
  for (; state.next < program.ops.size(); ++state.next) {
    const Op& op = program.ops[state.next];
    const Medium by = op.hasPeer() ? costs_.mediumTo(rank, op.peer) : Medium::Memory;
    if (op.kind == OpKind::Wait && !receive(rank, op, by)) return;
    if (op.kind == OpKind::Wait) continue;
    const double core = prices_.ns(op, program) + prices_.furtherNs(op, program);
    const double message = op.hasPeer() ? links_.messageNs(by) * prices_.messages(op) : 0;
    work(state, core / prices_.segments() + message);
    if (op.kind == OpKind::Put) send(rank, op, by);
  }
  leave(rank);
}

// Ranks of a core work in turn.
void Walk::work(State& state, double ns) {
  state.now += prices_.share() * ns;
  state.core += prices_.share() * ns;
}

void Walk::send(std::uint32_t rank, const Op& op, Medium by) {
  State& state = states_[rank];
  const std::uint64_t key = keyOf(rank, op.peer, op);
  const double bytes = prices_.bytes(op) / prices_.segments(), latency = links_.latencyNs(by);
  if (by == Medium::Rails)
    return state.leaving.push_back({state.now, railNs(rank, bytes), latency, key});
  const double end = state.now + bytes * links_.nsPerByte(rank, op.peer, by);
  post(key, {state.now + latency, end + latency});
}

void Walk::post(std::uint64_t key, const Message& message) {
  messages_[key] = message;
  const auto waits = waiting_.find(key);
  if (waits == waiting_.end()) return;
  ready_.push_back(waits->second);
  waiting_.erase(waits);
}

// What set out together shares the rails fairly: in `served`, what each of them has got so far, they
// end in the order of their lengths.
void Walk::leave(std::uint32_t rank) {
  State& state = states_[rank];
  using End = std::pair<double, std::size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  double served = 0, now = state.out;
  const auto serveUntil = [&](double until) {
    while (!ends.empty()) {
      const auto [end, which] = ends.top();
      const double last = now + (end - served) * static_cast<double>(ends.size());
      if (last > until) break;
      now = last;
      served = end;
      ends.pop();
      const Flow& flow = state.leaving[which];
      post(flow.key, {flow.at + flow.latency, now + flow.latency});
    }
    if (ends.empty()) return;
    served += (until - now) / static_cast<double>(ends.size());
    now = until;
  };
  for (std::size_t i = 0; i < state.leaving.size(); ++i) {
    serveUntil(state.leaving[i].at);
    now = std::max(now, state.leaving[i].at);
    ends.push({served + state.leaving[i].ns, i});
  }
  serveUntil(kNever);
  if (!state.leaving.empty()) state.out = now;
  state.leaving.clear();
}

// False: it has not set out yet.
bool Walk::receive(std::uint32_t rank, const Op& op, Medium by) {
  State& state = states_[rank];
  leave(rank);
  const std::uint64_t key = keyOf(op.peer, rank, op);
  const auto message = messages_.find(key);
  if (message == messages_.end()) {
    waiting_[key] = rank;
    return false;
  }
  double come = message->second.end;
  if (by == Medium::Rails) {  // through ports that bring what comes from others, too
    const double bytes = prices_.bytes(op) / prices_.segments();
    const double begin = message->second.begin;
    if (begin >= state.inBegin + state.inNs) state.inNs = 0;
    state.inBegin = state.inNs > 0 ? std::min(state.inBegin, begin) : begin;
    state.inNs += bytes / links_.rankRate();
    come = std::max(come, state.inBegin + state.inNs);
  }
  const double ns = links_.messageNs(by) * prices_.messages(op);
  if (come > state.now) state.idle.push_back({std::exchange(state.now, come), come});
  if (come == state.now || !wasIdle(state, come, ns))
    work(state, ns);
  else
    state.core += prices_.share() * ns;
  return true;
}

// Has the core seen to what came before, while it waited for something else?
bool Walk::wasIdle(State& state, double since, double ns) const {
  const double all = prices_.share() * ns;
  for (Idle& idle : state.idle) {
    const double begin = std::max(idle.begin, since);
    if (idle.end - begin < all) continue;
    const Idle rest{begin + all, idle.end};
    idle.end = begin;
    if (rest.end > rest.begin) state.idle.push_back(rest);
    return true;
  }
  return false;
}

}  // namespace weft::plan
