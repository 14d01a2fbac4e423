// SPDX-License-Identifier: Apache-2.0
#include "tools/train/bert_shard_order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <utility>

#include "tools/train/random.h"

namespace weft::train {
namespace {

// The state of MT19937 that its authors' init_by_array gives for the 32-bit words of a number, least first (Matsumoto and
// Nishimura, mt19937ar.c); handed to std::mt19937 as what a seed sequence generates.
class PythonSeed {
 public:
  using result_type = uint32_t;
  explicit PythonSeed(uint64_t seed) {
    do key_.push_back(static_cast<uint32_t>(seed));
    while ((seed >>= 32) != 0);
  }

  template <class Iterator>
  void generate(Iterator begin, Iterator end) const {
    const auto n = static_cast<size_t>(end - begin);
    std::vector<uint32_t> x = stateOf(19650218, n);
    size_t i = 1;
    const auto mixIn = [&](uint32_t factor, auto add) {
      x[i] = (x[i] ^ ((x[i - 1] ^ (x[i - 1] >> 30)) * factor)) + add;
      if (++i == n) x[0] = x[n - 1], i = 1;
    };
    for (size_t k = 0; k < std::max(n, key_.size()); ++k) {
      const size_t j = k % key_.size();
      mixIn(1664525u, key_[j] + static_cast<uint32_t>(j));
    }
    for (size_t k = 1; k < n; ++k) mixIn(1566083941u, 0u - static_cast<uint32_t>(i));
    x[0] = 0x80000000u;
    std::copy(x.begin(), x.end(), begin);
  }

 private:
  static std::vector<uint32_t> stateOf(uint32_t seed, size_t n) {
    std::vector<uint32_t> x{seed};
    for (uint32_t i = 1; i < n; ++i) x.push_back(1812433253u * (x[i - 1] ^ (x[i - 1] >> 30)) + i);
    return x;
  }

  std::vector<uint32_t> key_;
};

}  // namespace

void shuffleAsPython(std::span<size_t> values, uint64_t seed) {
  PythonSeed state(seed);
  std::mt19937 random(state);
  for (size_t i = values.size(); i-- > 1;) {
    const auto bits = std::bit_width(i + 1);
    uint64_t other = 0;
    do other = static_cast<uint32_t>(random()) >> (32 - bits);
    while (other > i);
    std::swap(values[i], values[other]);
  }
}

BertShardOrder::BertShardOrder(std::vector<uint64_t> batchesOfFiles, uint64_t readers,
                               uint64_t seed)
    : batches_(std::move(batchesOfFiles)), readers_(readers), seed_(seed), cursors_(readers) {
  for (uint64_t reader = 0; reader < readers; ++reader) enter(cursors_[reader], reader, 0);
}

std::vector<size_t> BertShardOrder::filesOf(uint64_t reader, uint64_t epoch) const {
  const uint64_t files = batches_.size(), more = readers_ > files ? readers_ % files : 0;
  std::vector<size_t> shuffled(files), mine;
  std::iota(shuffled.begin(), shuffled.end(), size_t{0});
  shuffleAsPython(shuffled, seed_ + epoch);
  const uint64_t rounds = std::max<uint64_t>(files - 1, 1);
  for (uint64_t f = 0; f < rounds; ++f)
    mine.push_back(shuffled[(f * (readers_ + more) + reader) % files]);
  return mine;
}

void BertShardOrder::enter(Cursor& cursor, uint64_t reader, uint64_t epoch) const {
  cursor.epoch = epoch;
  cursor.round = 0;
  cursor.files = filesOf(reader, epoch);
}

void BertShardOrder::advance(Cursor& cursor, uint64_t reader) const {
  cursor.first += batches_[cursor.files[cursor.round]];
  if (++cursor.round == cursor.files.size()) enter(cursor, reader, cursor.epoch + 1);
}

BertShardOrder::Place BertShardOrder::place(uint64_t reader, uint64_t k) {
  Cursor& cursor = cursors_[reader];
  if (k < cursor.first) {
    cursor.first = 0;
    enter(cursor, reader, 0);
  }
  while (k - cursor.first >= batches_[cursor.files[cursor.round]]) advance(cursor, reader);
  const bool isLast = cursor.round + 1 == cursor.files.size();
  const uint64_t visit = (cursor.epoch * batches_.size() + cursor.round) * readers_ + reader;
  return {cursor.files[cursor.round], k - cursor.first, visit,
          isLast ? filesOf(reader, cursor.epoch + 1).front() : cursor.files[cursor.round + 1]};
}

}  // namespace weft::train
