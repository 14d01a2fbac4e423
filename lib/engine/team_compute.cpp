// SPDX-License-Identifier: Apache-2.0
#include "engine/team_compute.h"

#include <algorithm>

namespace weft::engine {

TeamCompute::TeamCompute(PeerBuffers& peers, std::uint32_t ranks, const Crew& crew) : work_(crew) {
  computes_.reserve(work_.members());
  for (std::uint32_t k = 0; k < work_.members(); ++k) computes_.emplace_back(peers, ranks);
}

double TeamCompute::nsOf(const plan::Plan& plan, const plan::Epilogue* epilogue,
                         const plan::BoundOp& op, std::uint64_t bytes) const {
  const std::uint32_t sources = op.kind == plan::BoundOp::Kind::Fold ? op.operands : 1;
  double touched = sources + 1 + op.spread;  // for each byte of the op
  if (op.finish && plan.callsEpilogue)
    touched += epilogue->bytesBeside() / static_cast<double>(plan.elementBytes);
  return work_.copyNs(bytes) * touched / 2;
}

double TeamCompute::nsOf(const plan::Plan& plan, const plan::Epilogue* epilogue) const {
  double ns = 0;
  for (const plan::BoundOp& op : plan.ops)
    ns += nsOf(plan, epilogue, op, std::min(op.limit, op.max * plan.segments));
  return ns;
}

// How many threads run the op.
std::uint32_t TeamCompute::piecesFor(const Compute::Frame& frame, const plan::BoundOp& op,
                                     std::uint64_t bytes) {
  if (!work_.hasTeam()) return 1;
  const std::uint32_t pieces = work_.piecesFor(nsOf(frame.plan, frame.epilogue, op, bytes));
  const bool ends = op.finish && frame.plan.callsEpilogue;
  return ends ? plan::threadsOf(*frame.epilogue, pieces) : pieces;
}

bool TeamCompute::run(const Compute::Frame& frame, const plan::BoundOp& op, std::uint64_t from,
                      std::uint64_t end) {
  const std::uint32_t pieces = piecesFor(frame, op, end - from);
  if (pieces < 2) return computes_[0].run(frame, op, from, end);
  const auto runPiece = [&](std::uint32_t piece, std::uint64_t first, std::uint64_t last) {
    Compute::Frame mine = frame;
    if (mine.epilogue) mine.epilogue = mine.epilogue->ofThread(piece);
    return computes_[piece].run(mine, op, from + first, from + last);
  };
  // An epilogue gets the same tiles as from one thread: what it makes of all of them may depend on
  // where they end.
  const bool ends = op.finish && frame.plan.callsEpilogue;
  return work_.share(pieces, end - from, runPiece, ends ? plan::kTileBytes : transport::kLine);
}

std::size_t TeamCompute::bytes() const {
  std::size_t sum = 0;
  for (const Compute& compute : computes_) sum += compute.bytes();
  return sum;
}

}  // namespace weft::engine
