// SPDX-License-Identifier: Apache-2.0
// When the whole copy of a bucket of sharded parameters is there. Layers share buckets, and buckets
// layers: a copy comes with its first use in a pass and goes with its last one, and what the last
// layer of forward has used stays for the first of backward. So each bucket comes at most twice in a
// micro-step, however buckets are cut.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "tools/train/parameters.h"

namespace weft::train {

enum class Pass { kForward, kBackward };

class Residency {
 public:
  // By layer, in the order in which forward uses them, its buckets, of which forward uses the last
  // one first; but for the first layer, which is used when `firstLayer` says.
  Residency(std::vector<std::set<int>> buckets, FirstLayer firstLayer);

  // Before a use of a layer: the buckets that must be there, in order, and the one to begin to bring
  // for the layers after it, or -1.
  struct Wanted {
    std::vector<int> now;
    int next;
  };
  Wanted use(size_t layer, Pass pass);
  // After it: those that go.
  std::vector<int> leave(size_t layer, Pass pass);

 private:
  void begin(Pass pass);

  std::vector<std::set<int>> buckets_;
  std::set<int> atTheTurn_;  // used by the last layer
  std::vector<int> uses_;    // of a pass, by bucket
  Pass pass_ = Pass::kBackward;
  std::vector<int> left_;  // of those, in this pass
  int allLeft_ = 0;
};

}  // namespace weft::train
