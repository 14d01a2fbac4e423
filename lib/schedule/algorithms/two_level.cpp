// SPDX-License-Identifier: Apache-2.0
// Two levels for any nodes (nodes.h): what crosses nodes is first gathered or summed inside each,
// so that every link between nodes carries 1/L of it, and is spread inside at the end. Rails are
// direct: each rank exchanges with those who stand on its rail on the other nodes at once.
//
// Written as steps that all ranks take in the same order, each of which depends on earlier ones
// only.
#include <algorithm>
#include <memory>

#include "schedule/algorithms/generators.h"
#include "schedule/nodes.h"

namespace weft::schedule {
namespace {

using Members = std::shared_ptr<const Nodes>;

Members share(const std::vector<uint32_t>& nodeOf) { return std::make_shared<const Nodes>(nodeOf); }

// The rest of a rank's node.
std::vector<uint32_t> neighbours(const Nodes& nodes, uint32_t me) {
  const uint32_t node = nodes.nodeOf(me);
  std::vector<uint32_t> ranks = after(nodes.localRankOf(me), nodes.size(node));
  for (uint32_t& r : ranks) r = nodes.members(node)[r];
  return ranks;
}

// Two levels of these nodes. The first two of a node put as much to any one peer, and keep as much,
// as its others, and nodes of one size are alike, but for the root's.
Schedule emptyTwoLevel(Collective collective, const Nodes& nodes, uint32_t chunks,
                       uint32_t root = 0) {
  Schedule s = emptySchedule(collective, "two-level", nodes.ranks(), chunks, root);
  std::vector<bool> seen(nodes.ranks() + 1, false);
  for (uint32_t k = 0; k < nodes.count(); ++k) {
    const uint32_t node = (nodes.nodeOf(root) + k) % nodes.count(), size = nodes.size(node);
    if (k > 1 && seen[size]) continue;
    seen[size] = k > 0;
    for (uint32_t i = 0; i < std::min(2u, size); ++i) s.typical.push_back(nodes.members(node)[i]);
  }
  return s;
}

// The largest of what each rank needs.
template <class Need>
uint32_t most(const Nodes& nodes, Need&& need) {
  uint32_t slots = 0;
  for (uint32_t r = 0; r < nodes.ranks(); ++r) slots = std::max(slots, need(r));
  return slots;
}

// ---- all-reduce: chunk rail * N + k is summed on that rail, by node k

// Tmp of a rank, for each of its rails: what its node sends (m runs of N), the node's sums (N),
// what the rail sends (N).
struct ReduceSpace {
  const Nodes& nodes;
  uint32_t N = nodes.count();

  uint32_t one(uint32_t rank) const { return (nodes.size(nodes.nodeOf(rank)) + 2) * N; }
  uint32_t base(uint32_t rank, uint32_t rail) const {
    return rail / nodes.size(nodes.nodeOf(rank)) * one(rank);
  }
  uint32_t all(uint32_t rank) const {
    const uint32_t m = nodes.size(nodes.nodeOf(rank));
    return (nodes.rails() + m - 1) / m * one(rank);
  }
  Slot fromLocal(uint32_t rank, uint32_t rail, uint32_t localRank) const {
    return tmp(base(rank, rail) + localRank * N);
  }
  Slot sums(uint32_t rank, uint32_t rail) const {
    return tmp(base(rank, rail) + nodes.size(nodes.nodeOf(rank)) * N);
  }
  Slot fromNode(uint32_t rank, uint32_t rail, uint32_t node) const {
    return sums(rank, rail) + (N + node);
  }
};

class AllReduceByLevels {
 public:
  AllReduceByLevels(const Nodes& nodes, uint32_t me)
      : nodes_(nodes), space_{nodes}, me_(me), node_(nodes.nodeOf(me)), N_(nodes.count()) {
    for (uint32_t c = 0; c < nodes.rails(); ++c)
      if (nodes.standsOn(me, c)) mine_.push_back(c);
  }

  Program program() {
    sumInside();
    for (const uint32_t c : mine_) sendAlong(c);
    for (const uint32_t c : mine_) sumAcross(c);
    for (const uint32_t c : mine_) spread(c);
    for (uint32_t c = 0; c < nodes_.rails(); ++c)
      if (!nodes_.standsOn(me_, c)) p_.wait(nodes_.onRail(node_, c), out(c * N_), {c * N_, N_});
    return std::move(p_);
  }

