// SPDX-License-Identifier: Apache-2.0
#include "tools/train/parallel_groups.h"

namespace weft::train {
namespace {

weftConfig_t named(const char* name) {
  weftConfig_t config = defaultConfig();
  config.commName = name;
  return config;
}

// Which kind of link follows a stage: never that of the stage before.
int64_t kindOfLinkAfter(int64_t stage, int64_t stages) {
  return stage + 1 == stages ? 2 : stage % 2;
}

}  // namespace

ParallelGroups::ParallelGroups(Communicator& all, const ModelPart& any, bool reproducible)
    : all_(all), dataRanks_(all.size() / any.count()), part_(any) {
  const int64_t rank = all.rank(), tensor = any.tensor.count;
  const int64_t batch = rank / tensor % dataRanks_;
  part_.tensor.index = rank % tensor;
  part_.stage.index = rank / (tensor * dataRanks_);
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
  if (part_.stage.count == 1) return;
  parts_ = split(batch, part_.index(), named("parts"));
  splitStages(batch * tensor + part_.tensor.index);
}

void ParallelGroups::splitStages(int64_t pipeline) {
  const int64_t stage = part_.stage.index, stages = part_.stage.count;
  const auto split = [&](int64_t color, int64_t key, const char* name) {
    const weftConfig_t config = named(name);
    return all_.split(static_cast<int>(color), static_cast<int>(key), &config);
  };
  const bool isEnd = part_.stage.isFirst() || part_.stage.isLast();
  ends_ = split(isEnd ? pipeline : WEFT_SPLIT_NOCOLOR, stage, "embedding");
  const int64_t before = (stage + stages - 1) % stages;
  const int64_t kinds =
      part_.stage.virtuals > 1 ? 3 : 2;  // the last stage's leads to the first one
  for (int64_t kind = 0; kind < kinds; ++kind) {
    const bool isEarlier = kindOfLinkAfter(stage, stages) == kind;
    const bool isLater = kindOfLinkAfter(before, stages) == kind;
    const int64_t first = isEarlier ? stage : before;
    const int64_t color = isEarlier || isLater ? pipeline * stages + first : WEFT_SPLIT_NOCOLOR;
    Link& link = links_[static_cast<size_t>(kind)];
    link.activations = split(color, isEarlier ? 0 : 1, "activations");
    link.gradients = split(color, isEarlier ? 0 : 1, "gradients");
  }
}

StageLink ParallelGroups::link(int64_t stage) {
  auto& [activations, gradients] =
      links_[static_cast<size_t>(kindOfLinkAfter(stage, part_.stage.count))];
  return {orNull(activations), orNull(gradients)};
}

ModelGroups ParallelGroups::model(bool cutsPlaces) {
  const int64_t stage = part_.stage.index, stages = part_.stage.count;
  return {part_, orNull(tensor_), link((stage + stages - 1) % stages), link(stage), cutsPlaces};
}

Communicator* ParallelGroups::parts() { return parts_ ? &parts_ : orNull(tensor_); }

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
