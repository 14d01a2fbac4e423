// SPDX-License-Identifier: Apache-2.0
#include "tools/train/parallel_groups.h"

namespace weft::train {
namespace {

weftConfig_t named(const char* name) {
  weftConfig_t config = defaultConfig();
  config.commName = name;
  return config;
}

}  // namespace

ParallelGroups::ParallelGroups(Communicator& all, int64_t tensor, int64_t stages, bool reproducible)
    : all_(all), dataRanks_(all.size() / (tensor * stages)) {
  const int64_t rank = all.rank(), batch = rank / tensor % dataRanks_;
  part_ = {{rank % tensor, tensor}, {rank / (tensor * dataRanks_), stages}};
  const auto split = [&](int64_t color, int64_t key, const weftConfig_t& config) {
    return all.split(static_cast<int>(color), static_cast<int>(key), &config);
  };
  if (part_.count() == 1) return;
  data_ = split(part_.index(), batch, named("data"));
  if (tensor > 1) {
    weftConfig_t config = named("tensor");
    if (reproducible) config.reproducible = 1;
    tensor_ = split(part_.stage.index * dataRanks_ + batch, part_.tensor.index, config);
  }
  if (stages == 1) return;
  const int64_t pipeline = batch * tensor + part_.tensor.index, stage = part_.stage.index;
  activations_ = split(pipeline, stage, named("activations"));
  gradients_ = split(pipeline, stage, named("gradients"));
  const bool isEnd = part_.stage.isFirst() || part_.stage.isLast();
  ends_ = split(isEnd ? pipeline : WEFT_SPLIT_NOCOLOR, stage, named("embedding"));
  if (tensor > 1) parts_ = split(batch, part_.index(), named("parts"));
}

Communicator* ParallelGroups::parts() {
  if (parts_) return &parts_;
  return part_.stage.count > 1 ? &activations_ : tensor();
}

int64_t ParallelGroups::rankOf(int64_t part, int64_t dataRank) const {
  const ModelPart of = part_.at(part);
  return (of.stage.index * dataRanks_ + dataRank) * of.tensor.count + of.tensor.index;
}

std::vector<size_t> ParallelGroups::firstOfPart() const {
  std::vector<size_t> first(static_cast<size_t>(all_.size()));
  for (int64_t part = 0; part < part_.count(); ++part)
    for (int64_t i = 0; i < dataRanks_; ++i)
      first[static_cast<size_t>(rankOf(part, i))] = static_cast<size_t>(rankOf(part, 0));
  return first;
}

std::vector<size_t> ParallelGroups::firstOfStage() const {
  std::vector<size_t> first = firstOfPart();
  for (size_t& rank : first) rank -= rank % static_cast<size_t>(part_.tensor.count);
  return first;
}

std::vector<size_t> ParallelGroups::firstOfPartOrEnd() const {
  std::vector<size_t> first = firstOfPart();
  const auto tensor = static_cast<size_t>(part_.tensor.count);
  const size_t lastStage = first.back() / tensor * tensor;
  for (size_t& rank : first)
    if (rank >= lastStage) rank %= tensor;
  return first;
}

}  // namespace weft::train
