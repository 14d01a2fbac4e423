// SPDX-License-Identifier: Apache-2.0
#include "shard/fold.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft::shard {
namespace {

bool isFinite(const reduce::Addend& one) {
  float value = 0;
  reduce::widen(one.type, &value, one.data, 1);
  return std::isfinite(value);
}

// n if there is none, which is seen without branches.
std::size_t firstNonFinite(const float* values, std::size_t n) {
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < n; ++i)
    bad |= (std::bit_cast<std::uint32_t>(values[i]) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  if (bad == 0) return n;
  const float* const first =
      std::find_if(values, values + n, [](float x) { return !std::isfinite(x); });
  return static_cast<std::size_t>(first - values);
}

}  // namespace

void GradientReport::add(const GradientReport& other) {
  squares.add(other.squares);
  nonFinite += other.nonFinite;
  if (other.firstBad >= firstBad) return;
  firstBad = other.firstBad;
  badMember = other.badMember;
}

struct FoldEpilogue::Beside {
  FoldEpilogue fold;
  GradientReport report;
};

FoldEpilogue::FoldEpilogue() = default;
FoldEpilogue::~FoldEpilogue() = default;

plan::Epilogue* FoldEpilogue::ofThread(std::uint32_t k) {
  if (k == 0) return this;
  const auto begin = [this](Beside& one) {
    one.report = {};
    one.fold.job_ = job_;
    if (job_.report != nullptr) one.fold.job_.report = &one.report;
  };
  return &beside_.get(k, begin).fold;
}

void FoldEpilogue::end() {
  beside_.end([this](const Beside& one) {
    if (job_.report != nullptr) job_.report->add(one.report);
  });
}

void FoldEpilogue::run(void* result, std::span<const void* const> addends, std::uint64_t first,
                       std::size_t count) {
  const bool rounds = job_.sums == nullptr && job_.type != reduce::DType::F32;
  if (rounds) rounded_.resize(std::max(rounded_.size(), count));
  float* const sums = rounds                 ? rounded_.data()
                      : job_.sums != nullptr ? job_.sums + first
                                             : static_cast<float*>(result);
  fold(sums, addends, first, count);
  if (rounds) reduce::castFloats(job_.type, result, sums, count, {}, 0);
}

// For sums that nobody reads before all buckets have been reduced.
bool FoldEpilogue::runToAll(std::span<void* const>, std::span<const void* const> addends,
                            std::uint64_t first, std::size_t count) {
  if (job_.sums == nullptr || job_.accumulate || !job_.final) return false;
  streams_ = true;
  fold(job_.sums + first, addends, first, count);
  streams_ = false;
  return true;
}

void FoldEpilogue::fold(float* sums, std::span<const void* const> addends, std::uint64_t first,
                        std::size_t count) {
  inputs_ = addends;
  first_ = first;
  const std::uint64_t offset = job_.offset + first;
  std::uint64_t filled = 0;
  const auto fillTo = [&](std::uint64_t at) {  // padding has no gradients, and is zero
    if (job_.isComplete) std::fill(sums + filled, sums + at, 0.0f);
  };
  job_.layout->visit(job_.bucket, offset, count, [&](const Layout::Piece& piece) {
    const std::uint64_t at = piece.offset - offset;
    fillTo(at);
    if (job_.isComplete)
      foldPiece(piece, at, sums + at);
    else
      keepNodes(piece, at);
    filled = at + piece.elements;
  });
  fillTo(count);
}

void FoldEpilogue::foldPiece(const Layout::Piece& piece, std::uint64_t at, float* sums) {
  const std::uint64_t logical = job_.layout->slot(piece.parameter).first + piece.from;
  const std::size_t n = piece.elements, leaves = job_.leavesBefore + inputs_.size();
  if (job_.balanced) {
    addUp(0, leaves, at, n);
  } else {
    addends_.clear();
    for (const void* input : inputs_) addends_.push_back(reduce::Addend{input, job_.type}.from(at));
  }
  reduce::GradientStats stats;
  const std::size_t overwritten = job_.report != nullptr ? badInPlace(sums, at, n) : n;
  if (streams_)
    reduce::foldGradientsStream(sums, addends_, n, logical, &stats);
  else
    reduce::foldGradients(sums, addends_, 1, job_.accumulate, n, logical,
                          job_.final ? &stats : nullptr);
  if (job_.report != nullptr) note(stats, piece.parameter, sums, logical, at, n, overwritten);
}

