// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compute.h"
#include "engine/team_work.h"

namespace weft::engine {

// Compute by all threads of a rank. Every op works element by element, so the bits are those of one
// thread.
class TeamCompute {
 public:
  // Peers outlive it.
  TeamCompute(PeerBuffers& peers, std::uint32_t ranks, const Crew& crew);

  // One run of a plan.
  class Run {
   public:
    Run(TeamCompute& compute, const plan::Plan& plan, const plan::Epilogue* epilogue)
        : call_(compute.work_, compute.work_.members() > 1 ? compute.nsOf(plan, epilogue) : 0) {}

   private:
    const TeamWork::Call call_;
  };

  // As Compute::run().
  bool run(const Compute::Frame& frame, const plan::BoundOp& op, std::uint64_t from,
           std::uint64_t end);
  TeamWork& work() { return work_; }
  const TeamWork& work() const { return work_; }
  std::size_t bytes() const;  // beyond its own size

 private:
  std::uint32_t piecesFor(const Compute::Frame& frame, const plan::BoundOp& op,
                          std::uint64_t bytes);
  double nsOf(const plan::Plan& plan, const plan::Epilogue* epilogue) const;
  double nsOf(const plan::Plan& plan, const plan::Epilogue* epilogue, const plan::BoundOp& op,
              std::uint64_t bytes) const;

  TeamWork work_;
  std::vector<Compute> computes_;  // by piece
};

}  // namespace weft::engine
