// SPDX-License-Identifier: Apache-2.0
#include "plan/link_times.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace weft::plan {
namespace {

// A link that leaves a rank: what it carries, and when it has done so.
struct Link {
  double busy = 0, free = 0;

  double send(double now, double ns) {
    busy += ns;
    return free = std::max(free, now) + ns;
  }
};

}  // namespace

struct LinkTimes::Exchanged {
  double sent = 0, received = 0;          // bytes
  std::map<std::uint32_t, double> peers;  // of what is sent over cables
};

struct LinkTimes::Pass {
  double ns = 0;              // until it is through
  double core = 0, link = 0;  // of that, work
  void work(double more) {
    ns += more;
    core += more;
  }
  double busiest() const { return std::max(core, link); }
};

LinkTimes::LinkTimes(OpPrices& prices)
    : prices_(prices), costs_(prices.costs()), links_(prices), root_(prices.schedule().root) {
  for (std::uint32_t rank = 0; rank < prices.schedule().ranks; ++rank)
    if (rank != root_ && !costs_.areBetween(root_, rank)) mates_.push_back(rank);
  if (costs_.between) nodes_ += *std::ranges::max_element(costs_.between->nodes);
}

// The first rank of the node and the last: what goes to a neighbour of one leaves the node of the other.
double LinkTimes::alikeNs() {
  double longest = 0;
  for (const std::uint32_t rank : {root_, mates_.empty() ? root_ : mates_.back()}) {
    const Pass pass = passOf(rank);
    longest = std::max(longest, pass.ns + (prices_.segments() - 1) * pass.busiest());
  }
  return longest;
}

// Peers do as this rank does: what it waits for set out when it sent its own like, by whichever way
// that one takes. The ranks of a node share its rails.
LinkTimes::Pass LinkTimes::passOf(std::uint32_t rank) {
  const schedule::Program& program = prices_.look(rank);
  const double inNode = static_cast<double>(mates_.size()) + 1;
  const double slower =
      costs_.between ? std::max(1.0, inNode * links_.rankRate() / costs_.between->bytesPerNs) : 1;
  Link rails;                            // the rank's own, as one
  std::map<std::uint32_t, Link> cables;  // by peer
  std::vector<double> sent;
  std::size_t waits = 0;
  Pass pass;
  for (const schedule::Op& op : program.ops) {
    const Medium by = op.hasPeer() ? costs_.mediumTo(rank, op.peer) : Medium::Memory;
    if (op.kind == schedule::OpKind::Wait && waits < sent.size())
      pass.ns = std::max(pass.ns, sent[waits++] + links_.latencyNs(by));
    const double core = prices_.ns(op, program) + prices_.furtherNs(op, program);
    pass.work(prices_.share() *
              (core / prices_.segments() + links_.messageNs(by) * prices_.messages(op)));
    if (op.kind != schedule::OpKind::Put) continue;
    const double ns = prices_.bytes(op) / prices_.segments() * links_.nsPerByte(rank, op.peer, by);
    if (by == Medium::Rails)
      sent.push_back(rails.send(pass.ns, ns * slower));
    else
      sent.push_back(by == Medium::Cable ? cables[op.peer].send(pass.ns, ns) : pass.ns);
  }
  pass.link = rails.busy;
  for (const auto& [peer, link] : cables) pass.link = std::max(pass.link, link.busy);
  return pass;
}

// Segments overlap the work of cores and links.
double LinkTimes::rootedNs(double core) {
  double chains = 0, links = 0;
  if (costs_.between) {
    const Traffic rails = ofRails();
    chains += chainNs(rails, Medium::Rails);
    links = rails.ns;
  }
  if (costs_.cables) {
    const Traffic cables = ofCables();
    chains += chainNs(cables, Medium::Cable);
    links = std::max(links, cables.ns);
  }
  return chains + std::max(core, links) + std::min(core, links) / prices_.segments();
}

// A segment is passed on by whom it has reached whole. Who gets from many, or sends to many, has a
// message's time for each.
double LinkTimes::chainNs(const Traffic& traffic, Medium by) const {
  const double passed = std::max(0.0, traffic.rounds - 1) * traffic.longest / prices_.segments();
  return traffic.rounds * links_.latencyNs(by) + passed +
         prices_.segments() * traffic.messages * links_.messageNs(by);
}

// The root's node sends most. The first of its other ranks and the last stand for those between
// them.
LinkTimes::Traffic LinkTimes::ofRails() {
  Traffic traffic;
  const Exchanged root = exchangedBy(root_, Medium::Rails, &traffic);
  Exchanged node = root;
  const double half = static_cast<double>(mates_.size()) / 2;
  for (std::size_t i = 0; i < 2 && !mates_.empty(); ++i) {
    const Exchanged one =
        exchangedBy(i == 0 ? mates_.front() : mates_.back(), Medium::Rails, &traffic);
    node.sent += one.sent * half;
    node.received += one.received * half;
  }
  traffic.ns = std::max(std::max(node.sent, node.received) / costs_.between->bytesPerNs,
                        std::max(root.sent, root.received) / links_.rankRate());
  return traffic;
}

LinkTimes::Traffic LinkTimes::ofCables() {
  std::vector<std::uint32_t> some{root_};
  if (!mates_.empty()) some.insert(some.end(), {mates_.front(), mates_.back()});
  Traffic traffic;
  for (const std::uint32_t rank : some)
    for (const auto& [peer, bytes] : exchangedBy(rank, Medium::Cable, &traffic).peers)
      traffic.ns = std::max(traffic.ns, bytes * links_.nsPerByte(rank, peer, Medium::Cable));
  return traffic;
}

LinkTimes::Exchanged LinkTimes::exchangedBy(std::uint32_t rank, Medium by, Traffic* traffic) {
  double sent = 0, received = 0;
  Rounds rounds{.sent = rank != root_};  // it waits for what the root has sent
  Exchanged all;
  for (const schedule::Op& op : prices_.program(rank).ops) {
    if (!op.hasPeer() || costs_.mediumTo(rank, op.peer) != by) continue;
    const bool puts = op.kind == schedule::OpKind::Put;
    if (!puts) rounds.end();
    const double bytes = prices_.bytes(op);
    rounds.sent = rounds.sent || puts;
    (puts ? sent : received) += prices_.messages(op);
    (puts ? all.sent : all.received) += bytes;
    if (puts && by == Medium::Cable) all.peers[op.peer] += bytes;
    traffic->longest = std::max(traffic->longest, bytes * links_.nsPerByte(rank, op.peer, by));
  }
  rounds.end();
  if (sent + received == 0) return all;
  traffic->messages = std::max({traffic->messages, sent, received});
  traffic->rounds = std::max({traffic->rounds, rounds.count, prices_.hops() * partOfHops(by)});
  return all;
}

// Of a tree's height, what lies between nodes; the rest is inside of them.
double LinkTimes::partOfHops(Medium by) const {
  const double ranks = prices_.schedule().ranks;
  if (nodes_ == 1 || ranks == 1) return 1;
  const double part = std::log(nodes_) / std::log(ranks);
  return by == Medium::Rails ? part : 1 - part;
}

}  // namespace weft::plan
