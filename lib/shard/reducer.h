// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shard/fold.h"
#include "shard/micro_step.h"
#include "shard/own_work.h"
#include "shard/state.h"

namespace weft::shard {

// The way of gradients down: from the buffers that backward fills to the ranks that own them, in
// fp32, each addend rounded once, to the type of the wire. One thread at a time.
class Reducer {
 public:
  // Both outlive it.
  Reducer(const Mesh& mesh, ShardState& state) : mesh_(mesh), state_(state), work_(mesh.crew()) {}

  // Does a micro-step move anything? With whole gradients only the last one does, in reproducible
  // steps the last one of a run.
  bool takesPart(const MicroStep& micro) const;
  // Reduces a bucket; its gradients may then be cleared. Collective.
  Status reduce(std::uint32_t bucket, const MicroStep& micro);
  // Before that in reproducible steps: adds the micro-steps of a run as the tree does.
  Status keep(std::uint32_t bucket, const MicroStep& micro);

  // Makes the wire's form of a bucket, where backward's is another.
  std::byte* wire(std::uint32_t bucket);
  // What was found in the final sums since the last reset.
  GradientReport& report() { return report_; }
  // In sums before those, of groups and earlier micro-steps: the lowest logical index that is not
  // finite, and the rank that brought it.
  struct EarlyBad {
    std::uint64_t index = reduce::GradientStats::kNone;
    std::int32_t rank = -1;
    std::uint64_t when = 0;  // of several ranks' that of the first counts: others saw sums of it
  };
  const EarlyBad& earlyBad() const { return early_; }
  void reset() {
    report_ = {};
    early_ = {};
  }

 private:
  // What is to be added next: a part of a bucket.
  struct Source {
    std::byte* data = nullptr;
    reduce::DType type = reduce::DType::F32;
    ShardState::Range range;
  };
  Status reduceAt(Level level, plan::Call call, const MicroStep& micro, Source* from);
  Status hop(Level level, const plan::Call& call, const Source& from, float* to,
             const MicroStep& micro, bool accumulate, Source* next);
  Status runWithSums(Level level, const plan::Call& call, const std::byte* in, std::byte* out,
                     const MicroStep& micro);
  Status acrossReplicas(const plan::Call& call, const Source& from, const MicroStep& micro);
  Status intoTree(Level level, plan::Call call, const Source& from, const MicroStep& micro);
  Status aimAtTree(std::uint64_t leaves);
  void unpack(const Source& from, float* to);  // at the boundary
  FoldEpilogue::Job jobFor(std::uint64_t offset, const Source& from, bool last,
                           std::uint64_t leavesBefore = 0);
  void noteEarlyBad(Level level, const MicroStep& micro);
  bool isLast(Level level) const;
  std::uint64_t leavesBefore(Level level, const MicroStep& micro) const;

  const Mesh& mesh_;
  ShardState& state_;
  OwnWork work_;
  FoldEpilogue epilogue_;
  GradientReport report_;
  GradientReport seen_;  // by one reduction that is not the last
  EarlyBad early_;
  std::uint32_t bucket_ = 0;
  std::vector<ShardMemory> levels_;  // of keep(): the carries of a binary counter
  std::vector<ShardMemory> tree_;    // by level: this rank's part of a complete node
  std::vector<float*> nodes_;        // the same, of the bucket
};

}  // namespace weft::shard
