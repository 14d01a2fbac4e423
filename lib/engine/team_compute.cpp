// SPDX-License-Identifier: Apache-2.0
#include "engine/team_compute.h"

#include <algorithm>

namespace weft::engine {

TeamCompute::TeamCompute(PeerBuffers& peers, std::uint32_t ranks, const Crew& crew) : work_(crew) {
  computes_.reserve(work_.members());
  for (std::uint32_t k = 0; k < work_.members(); ++k) computes_.emplace_back(peers, ranks);
}

double TeamCompute::nsOf(const plan::BoundOp& op, std::uint64_t bytes) const {
  const std::uint32_t sources = op.kind == plan::BoundOp::Kind::Fold ? op.operands : 1;
  return work_.copyNs(bytes) * (sources + 1 + op.spread) / 2;
}

double TeamCompute::nsOf(const plan::Plan& plan) const {
  double ns = 0;
  for (const plan::BoundOp& op : plan.ops)
    ns += nsOf(op, std::min(op.limit, op.max * plan.segments));
  return ns;
}

// An epilogue's sums are one thread's.
bool TeamCompute::run(const Compute::Frame& frame, const plan::BoundOp& op, std::uint64_t from,
                      std::uint64_t end) {
  const bool mayShare = work_.hasTeam() && !(op.finish && frame.plan.callsEpilogue);
  const std::uint32_t pieces = mayShare ? work_.piecesFor(nsOf(op, end - from)) : 1;
  if (pieces < 2) return computes_[0].run(frame, op, from, end);
  return work_.share(pieces, end - from,
                     [&](std::uint32_t piece, std::uint64_t first, std::uint64_t last) {
                       return computes_[piece].run(frame, op, from + first, from + last);
                     });
}

std::size_t TeamCompute::bytes() const {
  std::size_t sum = 0;
  for (const Compute& compute : computes_) sum += compute.bytes();
  return sum;
}

}  // namespace weft::engine
