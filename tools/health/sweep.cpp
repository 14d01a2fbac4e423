// SPDX-License-Identifier: Apache-2.0
#include "tools/health/sweep.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tools/health/retrial.h"

namespace weft::health {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTrials = 12, kTrialsMemory = 36;  // of a suspect
constexpr auto kPause = std::chrono::milliseconds(3);

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int> hostNumbers(const Crew& crew) {
  std::vector<int> hosts;
  for (const Member& member : crew.members()) hosts.push_back(member.hostIndex);
  return hosts;
}

// Measures the pair if this rank belongs to it, and notes what it saw.
void measureIfMine(const Crew& crew, PairProbe& probe, int a, int b, Matrix* mine) {
  const int me = crew.rank();
  if (me != a && me != b) return;
  const int peer = me == a ? b : a;
  const PairProbe::View view = probe.measure(peer);
  mine->add(me, peer, {view.microseconds, view.gigabytes, 0});
  mine->add(peer, me, {0, 0, view.wrong});
}

// Puts together what each rank saw.
Matrix merge(Crew& crew, const Matrix& mine) {
  const int ranks = crew.size();
  std::vector<double> row;
  for (int peer = 0; peer < ranks; ++peer) {
    const Link& out = mine.at(crew.rank(), peer);
    row.insert(row.end(), {out.microseconds, out.gigabytes, mine.at(peer, crew.rank()).wrong});
  }
  Matrix all(ranks);
  const auto rows = crew.gather(row);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int peer = 0; peer < ranks; ++peer) {
      const double* seen =
          &rows[static_cast<std::size_t>(rank)][3 * static_cast<std::size_t>(peer)];
      all.add(rank, peer, {seen[0], seen[1], 0});
      all.add(peer, rank, {seen[0], 0, seen[2]});
    }
  }
  return all;
}

// One trial of each of the two links, alone. A rank that wakes up gets the core that is least busy:
// no link is judged by where the scheduler has put its two ends once.
Matrix tryOnce(Crew& crew, PairProbe& probe, const Suspect& suspect) {
  Matrix mine(crew.size());
  std::this_thread::sleep_for(kPause);
  crew.barrier();
  measureIfMine(crew, probe, suspect.from, suspect.to, &mine);
  crew.barrier();
  measureIfMine(crew, probe, suspect.usualFrom, suspect.usualTo, &mine);
  return merge(crew, mine);
}

double valueOf(Measure measure, const Link& link) {
  return measure == Measure::Latency ? link.microseconds : link.gigabytes;
}

// Another chance for a suspect; whether it is still too slow.
bool isSlowAlone(Crew& crew, PairProbe& probe, const Tolerance& tolerance, Retrial* retrial,
                 Matrix* matrix) {
  const Suspect& suspect = retrial->suspect();
  const Matrix once = tryOnce(crew, probe, suspect);
  for (int from = 0; from < crew.size(); ++from)
    for (int to = 0; to < crew.size(); ++to) matrix->at(from, to).wrong += once.at(from, to).wrong;
  const Measure measure = suspect.measure;
  return retrial->isStillSlow(tolerance, valueOf(measure, once.at(suspect.from, suspect.to)),
                              valueOf(measure, once.at(suspect.usualFrom, suspect.usualTo)));
}

}  // namespace

int sweepPairs(Crew& crew, PairProbe& probe, const SweepOptions& options, Matrix* matrix,
               const std::function<void(double)>& progress) {
  const auto rounds = pairRounds(hostNumbers(crew));
  const auto start = Clock::now();
  Matrix mine(crew.size());
  int sweeps = 0;
  for (bool more = true; more;) {
    for (const Round& round : rounds) {
      crew.barrier();
      for (const Pair& pair : round) measureIfMine(crew, probe, pair.a, pair.b, &mine);
    }
    ++sweeps;
    const double spent = since(start);
    progress(spent / options.seconds);
    // Whether another one fits.
    const bool fits = sweeps < options.least || spent * (sweeps + 1) / sweeps < options.seconds;
    more = crew.hear(fits && sweeps < options.most ? "more" : "") == "more";
  }
  *matrix = merge(crew, mine);
  return sweeps;
}

std::vector<Suspect> confirm(Crew& crew, PairProbe& probe, const std::vector<Suspect>& suspects,
                             const Tolerance& tolerance, double seconds, Matrix* matrix) {
  const auto start = Clock::now();
  std::vector<Retrial> retrials(suspects.begin(), suspects.end());
  for (int trial = 0; trial < kTrialsMemory && !retrials.empty(); ++trial) {
    std::erase_if(retrials, [&](Retrial& retrial) {
      const bool done = !retrial.suspect().memory && trial >= kTrials;
      return !done && !isSlowAlone(crew, probe, tolerance, &retrial, matrix);
    });
    const bool late = trial + 1 >= tolerance.trials && since(start) > seconds;
    if (crew.hear(late ? "late" : "") != "late") continue;
    // Hosts too busy for so many trials are too busy to tell what their memory could do.
    std::erase_if(retrials, [](const Retrial& retrial) {
      return retrial.suspect().memory && retrial.suspect().measure == Measure::Bandwidth;
    });
    break;
  }
  std::vector<Suspect> confirmed;
  for (const Retrial& retrial : retrials)
    if (retrial.isConfirmed()) confirmed.push_back(retrial.suspect());
  return confirmed;
}

}  // namespace weft::health
