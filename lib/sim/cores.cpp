// SPDX-License-Identifier: Apache-2.0
#include "sim/cores.h"

#include <algorithm>
#include <utility>

#include "plan/polls.h"

namespace weft::sim {

// Cores matter where something shares them, and where their work is slower when memory is.
std::uint32_t Cores::coresOf(const Setting& setting, std::uint32_t streams) {
  if (setting.coresOfNode != 0) return setting.coresOfNode;
  const std::uint32_t ranks = setting.network->mostRanksOfANode();
  if (setting.computesOnCores) return ranks;
  return setting.network->limitsMemory() ? ranks * streams : 0;
}

std::vector<double> Cores::ratesOf(const Setting& setting, std::uint32_t streams) {
  const Network& network = *setting.network;
  std::vector<double> rates;
  for (std::uint32_t r = 0; r < network.resources(); ++r) rates.push_back(network.rateOf(r));
  rates.resize(rates.size() + std::size_t{network.nodes()} * coresOf(setting, streams), 1);
  return rates;
}

Cores::Cores(const Setting& setting, const Symmetry& symmetry, Clock& clock, Sharing& sharing,
             std::uint32_t ranks, std::uint32_t streams, double handOverNs)
    : setting_(setting),
      network_(*setting.network),
      symmetry_(symmetry),
      clock_(clock),
      sharing_(sharing),
      streams_(streams),
      handOverNs_(handOverNs),
      slowness_(ranks, 1),
      began_(std::size_t{ranks} * streams, 0) {
  for (const Straggler& straggler : setting.stragglers)
    if (straggler.rank < ranks) slowness_[straggler.rank] *= straggler.factor;
  if (coresOf(setting, streams) == 0) return;
  for (std::size_t i = 0; i < began_.size(); ++i) channels_.push_back(sharing_.addChannel({}));
  const std::uint32_t cores = setting.coresOfNode;
  const bool few = cores != 0 && cores < network_.mostRanksOfANode();
  if (streams == 1 && few) turns_.resize(std::size_t{network_.nodes()} * cores);
}

std::uint32_t Cores::coreOf(std::uint32_t worker) const {
  const std::uint32_t rank = rankOf(worker), cores = coresOf(setting_, streams_);
  const std::uint32_t local = network_.localRankOf(rank);
  const std::uint32_t own = setting_.sharesCores() ? local : local * streams_ + worker % streams_;
  return network_.resources() + network_.nodeOf(rank) * cores + own % cores;
}

void Cores::work(std::uint32_t worker, double ns, double memoryBytes) {
  if (turns_.empty())
    start(worker, ns, memoryBytes);
  else
    ask({worker, ns, memoryBytes});
}

void Cores::resume(std::uint32_t worker) {
  if (turns_.empty())
    start(worker, handOverNs_, 0);
  else
    ask({worker, 0, 0});
}

void Cores::ask(const Request& request) {
  Turns& turns = turns_[coreOf(request.worker) - network_.resources()];
  if (turns.holder == request.worker) {
    turns.pollsUntil = kNever;
    start(request.worker, request.ns, request.memoryBytes);
  } else if (turns.holder == kNobody) {  // at first, or some other looks for its work just now
    give(&turns, request, turns.begun ? (ranksOfCoreOf(request.worker) - 1) / 2.0 : 0);
  } else {
    turns.waiting.push_back(request);
  }
}

void Cores::give(Turns* turns, const Request& request, double turnsBefore) {
  turns->begun = true;
  turns->holder = request.worker;
  start(request.worker, request.ns + turnsBefore * handOverNs_, request.memoryBytes);
}

void Cores::pause(std::uint32_t worker, Waits waits) {
  if (turns_.empty()) return;
  Turns& turns = turns_[coreOf(worker) - network_.resources()];
  if (turns.holder != worker) return;
  if (waits == Waits::ForThisCore) return leave(&turns);
  turns.pollsUntil = clock_.now() + timeOf(pollNs(rankOf(worker)));
  clock_.post(turns.pollsUntil, Event::Kind::Polled, worker);
}

// It may have found what it waited for meanwhile, and wait again.
void Cores::polled(std::uint32_t worker) {
  Turns& turns = turns_[coreOf(worker) - network_.resources()];
  if (turns.holder == worker && turns.pollsUntil == clock_.now()) leave(&turns);
}

void Cores::leave(Turns* turns) {
  const std::uint32_t worker = std::exchange(turns->holder, kNobody);
  turns->pollsUntil = kNever;
  if (turns->waiting.empty()) return;
  const auto next = std::ranges::min_element(turns->waiting, {}, [&](const Request& request) {
    return turnsBetween(worker, request.worker);
  });
  const Request request = *next;
  turns->waiting.erase(next);
  give(turns, request, turnsBetween(worker, request.worker));
}

double Cores::pollNs(std::uint32_t rank) const {
  const std::uint32_t ranks = network_.ranksOfNode(network_.nodeOf(rank));
  return plan::pollsOnSharedCore(ranks, setting_.coresOfNode) * 1e3 / plan::kPollsPerMicrosecond;
}

bool Cores::shareACore(std::uint32_t rank, std::uint32_t other) const {
  return coreOf(workerOf(rank, 0)) == coreOf(workerOf(other, 0));
}

// The ranks of a core get it one after the other, also those that find nothing to do.
std::uint32_t Cores::turnsBetween(std::uint32_t one, std::uint32_t other) const {
  const std::uint32_t ranks = ranksOfCoreOf(one);
  return (placeOf(other) + ranks - placeOf(one) - 1) % ranks + 1;
}

std::uint32_t Cores::placeOf(std::uint32_t rank) const {
  return network_.localRankOf(rank) / setting_.coresOfNode;
}

std::uint32_t Cores::ranksOfCoreOf(std::uint32_t rank) const {
  const std::uint32_t ranks = network_.ranksOfNode(network_.nodeOf(rank));
  const std::uint32_t core = network_.localRankOf(rank) % setting_.coresOfNode;
  return (ranks - core + setting_.coresOfNode - 1) / setting_.coresOfNode;
}

void Cores::start(std::uint32_t worker, double ns, double memoryBytes) {
  began_[worker] = clock_.now();
  if (channels_.empty() || ns <= 0) {
    clock_.post(clock_.now() + timeOf(ns), Event::Kind::Worked, worker);
    return;
  }
  std::vector<Use> uses{{coreOf(worker), 1}};
  const std::uint32_t node = network_.nodeOf(rankOf(worker));
  if (network_.limitsMemory() && memoryBytes > 0)
    uses.push_back(symmetry_.folded({network_.memoryOf(node), memoryBytes / ns}));
  sharing_.setUses(channels_[worker], uses);
  sharing_.start(channels_[worker], ns, kCookie | worker, clock_.now());
}

void Cores::compute(std::uint32_t worker, double ns) {
  if (setting_.computesOnCores) return work(worker, ns, 0);
  pause(worker);
  began_[worker] = clock_.now();
  clock_.post(clock_.now() + timeOf(ns), Event::Kind::Worked, worker);
}

}  // namespace weft::sim
