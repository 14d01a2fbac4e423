// SPDX-License-Identifier: Apache-2.0
#include "forest/pack.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace weft::forest {
namespace {

struct Arc {
  std::uint32_t from = 0, to = 0, edge = 0;  // of the flow
  Units capacity = 0;                        // of the whole graph
};

// An arc that a tree may take. Its key only grows.
struct Shoot {
  double at = 0, used = 0;  // when a part comes over it, and its share that is in use
  std::uint32_t turn = 0, arc = 0;
  bool operator>(const Shoot& other) const {
    return std::tuple(at, used, turn) > std::tuple(other.at, other.used, other.turn);
  }
};

// A tree that does not reach all ranks yet.
struct Sapling {
  Tree tree;
  std::vector<std::uint32_t> reached;
  std::vector<double> at;  // by rank: when a part comes there; < 0: not yet
  std::vector<bool>
      refused;  // by arc: for good, as a set of ranks that is short of capacity stays so
  std::priority_queue<Shoot, std::vector<Shoot>, std::greater<>> shoots;
  std::uint32_t turns = 0;  // shoots that there were
  const Arc* next = nullptr;
};

// Up to so many ranks all trees grow at once, each by an edge in turn, so that none is left with what the
// others did not want, and is deep. It takes flows among all trees instead of all ranks.
constexpr std::uint32_t kTogether = 32;

class Packer {
 public:
  Packer(const UnitGraph& units, const Demand& demand)
      : ranks_(units.ranks()), demand_(demand), flow_(ranks_ + 2), kept_(ranks_), arcsOf_(ranks_) {
    for (std::uint32_t a = 0; a < ranks_; ++a)
      for (std::uint32_t b = 0; b < ranks_; ++b)
        if (const Units c = a == b ? 0 : units.between(a, b); c > 0) {
          arcsOf_[a].push_back(static_cast<std::uint32_t>(arcs_.size()));
          arcs_.push_back({a, b, flow_.addEdge(a, b, c), c});
        }
    flow_.addEdge(source(), waiting(), kAny);
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      starts_.push_back(flow_.addEdge(source(), r, 0));
      roots_.push_back(flow_.addEdge(waiting(), r, 0));
    }
    for (const std::uint32_t root : demand.roots) {
      flow_.setCapacity(roots_[root], demand.parts);
      left_ += demand.parts;
    }
  }

  std::vector<Tree> run() {
    if (ranks_ <= kTogether) return growTogether();
    for (const std::uint32_t root : demand_.roots) {
      std::vector<Sapling> saplings{seed(root)};
      left_ -= demand_.parts;
      flow_.setCapacity(roots_[root], 0);
      while (!saplings.empty()) {
        Sapling one = std::move(saplings.back());
        saplings.pop_back();
        if (!grow(std::move(one), &saplings)) return {};
      }
    }
    return std::move(trees_);
  }

 private:
  static constexpr Units kAny = MaxFlow<Units>::kUnlimited;
  std::uint32_t source() const { return ranks_; }
  std::uint32_t waiting() const { return ranks_ + 1; }

  Sapling seed(std::uint32_t root) const {
    Sapling one;
    one.tree = {root, 0, static_cast<std::uint32_t>(demand_.parts), {}};
    one.reached = {root};
    one.at.assign(ranks_, -1);
    one.refused.assign(arcs_.size(), false);
    one.at[root] = 0;
    sprout(&one, root);
    return one;
  }

  // Where fewer parts than a tree has may take an edge, the others go on as a tree of their own.
  bool grow(Sapling one, std::vector<Sapling>* others) {
    while (one.reached.size() < ranks_) {
      one.next = nextArc(&one);
      if (one.next == nullptr) return false;
      extend(&one, others);
    }
    trees_.push_back(std::move(one.tree));
    return true;
  }

  // By its next arc, if the others leave that to it.
  void extend(Sapling* one, std::vector<Sapling>* others) {
    const Arc& arc = *std::exchange(one->next, nullptr);
    const Units most = std::min(flow_.capacity(arc.edge), static_cast<Units>(one->tree.parts));
    const Units parts = mayTake(arc, most, *others);
    if (parts == 0) {
      one->refused[static_cast<std::size_t>(&arc - arcs_.data())] = true;
      return;
    }
    if (parts < static_cast<Units>(one->tree.parts)) others->push_back(cut(one, parts));
    take(arc, one);
  }

