// SPDX-License-Identifier: Apache-2.0
#include "tools/train/megatron_order.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

constexpr uint64_t kExtra = 1;  // the last token is a label only
constexpr double kThreshold = 0.80;

// Megatron's names: how many epochs, and whether the last one is shuffled apart, because it gives few
// samples.
struct Epochs {
  uint64_t count = 1, total = 0, sansLast = 0;
  bool separate = false;
};

Epochs epochsFor(uint64_t tokens, uint64_t length, uint64_t wanted) {
  Epochs e;
  while (e.count * tokens < wanted * length + kExtra) ++e.count;
  e.total = (e.count * tokens - kExtra) / length;
  if (e.count == 1) return e;
  e.sansLast = ((e.count - 1) * tokens - kExtra) / length;
  const uint64_t ofLast = wanted - e.sansLast, ofOne = (tokens - kExtra) / length;
  e.separate = ofLast < static_cast<uint64_t>(kThreshold * static_cast<double>(ofOne));
  return e;
}

void appendShuffled(std::vector<int32_t>& to, size_t documents, uint64_t epochs,
                    std::mt19937& random) {
  const size_t before = to.size();
  for (uint64_t e = 0; e < epochs; ++e)
    for (size_t d = 0; d < documents; ++d) to.push_back(static_cast<int32_t>(d));
  shuffleAsNumpy(std::span(to).subspan(before), random);
}

}  // namespace

SequenceRange shareOf(size_t sequences, std::span<const double> split, size_t which) {
  const double all = std::accumulate(split.begin(), split.end(), 0.0);
  const auto bound = [&](size_t share) {  // rounded half to even, as numpy does
    const double before =
        std::accumulate(split.begin(), split.begin() + static_cast<std::ptrdiff_t>(share), 0.0);
    return static_cast<size_t>(std::nearbyint(before / all * static_cast<double>(sequences)));
  };
  return {bound(which), bound(which + 1)};
}

MegatronOrder::MegatronOrder(std::span<const int32_t> lengths, uint32_t seed, size_t length,
                             uint64_t wanted)
    : lengths_(lengths.begin(), lengths.end()) {
  const auto tokens =
      static_cast<uint64_t>(std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0}));
  const Epochs e = epochsFor(tokens, length, wanted);
  if (e.total > std::numeric_limits<uint32_t>::max())
    throw Failure(Exit::kUsage,
                  fmt::format("{} samples are more than the order of a Megatron dataset "
                              "counts; lower --steps or the batch",
                              e.total));
  std::mt19937 random(seed);
  appendShuffled(documents_, lengths_.size(), e.separate ? e.count - 1 : e.count, random);
  if (e.separate) appendShuffled(documents_, lengths_.size(), 1, random);
  entries_ = walk(lengths_, documents_, length, e.total);
  shuffle_.resize(e.total);
  std::iota(shuffle_.begin(), shuffle_.end(), 0u);
  const size_t first = e.separate ? e.sansLast : e.total;
  shuffleAsNumpy(std::span(shuffle_).first(first), random);
  shuffleAsNumpy(std::span(shuffle_).subspan(first), random);
}

std::vector<MegatronOrder::Entry> MegatronOrder::walk(std::span<const int32_t> lengths,
                                                      std::span<const int32_t> documents,
                                                      size_t length, uint64_t samples) {
  std::vector<Entry> entries{{0, 0}};
  entries.reserve(samples + 1);
  Entry at{0, 0};
  const auto lengthAt = [&](uint32_t position) {
    return static_cast<int64_t>(lengths[static_cast<size_t>(documents[position])]);
  };
  while (entries.size() <= samples) {
    int64_t left = static_cast<int64_t>(length + kExtra) - (lengthAt(at.position) - at.offset);
    while (left > 0) {
      at = {at.position + 1, 0};
      left -= lengthAt(at.position);
    }
    at.offset = static_cast<int32_t>(lengthAt(at.position) + left - static_cast<int64_t>(kExtra));
    entries.push_back(at);
  }
  return entries;
}

std::vector<MegatronOrder::Piece> MegatronOrder::sample(uint64_t i) const {
  const Entry first = entries_[shuffle_[i]], last = entries_[shuffle_[i] + 1];
  std::vector<Piece> pieces;
  for (uint32_t p = first.position; p <= last.position; ++p) {
    const auto document = static_cast<size_t>(documents_[p]);
    const auto from = static_cast<size_t>(p == first.position ? first.offset : 0);
    const size_t end = p == last.position ? static_cast<size_t>(last.offset) + kExtra
                                          : static_cast<size_t>(lengths_[document]);
    if (end > from) pieces.push_back({document, from, end - from});
  }
  return pieces;
}

}  // namespace weft::train
