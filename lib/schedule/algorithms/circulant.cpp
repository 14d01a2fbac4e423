// SPDX-License-Identifier: Apache-2.0
// Circulant reduce-scatter and all-gather: J. L. Traeff, "Optimal, Non-pipelined Reduce-scatter and
// Allreduce Algorithms" (doi 10.34726/10760). Any n, ceil(log2 n) rounds, n-1 blocks each way;
// needs commutative operations.
//
// Rank r works on the blocks r, r+1, ..., r+live-1 (mod n), at offsets 0 .. live-1. In each round
// it gives the upper half of them to the rank that has them as its lower half, until only its own
// block is left. A block is added up only when it leaves (or at the end), all its arrivals at once,
// so that a sum is rounded once a hop and only what is sent next delays the next round.
#include <algorithm>

#include "schedule/algorithms/generators.h"

namespace weft::schedule {
namespace {

// How many blocks a rank still works on before each round: n, ceil(n/2), ..., 1.
std::vector<uint32_t> liveBlocks(uint32_t n) {
  std::vector<uint32_t> live{n};
  while (live.back() > 1) live.push_back((live.back() + 1) / 2);
  return live;
}

// Blocks first, first+1, ... (mod n) as one run of slots, or two where they wrap round.
struct Run {
  uint32_t block, offset, length;
};
std::vector<Run> runs(uint32_t first, uint32_t length, uint32_t n) {
  const uint32_t start = first % n, head = std::min(length, n - start);
  std::vector<Run> result;
  if (head > 0) result.push_back({start, 0, head});
  if (length > head) result.push_back({0, head, length - head});
  return result;
}

// One rank's reduce-scatter. Tmp: the area of round k receives given[k] blocks by offset, n-1 in
// all. The area of round 0 also holds the sums that leave, in place of what arrived there.
class BlocksOnCirculants {
 public:
  BlocksOnCirculants(uint32_t n, uint32_t me) : n_(n), me_(me), live_(liveBlocks(n)) {
    uint32_t base = 0;
    for (size_t k = 0; k + 1 < live_.size(); ++k) {
      given_.push_back(live_[k] - live_[k + 1]);
      area_.push_back(base);
      base += given_[k];
    }
  }

  Program program() {
    const size_t rounds = given_.size();
    for (size_t k = 0; k < rounds; ++k) {
      if (k > 0) sum(live_[k + 1], live_[k] - untouched(k), k, tmp(live_[k + 1]));
      send(k);
      receive(k);
    }
    sum(0, 1, rounds, out(0));
    p_.apply(ApplyId::Finish, out(0), out(0), {me_});
    return std::move(p_);
  }

 private:
  // With an odd number of ranks, nothing arrives in round 0 for the last block that leaves in round
  // 1: it leaves as it is.
  uint32_t untouched(size_t k) const { return k == 1 && given_[0] < live_[1] ? 1 : 0; }

  void send(size_t k) {
    const uint32_t keep = live_[k + 1], peer = (me_ + keep) % n_, sums = given_[k] - untouched(k);
    for (Run r : runs(peer, sums, n_)) {
      const Slot source = k == 0 ? in(r.block) : tmp(keep + r.offset);
      p_.put(peer, source, tmp(area_[k] + r.offset), {r.block, r.length});
    }
    const uint32_t last = (peer + sums) % n_;
    if (untouched(k)) p_.put(peer, in(last), tmp(area_[k] + sums), {last});
  }

  void receive(size_t k) {
    const uint32_t sums = given_[k] - untouched(k), last = (me_ + sums) % n_;
    const uint32_t peer = (me_ + n_ - live_[k + 1]) % n_;
    for (Run r : runs(me_, sums, n_)) p_.wait(peer, tmp(area_[k] + r.offset), {r.block, r.length});
    if (untouched(k)) p_.wait(peer, tmp(area_[k] + sums), {last});
  }

  // Adds up the blocks at offsets [begin, end) with what arrived in the first `rounds` rounds. Only
  // the last offset may have got nothing in the last of these rounds.
  void sum(uint32_t begin, uint32_t end, size_t rounds, Slot dst) {
    const uint32_t arrived = rounds == 0 ? 0 : given_[rounds - 1];
    const uint32_t cut = std::clamp(arrived, begin, end);
    sumRun(begin, cut, rounds, dst);
    sumRun(cut, end, rounds == 0 ? 0 : rounds - 1, dst + (cut - begin));
  }

  void sumRun(uint32_t begin, uint32_t end, size_t rounds, Slot dst) {
    for (Run r : runs(me_ + begin, end - begin, n_)) {
      std::vector<Slot> addends{in(r.block)};
      for (size_t k = 0; k < rounds; ++k) addends.push_back(tmp(area_[k] + begin + r.offset));
      p_.reduce(dst + r.offset, addends, {r.block, r.length});
    }
  }

  uint32_t n_, me_;
  std::vector<uint32_t> live_, given_, area_;
  Program p_;
};

Program allGatherProgram(uint32_t n, uint32_t me) {
  const std::vector<uint32_t> live = liveBlocks(n);
  Program p;
  p.copy(in(0), out(me), {me});
  for (size_t k = live.size() - 1; k > 0; --k) {  // the rounds of the reduce-scatter, backwards
    const uint32_t have = live[k], more = live[k - 1] - have;
    for (Run r : runs(me, more, n))
      p.put((me + n - have) % n, out(r.block), out(r.block), {r.block, r.length});
    for (Run r : runs(me + have, more, n))
      p.wait((me + have) % n, out(r.block), {r.block, r.length});
  }
  return p;
}

}  // namespace

Schedule circulantReduceScatter(uint32_t n) {
  Schedule s = emptySchedule(Collective::ReduceScatter, "circulant", n, n);
  s.tmpChunks = n - 1;
  s.joinsPuts = true;
  s.program = [n](uint32_t me) { return BlocksOnCirculants(n, me).program(); };
  return s;
}

Schedule circulantAllGather(uint32_t n) {
  Schedule s = emptySchedule(Collective::AllGather, "circulant", n, n);
  s.program = [n](uint32_t me) { return allGatherProgram(n, me); };
  return s;
}

Schedule circulantAllReduce(uint32_t n) {
  return reduceScatterAllGather("circulant", circulantReduceScatter(n), circulantAllGather(n));
}

}  // namespace weft::schedule
