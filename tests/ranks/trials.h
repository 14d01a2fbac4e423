// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shard_training.h"
#include "steps.h"
#include "world.h"

// Something fails for the n-th time that it is used, for n = 1, 2, ... until nothing is left to fail,
// on one of two ranks: whatever they call ends on both, right or with an error, long before its
// deadline; nothing ends the process, and the next world is sound.
namespace weft::testing {

inline constexpr int kActors = 2;
inline constexpr int kShortMs = kSanitized ? 10000 : 5000;  // to create a communicator
inline constexpr std::size_t kNumbers = 1000;

// ---- What ranks call -------------------------------------------------------------------------------

// What a rank sends and receives, made before anything fails.
struct Numbers {
  std::vector<float> in, out;
  explicit Numbers(const Rank& r)
      : in(kNumbers * kActors, static_cast<float>(r.rank + 1)), out(kNumbers * kActors) {}
  bool are(float value) const {
    return std::all_of(out.begin(), out.begin() + kNumbers, [=](float x) { return x == value; });
  }
};

// A rank and what it has made; everything is destroyed by the end of a round.
struct Actor {
  Rank r;
  const weftUniqueId* ids = nullptr;  // of the scene
  const char* transport = "auto";
  int initTimeoutMs = 0;  // 0: the usual one
  Numbers numbers{r};
  std::vector<weftParam_t> model = smallModel();
  Steps steps{};  // of what must not fail
  weftResult_t act = weftSuccess;
  std::string said{};  // of an act that has failed, at the end

  // Notes the first error of what may fail.
  bool does(weftResult_t result) {
    if (act == weftSuccess) act = result;
    return result == weftSuccess;
  }
};

weftResult_t create(Actor& a);
weftResult_t create(Actor& a, const weftUniqueId& id, weftComm_t* comm);
void allReduce(Actor& a, weftComm_t comm, weftStream_t stream = nullptr);
weftResult_t makeShard(Actor& a, weftShard_t* shard);
// The first step.
void trainOnce(Actor& a, weftShard_t shard);
void playSplit(Actor& a, const std::function<void()>& armed);
// Into another transport than its parent's: ranks join by an id, which one of them makes for all.
void playSplitById(Actor& a, const std::function<void()>& armed);

// ---- Rounds ----------------------------------------------------------------------------------------

// What a round is about: `play` prepares what must not fail, calls `armed` to begin the count, on all
// ranks together, and then what may fail.
struct Scene {
  const char* name;
  int some;  // of what fails: each `some`-th, or the first of each kind
  bool creates;
  std::function<void(Actor&, const std::function<void()>& armed)> play;
  const char* transport = "auto";
  // Who fails before it has connected has told nobody: the others wait so long. 0: the usual time,
  // where nothing fails while ranks connect.
  int initTimeoutMs = 0;
  bool endsAlike = false;  // both ranks fail, or neither
  std::size_t ids = 1;     // that ranks join by: the root of one that nobody uses waits for a while
};
using Armed = std::function<void()>;

// What fails: that of number n from begin(n) on, none if n is 0. end() says whether one has.
struct Fault {
  std::function<void(std::int64_t n)> begin;
  std::function<bool()> end;
  std::int64_t first = 1;
  // What is to fail after number n, which has `failed` or was never used; 0: no more.
  std::function<std::int64_t(std::int64_t n, bool failed)> next;
};
// Each `stride`-th of them, until there are no more.
inline auto every(int stride) {
  return [=](std::int64_t n, bool failed) { return failed ? n + stride : 0; };
}

// Where ranks meet, in memory that they share.
struct Meeting {
  std::atomic<int> arrived{0};
  std::atomic<bool> injected{false}, over{false};
  std::atomic<bool> failed[kActors] = {};
  weftUniqueId ids[2] = {};

  bool meet(int round);  // rounds count from 1
};

class Trial {
 public:
  using Check = std::function<std::string(const Actor& a)>;
  Trial(const Scene& scene, const Fault& fault, Meeting& meeting, int rank)
      : scene_(scene), fault_(fault), meeting_(meeting), rank_(rank) {}

  // Of an actor at the end of a round: what else is wrong.
  Trial& check(Check also) {
    check_ = std::move(also);
    return *this;
  }
  // Fails each in turn on the victim; "" or what went wrong.
  std::string run(int victim);
  // The last number.
  std::int64_t last() const { return last_; }

 private:
  std::string round(std::int64_t n);
  bool meet() { return meeting_.meet(++met_); }

  const Scene& scene_;
  const Fault& fault_;
  Meeting& meeting_;
  const int rank_;
  Check check_;
  int met_ = 0;
  std::int64_t last_ = 0;
};

}  // namespace weft::testing
