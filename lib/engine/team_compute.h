// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compute.h"
#include "engine/team.h"

namespace weft::engine {

// Compute by all threads of a rank: cuts the bytes of a large op into as many pieces side by side
// as pay for what the team costs. Every op works element by element, so the bits are those of one
// thread. Without a team, or while another communicator has it, one thread does all.
class TeamCompute {
 public:
  // Peers outlive it.
  TeamCompute(PeerBuffers& peers, std::uint32_t ranks, const Crew& crew);

  // One run of a plan: has the team, if that has much to do.
  class Run {
   public:
    Run(TeamCompute& compute, const plan::Plan& plan) : compute_(compute) { compute.begin(plan); }
    ~Run() { compute_.end(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    TeamCompute& compute_;
  };

  // As Compute::run().
  bool run(const Compute::Frame& frame, const plan::BoundOp& op, std::uint64_t from,
           std::uint64_t end);
  // Copies from memory to memory by several threads; false, and nothing is done, where one is as
  // good.
  bool copy(std::byte* to, const std::byte* from, std::uint64_t bytes);
  bool hasTeam() const { return hasTeam_; }

 private:
  void begin(const plan::Plan& plan);
  void end();
  double nsOf(const plan::BoundOp& op, std::uint64_t bytes) const;
  bool mayShare(const Compute::Frame& frame, const plan::BoundOp& op) const;
  std::uint32_t piecesFor(double ns);
  template <class Body>
  void share(std::uint32_t pieces, std::uint64_t bytes, const Body& body);

  const Crew crew_;
  PeerBuffers& peers_;
  std::vector<Compute> computes_;  // by piece
  bool hasTeam_ = false;
  double leftNs_ = 0;  // what one thread would still need for this run
  bool wakes_ = false;
};

}  // namespace weft::engine
