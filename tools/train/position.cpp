// SPDX-License-Identifier: Apache-2.0
#include "tools/train/position.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/train/agreement.h"

namespace weft::train {
namespace {

std::optional<LossScale::State> lossScaleIn(const nlohmann::json& stored) {
  if (!stored.contains("loss_scale")) return {};
  const nlohmann::json& scale = stored.at("loss_scale");
  return LossScale::State{scale.at("scale"), scale.at("good_steps"), scale.at("skipped_steps")};
}

}  // namespace

std::string textOf(const Position& p) {
  nlohmann::json text{{"step", p.step},
                      {"position", p.position},
                      {"samples_per_step", p.samplesPerStep},
                      {"data", p.data}};
  if (!p.order.empty()) text["order"] = p.order;
  if (p.lossScale)
    text["loss_scale"] = {{"scale", p.lossScale->scale},
                          {"good_steps", p.lossScale->goodSteps},
                          {"skipped_steps", p.lossScale->skippedSteps}};
  return text.dump();
}

// The first checkpoints had no position and no data.
Position positionOf(const std::string& text, const std::string& folder) {
  const nlohmann::json stored = nlohmann::json::parse(text, nullptr, false);
  try {
    const int64_t step = stored.at("step");
    return {step,
            stored.value("position", step),
            stored.at("samples_per_step"),
            stored.value("data", ""),
            stored.value("order", ""),
            lossScaleIn(stored)};
  } catch (const nlohmann::json::exception&) {
    throw SharedFailure(Exit::kData, fmt::format("{} holds no checkpoint of weft-train", folder));
  }
}

void checkPosition(const Position& stored, const Position& mine, const std::string& folder) {
  if (stored.samplesPerStep != mine.samplesPerStep)
    throw SharedFailure(
        Exit::kUsage,
        fmt::format(
            "the checkpoint in {} is of steps of {} sequences, and these are of {} (ranks x "
            "--batch x --grad-accum); to begin with it all the same, say what is kept: "
            "--start-from {} --keep weights,state",
            folder, stored.samplesPerStep, mine.samplesPerStep, folder));
  if (!stored.data.empty() && stored.data != mine.data)
    throw SharedFailure(
        Exit::kUsage,
        fmt::format(
            "the checkpoint in {} has learned other data (fingerprints {} and {}), in which "
            "it has a position; to learn this data with what it knows, say what is kept: "
            "--start-from {} --keep weights,state",
            folder, stored.data, mine.data, folder));
  if (!stored.data.empty() && stored.order != mine.order)
    throw SharedFailure(
        Exit::kUsage,
        fmt::format("the checkpoint in {} has read its files as {}, and this run would as {}: "
                    "give --readers and --batch as they were",
                    folder, stored.order, mine.order));
}

}  // namespace weft::train
