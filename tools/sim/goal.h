// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/job.h"

// GOAL: what ranks send, receive and compute, and after what, as LogGOPSim and ATLAHS read it
// (Hoefler, Siebert, Lumsdaine, ICPP 2009; Hoefler, Schneider, Lumsdaine, LSAP 2010;
// github.com/spcl/LogGOPSim).
//
// Each rank is one core that does what its plan says in that order, all times in picoseconds. A put is
// a send, a wait a receive, anything else a calc as long as it costs here. Sizes are one byte more
// than what is sent, since LogGOPSim counts G for all bytes but one: so (s-1)G is what a link takes.
// What GOAL cannot say is left out: that an op waits until its puts have left, credits, and that a
// core may compute while bytes come in.
namespace weft::simulator {

// What LogGOPSim is to be told: -L -o -g -G -O -S.
struct LogGops {
  std::int64_t latencyPs = 0, overheadPs = 0;
  double gapPerBytePs = 0;
};

struct GoalOp {
  enum class Kind : std::uint8_t { Send = 1, Receive = 2, Calc = 3 };
  Kind kind = Kind::Calc;
  std::uint32_t peer = 0;
  std::uint64_t size = 0;  // bytes and one, or picoseconds
  std::uint32_t tag = 0;
  std::vector<std::uint32_t> after = {};  // ops of this rank
};

struct Goal {
  LogGops parameters;
  std::vector<std::vector<GoalOp>> ranks;
};

// Of a job on a network whose messages all take one kind of way: InvalidUsage says which ones do not,
// as GOAL knows one L and one G.
Status makeGoal(const sim::Job& job, const sim::Setting& setting, Goal* goal);

// With the parameters as a comment.
std::string textOf(const Goal& goal);
// As txt2bin makes it of the text, byte for byte.
std::string binaryOf(const Goal& goal);

}  // namespace weft::simulator
