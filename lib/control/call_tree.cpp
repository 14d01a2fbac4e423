// SPDX-License-Identifier: Apache-2.0
#include "control/call_tree.h"

namespace weft::control {

void CallTree::add(std::span<const Call> calls) {
  std::uint64_t before = 0;
  for (const Call& call : calls) {
    if (call.seq != 0) {
      Node& node = nodes_[{call.seq, call.fingerprint}];
      node.call = call;
      if (before != 0) node.before = before;
    }
    before = call.seq != 0 ? call.fingerprint : 0;
  }
  if (nodes_.empty()) return;
  const std::uint64_t newest = nodes_.rbegin()->first.first;
  if (newest > transport::kCallRecords)
    nodes_.erase(nodes_.begin(), nodes_.lower_bound({newest - transport::kCallRecords, 0}));
}

const CallTree::Call* CallTree::find(std::uint64_t seq, std::uint64_t fingerprint) const {
  const auto found = nodes_.find({seq, fingerprint});
  return found == nodes_.end() ? nullptr : &found->second.call;
}

std::vector<CallTree::Call> CallTree::wayTo(std::uint64_t seq, std::uint64_t fingerprint) const {
  std::vector<Call> way;
  for (auto at = nodes_.find({seq, fingerprint}); at != nodes_.end();
       at = nodes_.find({--seq, at->second.before}))
    way.push_back(at->second.call);
  return way;
}

}  // namespace weft::control
