// SPDX-License-Identifier: Apache-2.0
// What is known of each link: an n x n matrix, a row for each sender.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::health {

struct Link {
  double microseconds = 0;  // one way, the best seen; the same in both directions; 0: not measured
  double gigabytes = 0;     // per second, the best seen; 0: not measured
  double wrong = 0;         // words that arrived and were not what was sent
};

class Matrix {
 public:
  explicit Matrix(int ranks)
      : ranks_(ranks), links_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}

  int ranks() const { return ranks_; }
  Link& at(int from, int to) { return links_[index(from, to)]; }
  const Link& at(int from, int to) const { return links_[index(from, to)]; }

  // Takes in another measurement of a link.
  void add(int from, int to, const Link& link) {
    Link& best = at(from, to);
    if (link.microseconds > 0 && (best.microseconds == 0 || link.microseconds < best.microseconds))
      best.microseconds = link.microseconds;
    best.gigabytes = std::max(best.gigabytes, link.gigabytes);
    best.wrong += link.wrong;
  }

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(to);
  }

  int ranks_;
  std::vector<Link> links_;
};

}  // namespace weft::health
