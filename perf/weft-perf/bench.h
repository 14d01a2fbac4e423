// SPDX-License-Identifier: Apache-2.0
// Times and checks one collective of one size on one rank. Every rank of the team makes the same
// calls of this class in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "perf/weft-perf/buffer.h"
#include "perf/weft-perf/collective.h"
#include "perf/weft-perf/options.h"
#include "perf/weft-perf/recipe.h"
#include "perf/weft-perf/team.h"

namespace weft::perf {

enum class Placement { OutOfPlace, InPlace };

struct Measurement {
  double seconds = 0;                  // per call, over the ranks as -a says
  std::optional<std::uint64_t> wrong;  // elements, over all ranks and checks
  std::vector<double> iterations;      // seconds of single calls, of the slowest rank in each

  std::vector<double> microseconds() const { return microsecondsAfter(0); }
  std::vector<double> microsecondsAfter(int skipped) const {  // of -K
    std::vector<double> values(iterations.begin() + skipped, iterations.end());
    for (double& value : values) value *= 1e6;
    return values;
  }
};

// What a rank has received wrong in all checks, in a form that ranks can send to each other.
struct WrongData {
  static constexpr int kNowhere = -2;  // no element is wrong, but the ranks' results differ
  static constexpr int kSeveral = -1;  // from several ranks, or reduced over all
  int rank;                            // of the world
  int group, rankInGroup;
  int source;  // the rank in the group whose data it was, or one of the above
  std::uint64_t elements;
};

// `phase` is told what is being done, for the progress line.
using Phase = std::function<void(const char* doing)>;

class Bench {
 public:
  Bench(const Options& options, Team& team);

  Problem problem(const TypeInfo& type, const OpInfo& op, int root, std::size_t bytes);
  Measurement measure(const Problem& problem, Placement placement, const Phase& phase);
  // The ops of one call as this rank ran them, at most 65,536.
  std::vector<weftOpSpan_t> trace(const Problem& problem);
  // What the library says of how and why it runs this problem, and of the machine.
  std::string explain(const Problem& problem);
  std::string explainMachine();
  std::string explainEdges();  // of this rank
  // Of this rank, whatever the others say.
  WrongData wrongHere();

 private:
  class Operation;

  std::size_t sendBytes();
  std::string explanation(const char* collective, std::size_t count, weftDataType_t type,
                          weftRedOp_t op);
  Recipe recipeFor(const Problem& problem, Fill fill);
  void prepare(const Problem& problem, Placement placement, const Recipe& recipe);
  void settle(Operation& operation);
  double timeSteadily(Operation& operation);
  std::vector<double> timeSingly(Operation& operation);
  std::uint64_t checkAll(const Problem& problem, Placement placement, const Phase& phase);
  std::uint64_t check(const Problem& problem, Placement placement, Fill fill);
  CheckResult verify(const Problem& problem, Placement placement, const Recipe& recipe);
  CheckResult verifyBlocks(const Problem& problem, Placement placement, const Recipe& recipe);
  CheckResult verifyInput(const Problem& problem, Placement placement, const Recipe& recipe);
  CheckResult compareHashes(const Problem& problem, Placement placement);
  void reportWrong(const Problem& problem, Placement placement, const Recipe& recipe,
                   const CheckResult& found);

  unsigned char* sendData(const Problem& problem, Placement placement);
  unsigned char* recvData(const Problem& problem, Placement placement);
  double now() const;

  const Options& options_;
  Team& team_;
  Buffer recv_;  // also both sides of calls in place
  Buffer send_;
  std::optional<Stream> stream_;
  weftOpts_t callOptions_;
  std::uint32_t seed_;
  std::uint64_t wrongHere_ = 0;
  std::set<int> wrongSources_;
  int reports_ = 0;
};

}  // namespace weft::perf