  std::vector<Tree> growTogether() {
    std::vector<Sapling> all;
    for (const std::uint32_t root : demand_.roots) {
      all.push_back(seed(root));
      flow_.setCapacity(roots_[root], 0);
    }
    left_ = 0;
    while (!all.empty()) {
      for (Sapling& one : all) {
        if (one.next == nullptr || flow_.capacity(one.next->edge) == 0) one.next = nextArc(&one);
        if (one.next == nullptr) return {};
      }
      const auto first = std::ranges::min_element(
          all, {}, [](const Sapling& one) { return arrival(one, *one.next); });
      Sapling one = std::move(*first);
      *first = std::move(all.back());
      all.pop_back();
      extend(&one, &all);
      if (one.reached.size() < ranks_)
        all.push_back(std::move(one));
      else
        trees_.push_back(std::move(one.tree));
    }
    std::ranges::sort(trees_, {}, [](const Tree& t) { return std::pair(t.root, t.first); });
    return std::move(trees_);
  }

  // When a part comes over it, in the time that a link of one unit takes.
  static double arrival(const Sapling& one, const Arc& arc) {
    return one.at[arc.from] + 1.0 / arc.capacity;
  }

  // The one over which a part comes first somewhere; of those the least used.
  const Arc* nextArc(Sapling* one) const {
    while (!one->shoots.empty()) {
      Shoot shoot = one->shoots.top();
      const Arc& arc = arcs_[shoot.arc];
      const double used = usedOf(arc);
      const bool mayBe = one->at[arc.to] < 0 && used < 1 && !one->refused[shoot.arc];
      if (mayBe && used == shoot.used) return &arc;
      one->shoots.pop();
      if (!mayBe) continue;
      shoot.used = used;
      one->shoots.push(shoot);
    }
    return nullptr;
  }
  double usedOf(const Arc& arc) const {
    return 1 - static_cast<double>(flow_.capacity(arc.edge)) / arc.capacity;
  }
  void sprout(Sapling* one, std::uint32_t rank) const {
    for (const std::uint32_t number : arcsOf_[rank]) {
      const Arc& arc = arcs_[number];
      one->shoots.push({arrival(*one, arc), usedOf(arc), one->turns++, number});
    }
  }

  // How many parts of the tree in hand may take the edge: every set of ranks without its start must be
  // entered, beyond what the trees need that have not begun there, so often.
  Units mayTake(const Arc& arc, Units most, const std::vector<Sapling>& others) {
    if (!others.empty()) return mayTakeBeside(arc, most, others);
    const auto [flow, more] =
        flow_.runFrom(&kept_[arc.to], source(), arc.to, left_, starts_[arc.from], most);
    return std::clamp(flow + more - left_, 0, most);
  }

  // The same with trees that have begun: each is a vertex more, from which its parts go to where it is.
  Units mayTakeBeside(const Arc& arc, Units most, const std::vector<Sapling>& others) const {
    MaxFlow<Units> flow = flow_;
    Units left = left_;
    for (const Sapling& other : others) {
      const std::uint32_t vertex = flow.addVertex();
      flow.addEdge(source(), vertex, static_cast<Units>(other.tree.parts));
      for (const std::uint32_t r : other.reached) flow.addEdge(vertex, r, kAny);
      left += static_cast<Units>(other.tree.parts);
    }
    flow.setCapacity(starts_[arc.from], kAny);
    return std::clamp(flow.run(source(), arc.to, left + most) - left, 0, most);
  }

  // Keeps the first `parts` of a tree, and returns the rest.
  static Sapling cut(Sapling* one, Units parts) {
    Sapling rest = *one;
    rest.tree.first += static_cast<std::uint32_t>(parts);
    rest.tree.parts -= static_cast<std::uint32_t>(parts);
    one->tree.parts = static_cast<std::uint32_t>(parts);
    return rest;
  }

  void take(const Arc& arc, Sapling* one) {
    flow_.setCapacity(arc.edge, flow_.capacity(arc.edge) - static_cast<Units>(one->tree.parts));
    one->at[arc.to] = arrival(*one, arc);
    one->reached.push_back(arc.to);
    one->tree.edges.push_back({arc.from, arc.to});
    sprout(one, arc.to);
  }

  const std::uint32_t ranks_;
  const Demand& demand_;
  KeptFlow flow_;
  std::vector<KeptFlow::Kept> kept_;  // of what has not begun, to each rank
  std::vector<Arc> arcs_;
  std::vector<std::vector<std::uint32_t>> arcsOf_;
  std::vector<std::uint32_t> starts_, roots_;  // edges, by rank
  Units left_ = 0;                             // parts of trees that have not begun
  std::vector<Tree> trees_;
};

}  // namespace

std::vector<Tree> packTrees(const UnitGraph& units, const Demand& demand) {
  return Packer(units, demand).run();
}

}  // namespace weft::forest
