// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace weft::train {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread
constexpr uint64_t kWords = 4;     // that Philox gives at a time

using Words = std::array<uint32_t, kWords>;

// Philox4x32-10. at::Philox4_32 has the same words, but takes three times as long for each.
Words philox(Words counter, uint64_t seed) {
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// Whether the words of elements first, first + 1, ... are below the threshold.
template <class WordsOf>
void compare(WordsOf wordsOf, uint64_t first, uint32_t threshold, bool* to, uint64_t count) {
  uint64_t i = 0;
  const auto one = [&] {
    to[i] = wordsOf((first + i) / kWords)[(first + i) % kWords] < threshold;
    ++i;
  };
  while (i < count && (first + i) % kWords != 0) one();
  for (; i + kWords <= count; i += kWords) {
    const Words words = wordsOf((first + i) / kWords);
    for (uint64_t k = 0; k < kWords; ++k) to[i + k] = words[k] < threshold;
  }
  while (i < count) one();
}

}  // namespace

at::Tensor Dropout::operator()(const at::Tensor& x, size_t layer, DropAt place,
                               int64_t first) const {
  if (share_ == 0) return x;
  return (x / (1 - share_))
      .masked_fill(dropped(x, 4 * layer + static_cast<uint64_t>(place), first), 0);
}

at::Tensor Dropout::dropped(const at::Tensor& x, uint64_t place, int64_t first) const {
  const at::Tensor mask = at::empty(x.sizes(), at::kBool);
  const auto threshold = static_cast<uint32_t>(std::llround(share_ * 0x1p32));
  const int64_t ofSample = x.numel() / x.size(0);
  bool* const to = mask.data_ptr<bool>();
  at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t sample = begin / ofSample, at = begin % ofSample;
      const int64_t count = std::min(end - begin, ofSample - at);
      const auto wordsOf = [&, number = firstSample_ + static_cast<uint64_t>(sample)](uint64_t w) {
        return philox({static_cast<uint32_t>(w), static_cast<uint32_t>(place),
                       static_cast<uint32_t>(number), static_cast<uint32_t>(step_)},
                      seed_);
      };
      compare(wordsOf, static_cast<uint64_t>(first + at), threshold, to + begin,
              static_cast<uint64_t>(count));
      begin += count;
    }
  });
  return mask;
}

}  // namespace weft::train
