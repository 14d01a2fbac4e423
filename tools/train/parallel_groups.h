// SPDX-License-Identifier: Apache-2.0
// Which ranks train together, and as what. Neighbours are a tensor group, whose ranks have a part of
// each layer and the same batch; the ranks that have the same part are data parallel, and share it;
// and the stages of a pipeline have layers that follow each other (Megatron-LM's order, arXiv
// 1909.08053 and 2104.04473). Rank (s D + d) T + t of D T to a stage and T to a tensor group has part
// t of stage s, and batch d.
// All have communicators of their own, each of which one thread uses: forward and backward the
// tensor group's and those of the stages, the shard its copies of the others. So calls of one never
// wait for calls of another that come later on another rank.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/train/model.h"
#include "tools/train/model_part.h"
#include "weft/weft.hpp"

namespace weft::train {

class ParallelGroups {
 public:
  // Collective. `all`, which outlives this, is cut into as many stages and tensor groups as those of `any`
  // part, which divide it. Reproducible tensor groups add in the same order wherever their ranks are.
  ParallelGroups(Communicator& all, const ModelPart& any, bool reproducible);

  Communicator& all() { return all_; }
  // Those that have this rank's part, by batch.
  Communicator& data() { return part_.count() == 1 ? all_ : data_; }
  // Of each run of layers, its blocks (PipelineStage::blocks); before anybody asks for parts.
  void cutInto(std::vector<int64_t> blocks) { part_.stage.blocks = std::move(blocks); }

  // This part of the model, and who has the rest.
  // Sequence-parallel, if places are cut.
  ModelGroups model(bool cutsPlaces = false);
  // The first and the last stage, which both have a tied embedding; null in others.
  Communicator* ends() { return orNull(ends_); }
  // Those that have this rank's batch, by part; null where each rank has the whole model.
  Communicator* parts();

  const ModelPart& part() const { return part_; }
  // The rank of `all` with a part and a rank of data().
  int64_t rankOf(int64_t part, int64_t dataRank) const;
  // By rank of `all`, the first rank that has the same part.
  std::vector<size_t> firstOfPart() const;
  // The same of its stage, and of its part where the last stage counts as the first.
  std::vector<size_t> firstOfStage() const;
  std::vector<size_t> firstOfPartOrEnd() const;

 private:
  static Communicator* orNull(Communicator& ranks) { return ranks ? &ranks : nullptr; }

  // A rank is the later end of one link and the earlier of another, which are of two kinds.
  struct Link {
    Communicator activations, gradients;
  };
  void splitStages(int64_t pipeline);
  StageLink link(int64_t stage);

  Communicator& all_;
  int64_t dataRanks_;
  ModelPart part_;
  Communicator data_, tensor_, ends_, parts_;
  std::array<Link, 3> links_;
};

}  // namespace weft::train