// The nodes that become complete, the leftmost first: it takes in those that were there.
void FoldEpilogue::keepNodes(const Layout::Piece& piece, std::uint64_t at) {
  const std::uint64_t logical = job_.layout->slot(piece.parameter).first + piece.from;
  const std::uint64_t leaves = job_.leavesBefore + inputs_.size();
  std::uint64_t begin = 0;
  for (auto level = static_cast<std::size_t>(std::bit_width(leaves)); level-- > 0;) {
    if ((leaves >> level & 1) == 0) continue;
    const std::uint64_t end = begin + (std::uint64_t{1} << level);
    if (end > job_.leavesBefore) {
      float* const node = job_.nodes[level] + first_ + at;
      addUp(begin, end, at, piece.elements);
      reduce::foldGradients(node, addends_, 1, false, piece.elements, logical, nullptr);
      note({}, piece.parameter, node, logical, at, piece.elements, piece.elements);
    }
    begin = end;
  }
}

void FoldEpilogue::note(const reduce::GradientStats& stats, std::uint32_t parameter,
                        const float* sums, std::uint64_t logical, std::uint64_t at, std::size_t n,
                        std::size_t overwritten) {
  GradientReport found{{}, stats.nonFinite, stats.firstNonFinite, -1};
  if (job_.layout->counts(parameter)) found.squares = stats.squares;
  if (!job_.final)
    if (const std::size_t bad = firstNonFinite(sums, n); bad < n) found.firstBad = logical + bad;
  if (found.firstBad < job_.report->firstBad)
    found.badMember = findBad(sums, found.firstBad - logical, at, overwritten);
  job_.report->add(found);
}

// Where the sums take the place of an addend: its first element that is not finite.
std::size_t FoldEpilogue::badInPlace(const float* sums, std::uint64_t at, std::size_t n) const {
  for (const void* input : inputs_)
    if (reduce::Addend{input, job_.type}.from(at).data == sums) return firstNonFinite(sums, n);
  return n;
}

// Which addend was not finite at `i`, where its sum is the first that is not.
std::int32_t FoldEpilogue::findBad(const float* sums, std::size_t i, std::uint64_t at,
                                   std::size_t overwritten) const {
  for (std::size_t member = 0; member < inputs_.size(); ++member) {
    const reduce::Addend addend = reduce::Addend{inputs_[member], job_.type}.from(at);
    if (addend.data == sums ? overwritten == i : !isFinite(addend.from(i)))
      return static_cast<std::int32_t>(member);
  }
  return -1;
}

// Leaves [begin, end) of the tree as one addend or two.
void FoldEpilogue::addUp(std::size_t begin, std::size_t end, std::uint64_t at, std::size_t count) {
  addends_.clear();
  if (end - begin == 1) {
    addends_.push_back(sumOf(begin, end, at, count, 0));
    return;
  }
  const std::size_t half = begin + std::bit_ceil(end - begin) / 2;
  const reduce::Addend low = sumOf(begin, half, at, count, 0);
  addends_ = {low, sumOf(half, end, at, count, 1)};
}

// The sum of leaves [begin, end), in `buffer`: the left half of a level in an even one, the right
// half, during which the left is kept, in an odd one. What earlier calls have brought of it is there.
reduce::Addend FoldEpilogue::sumOf(std::size_t begin, std::size_t end, std::uint64_t at,
                                   std::size_t count, std::size_t buffer) {
  if (end <= job_.leavesBefore)
    return {job_.nodes[static_cast<std::size_t>(std::countr_zero(end - begin))] + first_ + at,
            reduce::DType::F32};
  if (end - begin == 1)
    return reduce::Addend{inputs_[begin - job_.leavesBefore], job_.type}.from(at);
  const std::size_t half = begin + std::bit_ceil(end - begin) / 2, below = buffer / 2 * 2 + 2;
  const reduce::Addend low = sumOf(begin, half, at, count, below);
  const reduce::Addend both[2] = {low, sumOf(half, end, at, count, below + 1)};
  if (partial_.size() <= buffer) partial_.resize(buffer + 1);
  std::vector<float>& sum = partial_[buffer];
  sum.resize(std::max(sum.size(), count));
  reduce::foldGradients(sum.data(), both, 1, false, count, 0, nullptr);
  return {sum.data(), reduce::DType::F32};
}

}  // namespace weft::shard
