// SPDX-License-Identifier: Apache-2.0
#include "forest/kept_flow.h"

#include <algorithm>

namespace weft::forest {

Units KeptFlow::runFrom(Kept* kept, std::uint32_t source, std::uint32_t sink, Units enough) {
  resume(kept, source, sink, enough);
  clear();
  return kept->amount;
}

KeptFlow::Found KeptFlow::runFrom(Kept* kept, std::uint32_t source, std::uint32_t sink,
                                  Units enough, std::uint32_t open, Units most) {
  resume(kept, source, sink, enough);
  edges_[open].left = kUnlimited;
  const Units more = findFew(source, sink, most);
  clear();
  edges_[open].left = edges_[open].capacity;
  return {kept->amount, more};
}

void KeptFlow::resume(Kept* kept, std::uint32_t source, std::uint32_t sink, Units enough) {
  const bool isFirst = kept->amount == 0;
  overfull_.clear();
  for (const auto& [e, units] : kept->used) {
    put(units, e);
    if (edges_[e].left < 0) overfull_.push_back(e);
  }
  for (const std::uint32_t e : overfull_) mend(e, kept, source, sink);
  kept->amount -= findFew(sink, source, kept->amount - enough);
  const Units lacking = enough - kept->amount;
  kept->amount += isFirst ? augment(source, sink, lacking) : findFew(source, sink, lacking);
  kept->used.clear();
  for (const std::uint32_t e : used_)
    if (const Units units = edges_[e + 1].left; units > 0) kept->used.push_back({e, units});
}

// What is too much for an edge takes ways around it; if there is none, it goes back to the source and
// fails to come to the sink. One edge at a time: as all others still carry what they did, that works.
void KeptFlow::mend(std::uint32_t overfull, Kept* kept, std::uint32_t source, std::uint32_t sink) {
  const Units excess = std::max(0, -edges_[overfull].left);
  const std::uint32_t from = edges_[overfull + 1].to, to = edges_[overfull].to;
  put(-excess, overfull);
  const Units lost = excess - findFew(from, to, excess);
  if (from != source) findFew(from, source, lost);
  if (to != sink) findFew(sink, to, lost);
  kept->amount -= lost;
}

// Way by way.
Units KeptFlow::findFew(std::uint32_t from, std::uint32_t to, Units enough) {
  Units found = 0;
  while (found < enough) {
    const std::uint32_t joint = findJoint(from, to);
    if (joint == kUnreached) break;
    found += putOver(joint, from, to, enough - found);
  }
  return found;
}

// The edge at which a search from `from` and one back from `to` meet.
std::uint32_t KeptFlow::findJoint(std::uint32_t from, std::uint32_t to) {
  marks_.resize(edgesOf_.size());
  search_ += 2;
  std::array<std::size_t, 2> next{0, 0};
  for (const unsigned back : {0u, 1u}) {
    fronts_[back].assign(1, back ? to : from);
    marks_[fronts_[back][0]] = {search_ + back, kUnreached};
  }
  while (next[0] < fronts_[0].size() && next[1] < fronts_[1].size()) {
    const unsigned back = fronts_[1].size() < fronts_[0].size() ? 1 : 0;
    const std::uint32_t vertex = fronts_[back][next[back]++];
    for (const std::uint32_t own : edgesOf_[vertex]) {
      const std::uint32_t e = own ^ back;
      Mark& mark = marks_[edges_[own].to];
      if (edges_[e].left <= 0 || mark.search == search_ + back) continue;
      if (mark.search == search_ + (back ^ 1)) return e;
      mark = {search_ + back, e};
      fronts_[back].push_back(edges_[own].to);
    }
  }
  return kUnreached;
}

Units KeptFlow::putOver(std::uint32_t joint, std::uint32_t from, std::uint32_t to, Units most) {
  path_.assign(1, joint);
  for (std::uint32_t v = edges_[joint ^ 1].to; v != from; v = edges_[path_.back() ^ 1].to)
    path_.push_back(marks_[v].edge);
  for (std::uint32_t v = edges_[joint].to; v != to; v = edges_[path_.back()].to)
    path_.push_back(marks_[v].edge);
  for (const std::uint32_t e : path_) most = std::min(most, edges_[e].left);
  for (const std::uint32_t e : path_) put(most, e);
  return most;
}

}  // namespace weft::forest
