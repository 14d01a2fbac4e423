// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// The fingerprint domain: what stands for the bytes of a chunk when a schedule is verified.
namespace weft::verify {

// A chunk's content. `sum` says exactly which inputs it contains, `mix` in which order they were
// added.
struct Value {
  uint32_t chunk = 0;  // which chunk of the inputs
  bool scaled = false, finished = false;
  bool input = false;    // an input in its own place
  bool pending = false;  // arrived, but its Wait is not through
  uint64_t sum = 0;      // random word per rank, added modulo 2^61 - 1
  uint64_t mix = 0;      // random word per rank, combined commutatively but not associatively
  friend bool operator==(const Value&, const Value&) = default;

  // The value of the chunk `k` further on in a run whose chunks differ by their number alone.
  Value shifted(uint32_t k) const {
    Value v = *this;
    v.chunk += k;
    return v;
  }
};

Value inputOf(uint32_t rank, uint32_t chunk);
uint64_t addSums(uint64_t a, uint64_t b);
uint64_t addMixes(uint64_t a, uint64_t b);  // one addition in the wide type
uint64_t roundMix(uint64_t mix);            // rounding to the narrow type, at the end of a Reduce

// Slots first .. first+length-1 hold value, value.shifted(1), ...
struct Piece {
  uint32_t first, length;
  Value value;
};
using Pieces = std::vector<Piece>;

// The sum over ranks first .. first+ranks-1 in rank order, rounded once.
Value completeSum(uint32_t first, uint32_t ranks);
// sum = sum + addend, on their common refinement; false if they do not belong together.
bool addTo(Pieces& sum, const Pieces& addend);

// The slots of one buffer of one rank, stored as runs, since 4096 ranks have 84 million slots.
class Slots {
 public:
  // The run [first, first+length) as pieces numbered from 0; false if a slot was never written
  // (*missing is then the first such slot).
  bool read(uint32_t first, uint32_t length, Pieces& pieces, uint32_t& missing) const;
  void write(uint32_t first, const Pieces& pieces);  // pieces numbered from 0, without gaps

  const Pieces& pieces() const { return pieces_; }

  // The pieces that share a slot with [first, first+length), as indices [begin, end).
  struct Range {
    size_t begin, end;
  };
  Range touching(uint32_t first, uint32_t length) const;

 private:
  Pieces pieces_;  // by first slot, disjoint
};

}  // namespace weft::verify
