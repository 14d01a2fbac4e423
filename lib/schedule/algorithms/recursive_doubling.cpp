// SPDX-License-Identifier: Apache-2.0
// Recursive doubling: whole vectors, log2 n rounds; in round k a rank exchanges its sum with the
// rank whose number differs in bit k. Where n is no power of two, the first ranks do so in pairs:
// one of each gives its vector to the other before, and gets the sum after.
#include <bit>

#include "schedule/algorithms/generators.h"

namespace weft::schedule {
namespace {

class Doubling {
 public:
  Doubling(uint32_t n, uint32_t chunks, uint32_t me)
      : half_(std::bit_floor(n)), pairs_(n - half_), chunks_(chunks), me_(me) {}

  Program program() {
    const bool paired = me_ < 2 * pairs_;
    if (paired && me_ % 2 == 0) {
      p_.put(me_ + 1, in(0), arrival(0), all());
      p_.wait(me_ + 1, out(0), all());
      return std::move(p_);
    }
    if (paired) add(me_ - 1, arrival(0), true, half_ > 1 ? sum(0) : out(0));
    for (uint32_t k = 0; 1u << k < half_; ++k) exchange(k);
    if (half_ == 1 && !paired) p_.copy(in(0), out(0), all());
    p_.apply(ApplyId::Finish, out(0), out(0), all());
    if (paired) p_.put(me_ - 1, out(0), out(0), all());
    return std::move(p_);
  }

 private:
  // A rank's number among those that exchange, and whose it is.
  uint32_t numberOf(uint32_t rank) const { return rank < 2 * pairs_ ? rank / 2 : rank - pairs_; }
  uint32_t rankOf(uint32_t number) const {
    return number < pairs_ ? 2 * number + 1 : number + pairs_;
  }

  void exchange(uint32_t k) {
    const uint32_t mine = numberOf(me_), other = mine ^ 1u << k;
    p_.put(rankOf(other), mine_, arrival(k + 1), all());
    add(rankOf(other), arrival(k + 1), other < mine, 2u << k < half_ ? sum(k + 1) : out(0));
  }

  // Alike on both sides: the lower rank's part first.
  void add(uint32_t peer, Slot arrived, bool isFirst, Slot to) {
    p_.wait(peer, arrived, all());
    p_.reduce(to, isFirst ? std::vector{arrived, mine_} : std::vector{mine_, arrived}, all());
    mine_ = to;
  }

  // Tmp: what arrives in each round and the sum after it, from the pair's on.
  Slot arrival(uint32_t round) const { return tmp(2 * round * chunks_); }
  Slot sum(uint32_t round) const { return tmp((2 * round + 1) * chunks_); }
  Span all() const { return {0, chunks_}; }

  const uint32_t half_, pairs_, chunks_, me_;
  Slot mine_ = in(0);  // the sum so far
  Program p_;
};

Schedule doubling(uint32_t n, uint32_t chunks) {
  Schedule s = emptySchedule(Collective::AllReduce, "recursive-doubling", n, chunks);
  s.tmpChunks = 2 * static_cast<uint32_t>(std::bit_width(n)) * chunks;
  s.program = [n, chunks](uint32_t me) { return Doubling(n, chunks, me).program(); };
  return s;
}

}  // namespace

Schedule doublingAllReduce(uint32_t n) { return doubling(n, 1); }

Schedule doublingRail(uint32_t nodes) { return doubling(nodes, nodes); }

}  // namespace weft::schedule
