// SPDX-License-Identifier: Apache-2.0
#include "tools/train/gradient_reducer.h"

#include <bit>
#include <stdexcept>

namespace weft::train {
namespace {

// To nearest even. A NaN keeps its sign and stays one.
Bfloat16 toBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return {static_cast<uint16_t>(value != value ? quiet : rounded)};
}

float toFloat(Bfloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

}  // namespace

GradientReducer::GradientReducer(Communicator& team, Stream& stream, const FlatLayout& layout,
                                 std::span<float> gradients, Wire wire, bool overlap)
    : team_(team), stream_(stream), layout_(layout), gradients_(gradients), overlap_(overlap) {
  if (wire == Wire::kFloat32) return;
  wire_.resize(layout.size());
  for (const FlatLayout::Bucket& bucket : layout.buckets()) {
    packings_.push_back({&gradients_[bucket.offset], &wire_[bucket.offset], bucket.size});
  }
}

void GradientReducer::begin() {
  missing_.clear();
  for (const FlatLayout::Bucket& bucket : layout_.buckets()) missing_.push_back(bucket.parameters);
  next_ = 0;
  active_ = true;
}

void GradientReducer::ready(size_t parameter) {
  if (!active_) return;
  --missing_[layout_.slot(parameter).bucket];
  if (overlap_) queueCompleteBuckets();
}

void GradientReducer::finish() {
  active_ = false;
  queueCompleteBuckets();
  if (next_ != missing_.size()) throw std::logic_error("backward gave no gradient to a parameter");
  check(weftStreamSynchronize(stream_), team_);
}

void GradientReducer::queueCompleteBuckets() {
  while (next_ < missing_.size() && missing_[next_] == 0) queue(next_++);
}

void GradientReducer::queue(size_t bucket) {
  const auto& [offset, size, parameters] = layout_.buckets()[bucket];
  if (wire_.empty()) {
    team_.allReduce(&gradients_[offset], size, weftAvg, {stream_});
    return;
  }
  stream_.callback(pack, &packings_[bucket]);
  team_.allReduce(&wire_[offset], size, weftAvg, {stream_});
  stream_.callback(unpack, &packings_[bucket]);
}

void GradientReducer::pack(void* packing) {
  const auto [gradients, wire, size] = *static_cast<Packing*>(packing);
  for (size_t i = 0; i < size; ++i) wire[i] = toBfloat16(gradients[i]);
}

void GradientReducer::unpack(void* packing) {
  const auto [gradients, wire, size] = *static_cast<Packing*>(packing);
  for (size_t i = 0; i < size; ++i) gradients[i] = toFloat(wire[i]);
}

}  // namespace weft::train
