// SPDX-License-Identifier: Apache-2.0
#include "verify/values.h"

#include <algorithm>

namespace weft::verify {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
constexpr uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The part of `p` in [begin, end).
Piece clip(const Piece& p, uint32_t begin, uint32_t end) {
  const uint32_t first = std::max(p.first, begin), last = std::min(p.first + p.length, end);
  return {first, last - first, p.value.shifted(first - p.first)};
}

// Appends, joining runs that continue each other.
void append(Pieces& to, const Piece& p) {
  if (p.length == 0) return;
  if (!to.empty()) {
    Piece& last = to.back();
    if (last.first + last.length == p.first && last.value.shifted(last.length) == p.value) {
      last.length += p.length;
      return;
    }
  }
  to.push_back(p);
}

}  // namespace

Value inputOf(uint32_t rank, uint32_t chunk) {
  Value v;
  v.chunk = chunk;
  v.input = true;
  v.sum = scramble(rank) % kPrime;
  v.mix = scramble(~uint64_t{rank});
  return v;
}

uint64_t addSums(uint64_t a, uint64_t b) { return (a + b) % kPrime; }
uint64_t addMixes(uint64_t a, uint64_t b) { return scramble(a + b); }
uint64_t roundMix(uint64_t mix) { return scramble(mix ^ 0x5bf0'3635'dcb2'92a1); }

Value completeSum(uint32_t first, uint32_t ranks) {
  Value v = inputOf(first, 0);
  v.input = false;
  for (uint32_t r = 1; r < ranks; ++r) {
    const Value x = inputOf(first + r, 0);
    v.sum = addSums(v.sum, x.sum);
    v.mix = addMixes(v.mix, x.mix);
  }
  if (ranks > 1) v.mix = roundMix(v.mix);
  return v;
}

bool addTo(Pieces& sum, const Pieces& addend) {
  Pieces both;
  for (size_t i = 0, j = 0; i < sum.size();) {
    const Piece &a = sum[i], &b = addend[j];
    const uint32_t begin = std::max(a.first, b.first);
    const uint32_t end = std::min(a.first + a.length, b.first + b.length);
    Value v = a.value.shifted(begin - a.first);
    const Value w = b.value.shifted(begin - b.first);
    if (v.chunk != w.chunk || v.scaled != w.scaled || v.finished || w.finished) return false;
    v.sum = addSums(v.sum, w.sum);
    v.mix = addMixes(v.mix, w.mix);
    v.input = false;
    both.push_back({begin, end - begin, v});
    i += a.first + a.length == end;
    j += b.first + b.length == end;
  }
  sum.swap(both);
  return true;
}

Slots::Range Slots::touching(uint32_t first, uint32_t length) const {
  const auto endsBefore = [](const Piece& p, uint32_t slot) { return p.first + p.length <= slot; };
  const auto startsBefore = [](const Piece& p, uint32_t slot) { return p.first < slot; };
  const auto begin = std::lower_bound(pieces_.begin(), pieces_.end(), first, endsBefore);
  auto end = begin;
  while (end != pieces_.end() && startsBefore(*end, first + length)) ++end;
  return {static_cast<size_t>(begin - pieces_.begin()), static_cast<size_t>(end - pieces_.begin())};
}

bool Slots::read(uint32_t first, uint32_t length, Pieces& pieces, uint32_t& missing) const {
  pieces.clear();
  const Range range = touching(first, length);
  uint32_t expected = first;
  for (size_t i = range.begin; i < range.end && pieces_[i].first <= expected; ++i) {
    Piece p = clip(pieces_[i], first, first + length);
    expected = p.first + p.length;
    p.first -= first;
    pieces.push_back(p);
  }
  missing = expected;
  return expected == first + length;
}

void Slots::write(uint32_t first, const Pieces& pieces) {
  const uint32_t length = pieces.back().first + pieces.back().length, end = first + length;
  Range range = touching(first, length);
  // Take the neighbours in, so that runs which now continue each other are joined.
  if (range.begin > 0) --range.begin;
  if (range.end < pieces_.size()) ++range.end;
  Pieces merged;
  const auto old = [&](uint32_t from, uint32_t to) {
    for (size_t i = range.begin; i < range.end; ++i) {
      const Piece& p = pieces_[i];
      if (p.first < to && from < p.first + p.length) append(merged, clip(p, from, to));
    }
  };
  old(0, first);
  for (Piece p : pieces) {
    p.first += first;
    append(merged, p);
  }
  old(end, ~0u);

  const auto at = pieces_.begin() + static_cast<std::ptrdiff_t>(range.begin);
  const size_t before = range.end - range.begin, both = std::min(before, merged.size());
  std::copy_n(merged.begin(), both, at);
  if (merged.size() > before)
    pieces_.insert(at + static_cast<std::ptrdiff_t>(both),
                   merged.begin() + static_cast<std::ptrdiff_t>(both), merged.end());
  else
    pieces_.erase(at + static_cast<std::ptrdiff_t>(both), at + static_cast<std::ptrdiff_t>(before));
}

}  // namespace weft::verify
