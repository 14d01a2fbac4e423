// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/predict.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <vector>

#include "plan/call.h"
#include "tools/sim/planned.h"

namespace weft::simulator {
namespace {

using Clock = std::chrono::steady_clock;

plan::Call callOf(const Options& options, const perf::Problem& problem) {
  plan::Call call;
  for (int c = 0; c <= static_cast<int>(schedule::Collective::Barrier); ++c) {
    const auto one = static_cast<schedule::Collective>(c);
    for (const bool uneven : {false, true})
      if (plan::collectiveName(one, uneven) == options.collective->name) call.collective = one;
  }
  call.type = static_cast<reduce::DType>(options.type.type);
  call.root = schedule::isRooted(call.collective) ? options.root : 0;
  call.count = call.collective == schedule::Collective::Barrier ? 0 : problem.count;
  call.counts = problem.counts;
  call.algorithm = options.algorithm;
  return call;
}

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

class Prediction {
 public:
  Prediction(const Options& options, const Cluster& cluster, const plan::Call& call)
      : options_(options),
        cluster_(cluster),
        job_(makeJobOfAll(options, cluster)),
        planned_(*job_, call, options.ownBuffers) {}

  Status run(const std::function<void(const sim::Span&)>& observe, Goal* goal, Row* row) {
    WEFT_TRY(planned_.decide(&row->tooLarge));
    row->estimates = planned_.estimates();
    WEFT_TRY(describe(row));
    setting_.network = &cluster_.network;
    setting_.messageNs = options_.messageNs;
    const bool shares = options_.coresOfNode < cluster_.network.mostRanksOfANode();
    setting_.coresOfNode = shares ? options_.coresOfNode : 0;
    setting_.stragglers = options_.stragglers;
    setting_.folds = options_.folds;
    setting_.evens = options_.evens || (options_.folds && mayEven());
    setting_.observe = observe;
    WEFT_TRY(sim::simulate(simulated(), setting_, &row->result));
    setting_.observe = nullptr;
    if (goal != nullptr) WEFT_TRY(makeGoal(simulated(), setting_, goal));
    return options_.sigma > 0 ? draw(row) : Status();
  }

 private:
  Status describe(Row* row) {
    std::unique_ptr<const plan::Plan> runs;
    WEFT_TRY(planned_.bind(0, &row->hash, &runs));
    row->algorithm = runs->algorithm;
    row->segments = runs->segments;
    return {};
  }

  sim::Job simulated() {
    sim::Job job;
    job.plan = [this](std::uint32_t rank, std::unique_ptr<const plan::Plan>* out) {
      return planned_.bind(rank, nullptr, out);
    };
    job.regions = [this](bool inRing) { return job_->regionsOf(inRing); };
    job.costs = &job_->tuning().costs;
    job.sharesBuffers = options_.ownBuffers;
    return job;
  }

  // What is exact takes too long then.
  bool mayEven() const {
    constexpr std::uint32_t kMany = 128;
    return !options_.exact && planned_.call().counts.empty() && cluster_.network.ranks() >= kMany;
  }

  Status draw(Row* row) {
    std::vector<double> times;
    for (int i = 0; i < options_.draws; ++i) {
      setting_.jitter = {options_.seed + static_cast<std::uint64_t>(i), options_.sigma};
      sim::Result result;
      WEFT_TRY(sim::simulate(simulated(), setting_, &result));
      times.push_back(result.ns);
    }
    row->lowNs = quantile(times, 0.05);
    row->highNs = quantile(times, 0.95);
    return {};
  }

  const Options& options_;
  const Cluster& cluster_;
  const std::unique_ptr<tools::Job> job_;
  Planned planned_;
  sim::Setting setting_;
};

// Of the trees that were grown those along which this call takes least. With more parts there may be no
// plan; only the first trees must have one.
Status chooseTrees(const Options& options, const plan::Call& call, Cluster* cluster) {
  Options quiet = options;
  quiet.sigma = 0;
  double least = std::numeric_limits<double>::infinity();
  std::shared_ptr<const forest::Links> best;
  for (const auto& links : cluster->trees) {
    Row row;
    cluster->links = links;
    const Status ran = Prediction(quiet, *cluster, call).run(nullptr, nullptr, &row);
    if (best == nullptr) WEFT_TRY(ran);
    if (!ran.ok() || row.result.ns >= least) continue;
    best = links;
    least = row.result.ns;
  }
  cluster->links = best;
  return {};
}

}  // namespace

Status predict(const Options& options, const Cluster& cluster, std::size_t bytes,
               const std::function<void(const sim::Span&)>& observe, Goal* goal, Row* row) {
  const int ranks = static_cast<int>(cluster.network.ranks());
  const perf::Problem problem = perf::makeProblem(*options.collective, options.type, perf::noOp(),
                                                  options.root, 0, ranks, bytes, true);
  const plan::Call call = callOf(options, problem);
  WEFT_TRY(checkRank(cluster, "--root", static_cast<std::uint32_t>(options.root)));
  *row = {};
  row->bytes = problem.bytes();
  row->count = problem.count;
  row->busFactor = options.collective->busFactor(ranks);
  row->bound = sim::boundOf(cluster.network, call.collective, static_cast<std::uint32_t>(call.root),
                            static_cast<double>(row->bytes));
  const auto start = Clock::now();
  if (cluster.trees.size() < 2) {
    WEFT_TRY(Prediction(options, cluster, call).run(observe, goal, row));
  } else {
    Cluster chosen = cluster;
    WEFT_TRY(chooseTrees(options, call, &chosen));
    WEFT_TRY(Prediction(options, chosen, call).run(observe, goal, row));
  }
  row->seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {};
}

}  // namespace weft::simulator
