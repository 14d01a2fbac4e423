// SPDX-License-Identifier: Apache-2.0
#include "engine/team_compute.h"

#include <algorithm>

#include "base/copy.h"
#include "transports/window.h"

namespace weft::engine {
namespace {

// A piece takes at least twice what sharing costs, so two threads gain a quarter of the time or more.
constexpr double kWorth = 2;
// A thread that shares its core may lose it for a scheduler's slice, while the others wait for its
// piece. Then only what is so long is worth it that this is the smaller part.
constexpr double kSliceNs = 4e6, kMostLoss = 0.05;

}  // namespace

TeamCompute::TeamCompute(PeerBuffers& peers, std::uint32_t ranks, const Crew& crew)
    : crew_(crew), peers_(peers) {
  const std::uint32_t members = crew.team ? crew.team->size() : 1;
  computes_.reserve(members);
  for (std::uint32_t k = 0; k < members; ++k) computes_.emplace_back(peers, ranks);
}

double TeamCompute::nsOf(const plan::BoundOp& op, std::uint64_t bytes) const {
  const std::uint32_t sources = op.kind == plan::BoundOp::Kind::Fold ? op.operands : 1;
  return static_cast<double>(bytes) * crew_.nsPerByte * (sources + 1 + op.spread) / 2;
}

void TeamCompute::begin(const plan::Plan& plan) {
  if (!crew_.team) return;
  leftNs_ = 0;
  for (const plan::BoundOp& op : plan.ops)
    leftNs_ += nsOf(op, std::min(op.limit, op.max * plan.segments));
  const Team::Costs& costs = crew_.team->costs();
  hasTeam_ = leftNs_ >= kWorth * std::min(costs.awakeNs, costs.asleepNs) && crew_.team->take();
  if (hasTeam_ && crew_.cores > 1) crew_.team->stayAwake();
}

void TeamCompute::end() {
  if (!hasTeam_) return;
  hasTeam_ = false;
  crew_.team->rest();
  crew_.team->release();
}

// For members that have a core each. Ops come one after another, and helpers that are awake take the
// next ones, too: so what is left of the run must be worth waking them.
std::uint32_t TeamCompute::piecesFor(double ns) {
  const Team::Costs& costs = crew_.team->costs();
  const std::uint32_t members = crew_.team->size(), seated = std::min(members, crew_.cores);
  wakes_ = leftNs_ >= kWorth * costs.asleepNs;
  leftNs_ -= ns;
  if (ns * kMostLoss >= kSliceNs) return members;
  if (seated < 2 || !(wakes_ || crew_.team->isAwake())) return 1;
  return static_cast<std::uint32_t>(std::clamp(ns / (kWorth * costs.awakeNs), 1.0, double(seated)));
}

// body(piece, from, end) for so many pieces of whole cache lines, which hold whole elements.
template <class Body>
void TeamCompute::share(std::uint32_t pieces, std::uint64_t bytes, const Body& body) {
  struct Job {
    const Body& body;
    std::uint64_t each, bytes;
  } job{body, transport::roundUp((bytes + pieces - 1) / pieces, transport::kLine), bytes};
  const auto onePiece = [](void* arg, int piece) {
    const Job& j = *static_cast<const Job*>(arg);
    const std::uint64_t from = std::min(j.bytes, static_cast<std::uint64_t>(piece) * j.each);
    const std::uint64_t end = std::min(j.bytes, from + j.each);
    if (from < end) j.body(static_cast<std::uint32_t>(piece), from, end);
  };
  crew_.team->run(pieces, onePiece, &job, wakes_);
}

// CMA copies are one thread's: the transport keeps their error. So are an epilogue's sums.
bool TeamCompute::mayShare(const Compute::Frame& frame, const plan::BoundOp& op) const {
  return hasTeam_ && (op.crossings == 0 || peers_.mapped()) &&
         !(op.finish && frame.plan.callsEpilogue);
}

bool TeamCompute::run(const Compute::Frame& frame, const plan::BoundOp& op, std::uint64_t from,
                      std::uint64_t end) {
  const std::uint32_t pieces = mayShare(frame, op) ? piecesFor(nsOf(op, end - from)) : 1;
  if (pieces < 2) return computes_[0].run(frame, op, from, end);
  share(pieces, end - from, [&](std::uint32_t piece, std::uint64_t first, std::uint64_t last) {
    (void)computes_[piece].run(frame, op, from + first, from + last);
  });
  return true;
}

bool TeamCompute::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const std::uint32_t pieces =
      hasTeam_ ? piecesFor(static_cast<double>(bytes) * crew_.nsPerByte) : 1;
  if (pieces < 2) return false;
  share(pieces, bytes, [&](std::uint32_t, std::uint64_t first, std::uint64_t last) {
    copyBytes(to + first, from + first, last - first);
  });
  return true;
}

}  // namespace weft::engine