 private:
  void sumInside() {
    const uint32_t localRank = nodes_.localRankOf(me_), L = nodes_.rails();
    for (uint32_t k = 1; k <= L; ++k) {
      const uint32_t c = (localRank + k) % L, owner = nodes_.onRail(node_, c);
      if (owner != me_)
        p_.put(owner, in(c * N_), space_.fromLocal(owner, c, localRank), {c * N_, N_});
    }
    for (const uint32_t c : mine_) {
      for (const uint32_t r : neighbours(nodes_, me_))
        p_.wait(r, space_.fromLocal(me_, c, nodes_.localRankOf(r)), {c * N_, N_});
      std::vector<Slot> addends;
      for (uint32_t i = 0; i < nodes_.size(node_); ++i)
        addends.push_back(i == localRank ? in(c * N_) : space_.fromLocal(me_, c, i));
      p_.reduce(space_.sums(me_, c), addends, {c * N_, N_});
    }
  }

  void sendAlong(uint32_t c) {
    for (const uint32_t b : after(node_, N_)) {
      const uint32_t peer = nodes_.onRail(b, c);
      p_.put(peer, space_.sums(me_, c) + b, space_.fromNode(peer, c, node_), {c * N_ + b});
    }
  }

  void sumAcross(uint32_t c) {
    const uint32_t chunk = c * N_ + node_;
    for (const uint32_t b : after(node_, N_))
      p_.wait(nodes_.onRail(b, c), space_.fromNode(me_, c, b), {chunk});
    std::vector<Slot> addends;
    for (uint32_t b = 0; b < N_; ++b)
      addends.push_back(b == node_ ? space_.sums(me_, c) + b : space_.fromNode(me_, c, b));
    p_.reduce(out(chunk), addends, {chunk});
    p_.apply(ApplyId::Finish, out(chunk), out(chunk), {chunk});
    for (const uint32_t b : after(node_, N_))
      p_.put(nodes_.onRail(b, c), out(chunk), out(chunk), {chunk});
  }

  void spread(uint32_t c) {
    for (const uint32_t b : after(node_, N_))
      p_.wait(nodes_.onRail(b, c), out(c * N_ + b), {c * N_ + b});
    for (const uint32_t r : neighbours(nodes_, me_))
      p_.put(r, out(c * N_), out(c * N_), {c * N_, N_});
  }

  const Nodes& nodes_;
  const ReduceSpace space_;
  const uint32_t me_, node_, N_;
  std::vector<uint32_t> mine_;  // rails
  Program p_;
};

// ---- block collectives: a block for, or of, rank d crosses nodes on d's rail

// The blocks that pass through a rank: those of all ranks on the rails it stands on. Tmp: of each
// block what every rank of the rank's node sends, then one more slot for each, then the rest.
class Relay {
 public:
  Relay(const Nodes& nodes, uint32_t rank)
      : m(nodes.size(nodes.nodeOf(rank))), nodes_(nodes), rank_(rank) {}

  // Of these nodes, in their order.
  std::vector<uint32_t> blocksOf(const std::vector<uint32_t>& nodes) const {
    std::vector<uint32_t> all;
    for (const uint32_t b : nodes)
      for (const uint32_t d : nodes_.members(b))
        if (nodes_.standsOn(rank_, nodes_.railOf(d))) all.push_back(d);
    return all;
  }
  uint32_t room() const { return (nodes_.rails() + m - 1) / m * nodes_.count(); }
  Slot fromLocal(uint32_t d, uint32_t localRank) const { return tmp(place(d) * m + localRank); }
  Slot gathered(uint32_t d) const { return tmp(room() * m + place(d)); }
  Slot rest() const { return tmp(room() * (m + 1)); }

  const uint32_t m;  // ranks of the node

 private:
  uint32_t place(uint32_t d) const {
    return nodes_.railOf(d) / m * nodes_.count() + nodes_.nodeOf(d);
  }

