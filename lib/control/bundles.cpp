// SPDX-License-Identifier: Apache-2.0
#include "control/bundles.h"

#include <algorithm>
#include <utility>

#include "control/bodies.h"

namespace weft::control {

void Bundles::add(std::uint32_t rank, net::MessageType type, Body body) {
  const auto last = lastOf_.find(rank);
  std::size_t first = last == lastOf_.end() ? 0 : last->second + 1;  // not before one of its own
  if (bundles_.size() > kLookBack) first = std::max(first, bundles_.size() - kLookBack);
  for (std::size_t i = first; i < bundles_.size(); ++i) {
    Bundle& bundle = bundles_[i];
    if (bundle.type != type || (bundle.body != body && *bundle.body != *body)) continue;
    bundle.ranks.push_back(rank);
    lastOf_[rank] = i;
    return;
  }
  lastOf_[rank] = bundles_.size();
  bundles_.push_back({type, std::move(body), {rank}});
}

std::vector<net::Bytes> Bundles::take() {
  std::vector<net::Bytes> all;
  for (Bundle& bundle : bundles_) {
    std::ranges::sort(bundle.ranks);
    RankSet ranks;
    for (const std::uint32_t rank : bundle.ranks) ranks.add(rank);
    all.push_back(encodeRelayed(ranks, bundle.type, *bundle.body));
  }
  bundles_.clear();
  lastOf_.clear();
  return all;
}

}  // namespace weft::control
