// SPDX-License-Identifier: Apache-2.0
// Binomial trees: ceil(log2 n) rounds, whole vectors. Relative rank v (counted from the root) has
// the parent v - lowbit(v) and the children v + 1, v + 2, v + 4, ... below its lowest set bit.
#include <bit>

#include "schedule/algorithms/generators.h"

namespace weft::schedule {
namespace {

struct Node {
  uint32_t parent;                 // valid if not the root
  uint32_t level;                  // log2 of the distance to the parent
  std::vector<uint32_t> children;  // child k is 2^k relative ranks away
};

Node nodeOf(uint32_t n, uint32_t root, uint32_t me) {
  const uint32_t v = (me + n - root) % n;
  const uint32_t reach = v == 0 ? std::bit_ceil(n) : v & -v;
  Node node{(v - (v & -v) + root) % n, static_cast<uint32_t>(std::countr_zero(reach)), {}};
  for (uint32_t distance = 1; distance < reach && v + distance < n; distance *= 2)
    node.children.push_back((v + distance + root) % n);
  return node;
}

// There is the root, its nearest child, which is a leaf, and its next one, which is none.
Schedule emptyTree(Collective collective, uint32_t n, uint32_t root) {
  Schedule s = emptySchedule(collective, "binomial", n, 1, root);
  s.typical.push_back((root + 2) % n);
  s.hops = static_cast<uint32_t>(std::bit_width(n - 1));
  return s;
}

}  // namespace

Schedule binomialBroadcast(uint32_t n, uint32_t root) {
  Schedule s = emptyTree(Collective::Broadcast, n, root);
  s.program = [n, root](uint32_t me) {
    const Node node = nodeOf(n, root, me);
    Program p;
    if (me != root) p.wait(node.parent, out(0), {0});
    for (size_t k = node.children.size(); k > 0; --k)  // the largest subtree first
      p.put(node.children[k - 1], me == root ? in(0) : out(0), out(0), {0});
    if (me == root) p.copy(in(0), out(0), {0});
    return p;
  };
  return s;
}

Schedule binomialReduce(uint32_t n, uint32_t root) {
  const auto rounds = static_cast<uint32_t>(std::bit_width(n - 1));
  Schedule s = emptyTree(Collective::Reduce, n, root);
  s.tmpChunks = rounds + 1;  // one a child, one for the sum that goes on
  s.program = [n, root, rounds](uint32_t me) {
    const Node node = nodeOf(n, root, me);
    Program p;
    std::vector<Slot> addends{in(0)};
    for (uint32_t k = 0; k < node.children.size(); ++k) {
      p.wait(node.children[k], tmp(k), {0});
      addends.push_back(tmp(k));
    }
    if (me == root) {
      p.reduce(out(0), addends, {0});
      p.apply(ApplyId::Finish, out(0), out(0), {0});
      return p;
    }
    const Slot sum = node.children.empty() ? in(0) : tmp(rounds);
    if (!node.children.empty()) p.reduce(sum, addends, {0});
    p.put(node.parent, sum, tmp(node.level), {0});
    return p;
  };
  return s;
}

}  // namespace weft::schedule
