// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/collective.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

namespace weft::perf {
namespace {

using Blocks = std::vector<Block>;

std::size_t ranksOf(const Problem& problem) { return static_cast<std::size_t>(problem.ranks); }
std::size_t rankOf(const Problem& problem) { return static_cast<std::size_t>(problem.rank); }

// ---- Shapes: the same vector everywhere, or one block a rank ----

void shapeWhole(Problem& problem, std::size_t elements, std::size_t) {
  problem.total = problem.count = problem.sendCount = problem.recvCount = elements;
}

void shapeBlocks(Problem& problem, std::size_t elements, std::size_t multiple) {
  problem.count = elements / ranksOf(problem) / multiple * multiple;
  problem.total = problem.sendCount = problem.recvCount = problem.count * ranksOf(problem);
}

void shapeGathering(Problem& problem, std::size_t elements, std::size_t multiple) {
  shapeBlocks(problem, elements, multiple);
  problem.sendCount = problem.count;
  problem.sendAt = rankOf(problem) * problem.count;
}

void shapeScattering(Problem& problem, std::size_t elements, std::size_t multiple) {
  shapeBlocks(problem, elements, multiple);
  problem.recvCount = problem.count;
  problem.recvAt = rankOf(problem) * problem.count;
}

// gather and scatter of nccl-tests do not round their blocks.
void shapeGather(Problem& problem, std::size_t elements, std::size_t) {
  shapeGathering(problem, elements, 1);
}
void shapeScatter(Problem& problem, std::size_t elements, std::size_t) {
  shapeScattering(problem, elements, 1);
}
void shapeAllToAll(Problem& problem, std::size_t elements, std::size_t) {
  shapeBlocks(problem, elements, 1);
}

void shapeRing(Problem& problem, std::size_t elements, std::size_t) {
  shapeWhole(problem, elements, 1);
  problem.to = (problem.rank + 1) % problem.ranks;
  problem.from = (problem.rank + problem.ranks - 1) % problem.ranks;
}

// Uneven blocks: rank r of n ends at (r + 1)^2 / n^2 of the vector, so that block lengths are as
// 1 : 3 : 5 : ..., and short vectors have empty blocks.
std::size_t unevenStart(std::size_t elements, std::size_t rank, std::size_t ranks) {
  const std::size_t squares = ranks * ranks;
  return elements / squares * rank * rank + elements % squares * rank * rank / squares;
}

std::size_t startOf(const Problem& problem, std::size_t rank) {
  return std::accumulate(problem.counts.begin(),
                         problem.counts.begin() + static_cast<std::ptrdiff_t>(rank),
                         std::size_t{0});
}

void shapeUneven(Problem& problem, std::size_t elements) {
  const std::size_t n = ranksOf(problem);
  for (std::size_t r = 0; r < n; ++r) {
    problem.counts.push_back(unevenStart(elements, r + 1, n) - unevenStart(elements, r, n));
  }
  shapeWhole(problem, elements, 1);
}

void shapeGatheringV(Problem& problem, std::size_t elements, std::size_t) {
  shapeUneven(problem, elements);
  problem.sendCount = problem.counts[rankOf(problem)];
  problem.sendAt = startOf(problem, rankOf(problem));
}

void shapeScatteringV(Problem& problem, std::size_t elements, std::size_t) {
  shapeUneven(problem, elements);
  problem.recvCount = problem.counts[rankOf(problem)];
  problem.recvAt = startOf(problem, rankOf(problem));
}

// Rank s has blocks of all the uneven lengths, for rank r the (s + r)-th, and receives as much.
void shapeAllToAllV(Problem& problem, std::size_t elements, std::size_t) {
  shapeUneven(problem, elements);
}

std::size_t blockBetween(const Problem& p, std::size_t source, std::size_t target) {
  return p.counts[(source + target) % ranksOf(p)];
}

void shapeNothing(Problem&, std::size_t, std::size_t) {}

// ---- What arrives ----

Blocks wholeReduction(const Problem& p) { return {{0, p.count, Block::kReduced, 0}}; }
Blocks reductionAtRoot(const Problem& p) { return p.isRoot() ? wholeReduction(p) : Blocks{}; }
Blocks ownPartOfReduction(const Problem& p) {
  return {{0, p.recvCount, Block::kReduced, p.recvAt}};
}
Blocks wholeOfRoot(const Problem& p) { return {{0, p.count, p.root, 0}}; }
Blocks ownPartOfRoot(const Problem& p) { return {{0, p.count, p.root, rankOf(p) * p.count}}; }

Blocks ownPartOfRootV(const Problem& p) { return {{0, p.recvCount, p.root, p.recvAt}}; }

// Block s comes from rank s, from `stride` elements into its input.
Blocks oneBlockPerRank(const Problem& p, std::size_t stride) {
  Blocks blocks;
  std::size_t at = 0;
  for (int source = 0; source < p.ranks; ++source) {
    const std::size_t length =
        p.counts.empty() ? p.count : p.counts[static_cast<std::size_t>(source)];
    blocks.push_back({at, length, source, stride});
    at += length;
  }
  return blocks;
}

Blocks gathered(const Problem& p) { return oneBlockPerRank(p, 0); }
Blocks gatheredAtRoot(const Problem& p) { return p.isRoot() ? gathered(p) : Blocks{}; }
Blocks exchanged(const Problem& p) { return oneBlockPerRank(p, rankOf(p) * p.count); }

Blocks fromSender(const Problem& p) {
  return p.from >= 0 ? Blocks{{0, p.count, p.from, 0}} : Blocks{};
}

// What rank s has for this rank lies behind what it has for those before.
Blocks exchangedV(const Problem& p) {
  Blocks blocks;
  std::size_t at = 0;
  for (std::size_t source = 0; source < ranksOf(p); ++source) {
    std::size_t from = 0;
    for (std::size_t r = 0; r < rankOf(p); ++r) from += blockBetween(p, source, r);
    const std::size_t length = blockBetween(p, source, rankOf(p));
    blocks.push_back({at, length, static_cast<int>(source), from});
    at += length;
  }
  return blocks;
}

Blocks nothing(const Problem&) { return {}; }

// ---- Bus bandwidth (nccl-tests doc/PERFORMANCE.md): what the busiest link carries ----

double factorOne(int) { return 1; }
double factorBlocks(int n) { return static_cast<double>(n - 1) / n; }
double factorAllReduce(int n) { return 2 * factorBlocks(n); }

// ---- Calls ----

weftResult_t allReduce(const Problem& p, const Call& c) {
  return weftAllReduce(c.send, c.recv, p.count, p.type.type, c.op, c.comm, c.stream, c.options);
}
weftResult_t allGather(const Problem& p, const Call& c) {
  return weftAllGather(c.send, c.recv, p.count, p.type.type, c.comm, c.stream, c.options);
}
weftResult_t allGatherV(const Problem& p, const Call& c) {
  return weftAllGatherV(c.send, c.recv, p.counts.data(), nullptr, p.type.type, c.comm, c.stream,
                        c.options);
}
weftResult_t reduceScatter(const Problem& p, const Call& c) {
  return weftReduceScatter(c.send, c.recv, p.count, p.type.type, c.op, c.comm, c.stream, c.options);
}
weftResult_t reduceScatterV(const Problem& p, const Call& c) {
  return weftReduceScatterV(c.send, c.recv, p.counts.data(), nullptr, p.type.type, c.op, c.comm,
                            c.stream, c.options);
}
weftResult_t broadcast(const Problem& p, const Call& c) {
  return weftBroadcast(c.send, c.recv, p.count, p.type.type, p.root, c.comm, c.stream, c.options);
}
weftResult_t reduce(const Problem& p, const Call& c) {
  return weftReduce(c.send, c.recv, p.count, p.type.type, c.op, p.root, c.comm, c.stream,
                    c.options);
}
weftResult_t gather(const Problem& p, const Call& c) {
  return weftGather(c.send, c.recv, p.count, p.type.type, p.root, c.comm, c.stream, c.options);
}
weftResult_t scatter(const Problem& p, const Call& c) {
  return weftScatter(c.send, c.recv, p.count, p.type.type, p.root, c.comm, c.stream, c.options);
}
weftResult_t allToAll(const Problem& p, const Call& c) {
  return weftAlltoAll(c.send, c.recv, p.count, p.type.type, c.comm, c.stream, c.options);
}
weftResult_t barrier(const Problem&, const Call& c) {
  return weftBarrier(c.comm, c.stream, c.options);
}

// `calls` as one group, and the first error of it.
template <class Calls>
weftResult_t grouped(Calls calls) {
  weftResult_t result = weftGroupStart();
  if (result != weftSuccess) return result;
  result = calls();
  const weftResult_t ended = weftGroupEnd();
  return result == weftSuccess ? ended : result;
}

weftResult_t sendRecv(const Problem& p, const Call& c) {
  return grouped([&]() {
    weftResult_t result = weftSuccess;
    if (p.to >= 0) {
      result = weftSend(c.send, p.count, p.type.type, p.to, c.comm, c.stream, c.options);
    }
    if (p.from >= 0 && result == weftSuccess) {
      result = weftRecv(c.recv, p.count, p.type.type, p.from, c.comm, c.stream, c.options);
    }
    return result;
  });
}

weftResult_t allToAllV(const Problem& p, const Call& c) {
  std::vector<std::size_t> counts;  // of both directions
  for (std::size_t peer = 0; peer < ranksOf(p); ++peer)
    counts.push_back(blockBetween(p, rankOf(p), peer));
  return weftAlltoAllV(c.send, counts.data(), nullptr, c.recv, counts.data(), nullptr, p.type.type,
                       c.comm, c.stream, c.options);
}

weftResult_t gatherV(const Problem& p, const Call& c) {
  return weftGatherV(c.send, p.sendCount, c.recv, p.counts.data(), nullptr, p.type.type, p.root,
                     c.comm, c.stream, c.options);
}

weftResult_t scatterV(const Problem& p, const Call& c) {
  return weftScatterV(c.send, p.counts.data(), nullptr, c.recv, p.recvCount, p.type.type, p.root,
                      c.comm, c.stream, c.options);
}

constexpr bool kReduces = true, kRooted = true, kInPlace = true, kReplicates = true, kPlans = true;

constexpr std::array<Collective, 15> kCollectives = {{
    {"all_reduce", kReduces, !kRooted, kInPlace, kReplicates, kPlans, shapeWhole, wholeReduction,
     factorAllReduce, allReduce},
    {"all_gather", !kReduces, !kRooted, kInPlace, kReplicates, kPlans, shapeGathering, gathered,
     factorBlocks, allGather},
    {"all_gather_v", !kReduces, !kRooted, kInPlace, kReplicates, kPlans, shapeGatheringV, gathered,
     factorBlocks, allGatherV},
    {"reduce_scatter", kReduces, !kRooted, kInPlace, !kReplicates, kPlans, shapeScattering,
     ownPartOfReduction, factorBlocks, reduceScatter},
    {"reduce_scatter_v", kReduces, !kRooted, kInPlace, !kReplicates, kPlans, shapeScatteringV,
     ownPartOfReduction, factorBlocks, reduceScatterV},
    {"broadcast", !kReduces, kRooted, kInPlace, kReplicates, kPlans, shapeWhole, wholeOfRoot,
     factorOne, broadcast},
    {"reduce", kReduces, kRooted, kInPlace, !kReplicates, kPlans, shapeWhole, reductionAtRoot,
     factorOne, reduce},
    {"gather", !kReduces, kRooted, kInPlace, !kReplicates, kPlans, shapeGather, gatheredAtRoot,
     factorBlocks, gather},
    {"scatter", !kReduces, kRooted, kInPlace, !kReplicates, kPlans, shapeScatter, ownPartOfRoot,
     factorBlocks, scatter},
    {"gather_v", !kReduces, kRooted, kInPlace, !kReplicates, !kPlans, shapeGatheringV,
     gatheredAtRoot, factorBlocks, gatherV},
    {"scatter_v", !kReduces, kRooted, kInPlace, !kReplicates, !kPlans, shapeScatteringV,
     ownPartOfRootV, factorBlocks, scatterV},
    {"alltoall", !kReduces, !kRooted, !kInPlace, !kReplicates, kPlans, shapeAllToAll, exchanged,
     factorBlocks, allToAll},
    {"alltoallv", !kReduces, !kRooted, !kInPlace, !kReplicates, !kPlans, shapeAllToAllV, exchangedV,
     factorBlocks, allToAllV},
    {"sendrecv", !kReduces, !kRooted, !kInPlace, !kReplicates, !kPlans, shapeRing, fromSender,
     factorOne, sendRecv},
    {"barrier", !kReduces, !kRooted, !kInPlace, !kReplicates, kPlans, shapeNothing, nothing,
     factorOne, barrier},
}};

}  // namespace

std::span<const Collective> allCollectives() { return kCollectives; }

const Collective& parseCollective(const std::string& name) {
  std::string names;
  for (const Collective& collective : kCollectives) {
    if (name == collective.name || name == std::string(collective.name) + "_perf") {
      return collective;
    }
    names += std::string(" ") + collective.name;
  }
  throw std::invalid_argument("unknown collective '" + name + "'; use one of" + names);
}

Problem makeProblem(const Collective& collective, const TypeInfo& type, const OpInfo& op, int root,
                    int rank, int ranks, std::size_t bytes, bool roundBlocks) {
  Problem problem{&collective, type, op, root, rank, ranks};
  const std::size_t multiple = roundBlocks ? std::size_t{16} / type.bytes : 1;
  collective.shape(problem, bytes / type.bytes, multiple);
  return problem;
}

void routeBy(const std::vector<Pair>& pairs, Problem& problem) {
  problem.to = problem.from = -1;
  for (const Pair& pair : pairs) {
    if (pair.source == problem.rank) problem.to = pair.target;
    if (pair.target == problem.rank) problem.from = pair.source;
  }
}

}  // namespace weft::perf
