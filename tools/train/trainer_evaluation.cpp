// SPDX-License-Identifier: Apache-2.0
// How a trainer evaluates what it has learned.
#include <cstring>
#include <vector>

#include "tools/train/class_scores.h"
#include "tools/train/held_batches.h"
#include "tools/train/trainer.h"

namespace weft::train {

int64_t Trainer::evalSteps() const {
  const auto all = static_cast<int64_t>(validation_->stepsOfAll());
  return all > 0 ? all : options_.evalBatches;
}

std::optional<Evaluation> Trainer::evaluate(const std::function<bool()>& givesUp) {
  const auto found = options_.classifies ? evaluateClasses(givesUp) : evaluateLosses(givesUp);
  moved_ = shard_.info().wireBytes;  // not the next step's
  waited_ = model_.waited();
  return found;
}

std::optional<Evaluation> Trainer::evaluateLosses(const std::function<bool()>& givesUp) {
  const PipelineStage& stage = groups_.part().stage;
  std::vector<double> mine(mine_.size()), all(shared_.size());
  HeldBatches held(*validationAhead_, stage.virtuals);
  const std::vector<Turn> turns = forwards(stage, options_.accumulate);
  double sum = 0;
  for (int64_t i = 0; i < evalSteps(); ++i) {
    for (const auto& [pass, micro, own] : turns)
      mine[static_cast<size_t>(micro)] = model_.evaluate(held.of(micro, own), own);
    mine.back() = givesUp();
    all_.allGather(mine.data(), all.data(), mine.size());
    if (mostOfLast(all, mine.size()) > 0) return {};
    sum += meanInOrder(all, mine.size());
  }
  return Evaluation{sum / static_cast<double>(evalSteps()), {}};
}

// Sample by sample, so that the sums do not depend on who had which.
std::optional<Evaluation> Trainer::evaluateClasses(const std::function<bool()>& givesUp) {
  constexpr size_t kOfSample = sizeof(ClassSums) / sizeof(double);
  const size_t ofMicro = kOfSample * static_cast<size_t>(options_.batch);
  std::vector<double> mine(ofMicro * static_cast<size_t>(options_.accumulate) + 1);
  std::vector<double> all(mine.size() * static_cast<size_t>(all_.size()));
  ClassSums sums;
  for (int64_t i = 0; i < evalSteps(); ++i) {
    for (size_t at = 0; at + 1 < mine.size(); at += ofMicro) {
      const Batch batch = validationAhead_->take();
      const std::vector<float> scores = model_.scores(batch);
      if (scores.empty()) continue;  // the last stage has them
      const std::vector<ClassSums> each = judged(scores, batch);
      std::memcpy(&mine[at], each.data(), ofMicro * sizeof(double));
    }
    mine.back() = givesUp();
    all_.allGather(mine.data(), all.data(), mine.size());
    if (mostOfLast(all, mine.size()) > 0) return {};
    for (const double* const micro : microsInOrder(all, mine.size(), ofMicro))
      for (size_t at = 0; at < ofMicro; at += kOfSample)
        sums.add({micro[at], micro[at + 1], micro[at + 2]});
  }
  return sums.mean();
}

}  // namespace weft::train
