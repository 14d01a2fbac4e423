// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "sim/time.h"

namespace weft::sim {

// Things, each with its time; of equal times what was added first is first. Ranks that do the same do it at
// the same time, so that things of one time share a *moment*, and the heap has one entry for thousands of them.
template <class T>
class Moments {
 public:
  bool empty() const { return heap_.empty(); }
  Time next() const { return heap_.empty() ? kNever : heap_.top().at; }

  void add(Time at, const T& thing) { momentAt(at).things.push_back(thing); }

  const T& first() const {
    const Moment& moment = moments_[heap_.top().moment];
    return moment.things[moment.taken];
  }
  T take() {
    const std::uint32_t number = heap_.top().moment;
    Moment& moment = moments_[number];
    const T thing = moment.things[moment.taken++];
    if (moment.taken == moment.things.size()) end(number);
    return thing;
  }

 private:
  struct Moment {
    Time at = kNever;  // kNever: it is free
    std::size_t taken = 0;
    std::vector<T> things;
  };
  struct Entry {
    Time at = 0;
    std::uint64_t number = 0;  // of two moments of one time the first was begun before the second
    std::uint32_t moment = 0;
    bool operator>(const Entry& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  static constexpr std::size_t kRecent = 256;

  // Only the last moment with that place among recent ones is added to.
  Moment& momentAt(Time at) {
    std::uint32_t& recent = recent_[static_cast<std::uint64_t>(at) * 0x9e3779b97f4a7c15 >> 56];
    if (recent < moments_.size() && moments_[recent].at == at) return moments_[recent];
    recent = begin(at);
    return moments_[recent];
  }
  std::uint32_t begin(Time at) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(moments_.size()));
      moments_.emplace_back();
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    moments_[number].at = at;
    heap_.push({at, begun_++, number});
    return number;
  }
  void end(std::uint32_t number) {
    moments_[number].at = kNever;
    moments_[number].taken = 0;
    moments_[number].things.clear();
    free_.push_back(number);
    heap_.pop();
  }

  std::uint64_t begun_ = 0;
  std::vector<Moment> moments_;
  std::vector<std::uint32_t> free_;
  std::array<std::uint32_t, kRecent> recent_{};
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

}  // namespace weft::sim