  const Nodes& nodes_;
  const uint32_t rank_;
};

// Each node begins with another one, so that no rail has to carry what all send at once.
Program reduceScatterOf(const Nodes& nodes, uint32_t me) {
  const uint32_t node = nodes.nodeOf(me), localRank = nodes.localRankOf(me);
  const Relay mine(nodes, me);
  Program p;
  std::vector<uint32_t> order = after(node, nodes.count());
  order.push_back(node);
  for (const uint32_t b : order)
    for (uint32_t k = 1; k <= nodes.size(b); ++k) {
      const uint32_t d = nodes.members(b)[(localRank + k) % nodes.size(b)];
      const uint32_t relay = nodes.onRail(node, nodes.railOf(d));
      if (relay != me) p.put(relay, in(d), Relay(nodes, relay).fromLocal(d, localRank), {d});
    }
  for (const uint32_t d : mine.blocksOf(order)) {
    for (const uint32_t r : neighbours(nodes, me))
      p.wait(r, mine.fromLocal(d, nodes.localRankOf(r)), {d});
    std::vector<Slot> addends;
    for (uint32_t i = 0; i < mine.m; ++i)
      addends.push_back(i == localRank ? in(d) : mine.fromLocal(d, i));
    p.reduce(mine.gathered(d), addends, {d});
    if (nodes.nodeOf(d) != node) p.put(d, mine.gathered(d), Relay(nodes, d).rest() + node, {d});
  }
  for (const uint32_t b : after(node, nodes.count()))
    p.wait(nodes.onRail(b, nodes.railOf(me)), mine.rest() + b, {me});
  std::vector<Slot> addends;
  for (uint32_t b = 0; b < nodes.count(); ++b)
    addends.push_back(b == node ? mine.gathered(me) : mine.rest() + b);
  p.reduce(out(0), addends, {me});
  p.apply(ApplyId::Finish, out(0), out(0), {me});
  return p;
}

Program allGatherOf(const Nodes& nodes, uint32_t me) {
  const uint32_t node = nodes.nodeOf(me);
  Program p;
  for (const uint32_t b : after(node, nodes.count()))
    p.put(nodes.onRail(b, nodes.railOf(me)), in(0), out(me), {me});
  for (const uint32_t r : neighbours(nodes, me)) p.put(r, in(0), out(me), {me});
  p.copy(in(0), out(me), {me});
  // In the order in which they come: this node is the first to which the one before it sends.
  std::vector<uint32_t> order = after(node, nodes.count());
  std::reverse(order.begin(), order.end());
  for (const uint32_t d : Relay(nodes, me).blocksOf(order)) {
    p.wait(d, out(d), {d});
    for (const uint32_t r : neighbours(nodes, me)) p.put(r, out(d), out(d), {d});
  }
  for (const uint32_t r : neighbours(nodes, me)) p.wait(r, out(r), {r});
  for (const uint32_t b : order)
    for (const uint32_t d : nodes.members(b))
      if (!nodes.standsOn(me, nodes.railOf(d)))
        p.wait(nodes.onRail(node, nodes.railOf(d)), out(d), {d});
  return p;
}

// Ranks in ascending order, as runs of neighbouring ones.
std::vector<Span> runsOf(const std::vector<uint32_t>& ranks) {
  std::vector<Span> runs;
  for (const uint32_t r : ranks) {
    if (!runs.empty() && runs.back().first + runs.back().chunks == r)
      ++runs.back().chunks;
    else
      runs.push_back({r});
  }
  return runs;
}

// The blocks of a node for one rank cross in one message, for each run of neighbouring ranks.
Program allToAllOf(const Nodes& nodes, uint32_t me) {
  const uint32_t node = nodes.nodeOf(me), localRank = nodes.localRankOf(me);
  const Relay mine(nodes, me);
  Program p;
  for (const uint32_t d : after(me, nodes.ranks())) {
    const uint32_t relay = nodes.onRail(node, nodes.railOf(d));
    if (nodes.nodeOf(d) == node)
      p.put(d, in(d), out(me), {d});
    else if (relay != me)
      p.put(relay, in(d), Relay(nodes, relay).fromLocal(d, localRank), {d});
  }
  p.copy(in(me), out(me), {me});
  const std::vector<Span> runs = runsOf(nodes.members(node));
  uint32_t next = mine.room() * mine.m;  // nothing is gathered in one slot here
  for (const uint32_t d : mine.blocksOf(after(node, nodes.count()))) {
    for (uint32_t i = 0; i < mine.m; ++i) {
      if (i != localRank) p.wait(nodes.members(node)[i], mine.fromLocal(d, i), {d});
      p.copy(i == localRank ? in(d) : mine.fromLocal(d, i), tmp(next + i), {d});
    }
    for (const Span run : runs) {
      p.put(d, tmp(next), out(run.first), run);
      next += run.chunks;
    }
  }
  for (const uint32_t r : neighbours(nodes, me)) p.wait(r, out(r), {me});
  for (const uint32_t b : after(node, nodes.count()))
    for (const Span run : runsOf(nodes.members(b)))
      p.wait(nodes.onRail(b, nodes.railOf(me)), out(run.first), run);
  return p;
}

Program broadcastOf(const Nodes& nodes, uint32_t root, uint32_t me) {
  const uint32_t node = nodes.nodeOf(me), rootNode = nodes.nodeOf(root);
  Program p;
  if (me == root) {
    for (uint32_t k = 1; k <= nodes.rails(); ++k) {
      const uint32_t c = (nodes.localRankOf(me) + k) % nodes.rails(), owner = nodes.onRail(node, c);
      if (owner != me) p.put(owner, in(c), out(c), {c});
    }
    p.copy(in(0), out(0), {0, nodes.rails()});
  }
  for (uint32_t c = 0; c < nodes.rails(); ++c) {
    if (!nodes.standsOn(me, c)) continue;
    if (me != root) p.wait(node == rootNode ? root : nodes.onRail(rootNode, c), out(c), {c});
    if (node == rootNode)
      for (const uint32_t b : after(node, nodes.count()))
        p.put(nodes.onRail(b, c), out(c), out(c), {c});
    for (const uint32_t r : neighbours(nodes, me))
      if (r != root) p.put(r, out(c), out(c), {c});
  }
  for (uint32_t c = 0; c < nodes.rails(); ++c)
    if (me != root && !nodes.standsOn(me, c)) p.wait(nodes.onRail(node, c), out(c), {c});
  return p;
}

}  // namespace

Schedule twoLevelAllReduce(const std::vector<uint32_t>& nodeOf) {
  const Members nodes = share(nodeOf);
  const ReduceSpace space{*nodes};
  Schedule s = emptyTwoLevel(Collective::AllReduce, *nodes, nodes->rails() * nodes->count());
  s.tmpChunks = most(*nodes, [&](uint32_t r) { return space.all(r); });
  s.program = [nodes](uint32_t me) { return AllReduceByLevels(*nodes, me).program(); };
  return s;
}

Schedule twoLevelReduceScatter(const std::vector<uint32_t>& nodeOf) {
  const Members nodes = share(nodeOf);
  const uint32_t n = nodes->ranks();
  Schedule s = emptyTwoLevel(Collective::ReduceScatter, *nodes, n);
  s.tmpChunks =
      most(*nodes, [&](uint32_t r) { return Relay(*nodes, r).rest().index + nodes->count(); });
  s.program = [nodes](uint32_t me) { return reduceScatterOf(*nodes, me); };
  return s;
}

Schedule twoLevelAllGather(const std::vector<uint32_t>& nodeOf) {
  const Members nodes = share(nodeOf);
  const uint32_t n = nodes->ranks();
  Schedule s = emptyTwoLevel(Collective::AllGather, *nodes, n);
  s.program = [nodes](uint32_t me) { return allGatherOf(*nodes, me); };
  return s;
}

Schedule twoLevelAllToAll(const std::vector<uint32_t>& nodeOf) {
  const Members nodes = share(nodeOf);
  const uint32_t n = nodes->ranks();
  Schedule s = emptyTwoLevel(Collective::AllToAll, *nodes, n);
  s.tmpChunks = most(*nodes, [&](uint32_t r) {
    const Relay relay(*nodes, r);
    return 2 * relay.room() * relay.m;
  });
  s.program = [nodes](uint32_t me) { return allToAllOf(*nodes, me); };
  return s;
}

Schedule twoLevelBroadcast(const std::vector<uint32_t>& nodeOf, uint32_t root) {
  const Members nodes = share(nodeOf);
  Schedule s = emptyTwoLevel(Collective::Broadcast, *nodes, nodes->rails(), root);
  s.program = [nodes, root](uint32_t me) { return broadcastOf(*nodes, root, me); };
  return s;
}

}  // namespace weft::schedule
