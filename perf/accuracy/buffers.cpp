// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/buffers.h"

#include <fmt/format.h>
#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

namespace weft::accuracy {

Buffers::Memory Buffers::allocate(std::size_t bytes, bool own) {
  constexpr std::size_t kAlignment = 2 << 20;
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = nullptr;
  if (own && weftMemAlloc(&memory, whole) != weftSuccess)
    throw std::runtime_error(weftGetLastError(nullptr));
  if (!own) memory = std::aligned_alloc(kAlignment, whole);
  if (memory == nullptr)
    throw std::runtime_error(fmt::format("no memory for a buffer of {} bytes", whole));
  std::fill_n(static_cast<float*>(memory), whole / sizeof(float), 1.0f);
  constexpr auto kFree = [](float* pointer) { std::free(pointer); };
  constexpr auto kFreeOwn = [](float* pointer) { weftMemFree(pointer); };
  if (own) return {static_cast<float*>(memory), kFreeOwn};
  return {static_cast<float*>(memory), kFree};
}

Buffers::Buffers(std::size_t bytes, bool own)
    : in_(allocate(bytes, own)), out_(allocate(bytes, own)) {}

void Buffers::use(const perf::Problem& problem) {
  turn_ = turn_ < 64 ? turn_ + 1 : 0;
  std::fill_n(in_.get(), problem.sendCount, turn_);
  // Independent sums, so that reading is not bound by the latency of adds.
  std::array<float, 16> sums{};
  const float* const out = out_.get();
  std::size_t i = 0;
  for (; i + sums.size() <= problem.recvCount; i += sums.size())
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += out[i + lane];
  for (; i < problem.recvCount; ++i) sums[0] += out[i];
  float sum = 0;
  for (const float lane : sums) sum += lane;
  sink_ = sum;
}

}  // namespace weft::accuracy
