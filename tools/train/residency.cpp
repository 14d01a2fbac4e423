// SPDX-License-Identifier: Apache-2.0
#include "tools/train/residency.h"

#include <numeric>
#include <utility>

namespace weft::train {

Residency::Residency(std::vector<std::set<int>> buckets, FirstLayer firstLayer)
    : buckets_(std::move(buckets)), atTheTurn_(buckets_.back()) {
  if (firstLayer != FirstLayer::kIsFirst)
    atTheTurn_.insert(buckets_.front().begin(), buckets_.front().end());
  for (size_t layer = 0; layer < buckets_.size(); ++layer) {
    for (const int bucket : buckets_[layer]) {
      if (uses_.size() <= static_cast<size_t>(bucket))
        uses_.resize(static_cast<size_t>(bucket) + 1);
      uses_[static_cast<size_t>(bucket)] +=
          firstLayer == FirstLayer::kIsFirstAndLast && layer == 0 ? 2 : 1;
    }
  }
}

void Residency::begin(Pass pass) {
  pass_ = pass;
  left_ = uses_;
  allLeft_ = std::accumulate(uses_.begin(), uses_.end(), 0);
}

Residency::Wanted Residency::use(size_t layer, Pass pass) {
  if (pass != pass_ || allLeft_ == 0) begin(pass);
  const std::set<int>& used = buckets_[layer];
  Wanted wanted{{used.rbegin(), used.rend()}, -1};
  if (used.empty()) return wanted;
  const int next = pass == Pass::kForward ? *used.begin() - 1 : *used.rbegin() + 1;
  const bool comes = next >= 0 && next < static_cast<int>(left_.size());
  if (comes && left_[static_cast<size_t>(next)] > 0) wanted.next = next;
  return wanted;
}

std::vector<int> Residency::leave(size_t layer, Pass pass) {
  std::vector<int> gone;
  for (const int bucket : buckets_[layer]) {
    --allLeft_;
    if (--left_[static_cast<size_t>(bucket)] > 0) continue;
    if (pass == Pass::kBackward || !atTheTurn_.contains(bucket)) gone.push_back(bucket);
  }
  return gone;
}

}  // namespace weft::train
