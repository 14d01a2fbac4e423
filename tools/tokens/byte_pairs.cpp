// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/byte_pairs.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace weft::tokens {
namespace {

uint64_t keyOf(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

constexpr int32_t kGone = -1;

}  // namespace

// A symbol that was joined to its left neighbour is gone; `next` and `before` skip it.
struct BytePairs::Line {
  // A pair that could be joined when it was seen.
  struct Candidate {
    uint32_t rank;
    size_t at;
    int32_t left, right, joined;
    // The first to be joined is the greatest.
    bool operator<(const Candidate& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };

  Line(const BytePairs& pairs, std::vector<int32_t>& all)
      : rules(pairs), symbols(all), next(all.size()), before(all.size()) {
    for (size_t i = 0; i < all.size(); ++i) {
      next[i] = i + 1;
      before[i] = i == 0 ? all.size() : i - 1;
    }
    for (size_t i = 0; i < all.size(); ++i) consider(i);
  }

  void consider(size_t at) {
    if (at >= symbols.size() || next[at] >= symbols.size()) return;
    const int32_t left = symbols[at], right = symbols[next[at]];
    if (const Rule* const rule = rules.ruleOf(left, right))
      queue.push({rule->rank, at, left, right, rule->joined});
  }

  bool isStill(const Candidate& pair) const {
    return symbols[pair.at] == pair.left && next[pair.at] < symbols.size() &&
           symbols[next[pair.at]] == pair.right;
  }

  void joinAt(size_t at, int32_t joined) {
    const size_t right = next[at];
    symbols[at] = joined;
    symbols[right] = kGone;
    next[at] = next[right];
    if (next[at] < symbols.size()) before[next[at]] = at;
    consider(before[at]);
    consider(at);
  }

  const BytePairs& rules;
  std::vector<int32_t>& symbols;
  std::vector<size_t> next, before;  // symbols.size(): none
  std::priority_queue<Candidate> queue;
};

bool BytePairs::add(int32_t left, int32_t right, int32_t joined) {
  return rules_.emplace(keyOf(left, right), Rule{static_cast<uint32_t>(rules_.size()), joined})
      .second;
}

const BytePairs::Rule* BytePairs::ruleOf(int32_t left, int32_t right) const {
  const auto found = rules_.find(keyOf(left, right));
  return found == rules_.end() ? nullptr : &found->second;
}

void BytePairs::join(std::vector<int32_t>& symbols) const {
  Line line(*this, symbols);
  while (!line.queue.empty()) {
    const Line::Candidate pair = line.queue.top();
    line.queue.pop();
    if (line.isStill(pair)) line.joinAt(pair.at, pair.joined);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), kGone), symbols.end());
}

}  // namespace weft::tokens
