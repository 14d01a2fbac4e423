// SPDX-License-Identifier: Apache-2.0
#include "tools/train/recipes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tools/train/failure.h"

namespace weft::train {
namespace {

constexpr int kFewSteps = 20;

Recipe bertLargePhase1() {
  return {"bert-large-phase1",
          {{"--model", "bert-large"},
           {"--seq", "128"},
           {"--global-batch", "65536"},
           {"--optimizer", "lamb"},
           {"--lr", "6e-3"},
           {"--dropout", "0.1"},
           {"--steps", "7038"},
           {"--warmup", "2001"},
           {"--decay", "poly"},
           {"--shard", "zero1"}},
          "no word pieces unless --vocab names them or --data is HDF5 shards; betas and weight "
          "decay are weft-train's own"};
}

Recipe bert15bDl1() {
  return {"bert-1.5b-dl1",
          {{"--model", "bert-1.5b"},
           {"--seq", "128"},
           {"--batch", "16"},
           {"--grad-accum", "24"},
           {"--optimizer", "lans"},
           {"--lr", "1.5e-3"},
           {"--beta1", "0.9"},
           {"--beta2", "0.999"},
           {"--epsilon", "1e-6"},
           {"--weight-decay", "0.01"},
           {"--clip", "1"},
           {"--dropout", "0.1"},
           {"--steps", "155000"},
           {"--warmup", "7750"},
           {"--hold", "38750"},
           {"--decay", "linear"},
           {"--shard", "zero1"}},
          "--lr is that of 64 cards (on 128: 3e-3)"};
}

Recipe pythia69bTrn1() {
  return {"pythia-6.9b-trn1",
          {{"--model", "pythia-6.9b"},
           {"--seq", "2048"},
           {"--global-batch", "256"},
           {"--optimizer", "adamw"},
           {"--lr", "1.2e-4"},
           {"--beta1", "0.9"},
           {"--beta2", "0.95"},
           {"--weight-decay", "0.1"},
           {"--clip", "1"},
           {"--steps", "10000"},
           {"--warmup", "100"},
           {"--decay", "cosine"},
           {"--rotary", "zero-frequency"},
           {"--params", "bf16-only"},
           {"--rounding", "stochastic"},
           {"--tensor", "8"},
           {"--shard", "zero1"}},
          "--tensor is lower where so many do not fit"};
}

Recipe neox20bTrn1() {
  return {"neox-20b-trn1",
          {{"--model", "neox-20b"},
           {"--seq", "2048"},
           {"--global-batch", "16384"},
           {"--optimizer", "adamw"},
           {"--beta1", "0.9"},
           {"--beta2", "0.95"},
           {"--weight-decay", "0.01"},
           {"--clip", "1"},
           {"--steps", "10000"},
           {"--warmup", "100"},
           {"--decay", "cosine"},
           {"--rotary", "zero-frequency"},
           {"--params", "bf16-only"},
           {"--rounding", "stochastic"},
           {"--tensor", "8"},
           {"--pipeline", "4"},
           {"--shard", "zero1"}},
          "its learning rate was not told; --tensor and --pipeline are lower where so many do not "
          "fit"};
}

Recipe gptjSmp() {
  return {
      "gptj-smp",
      {{"--model", "gptj-6b"},
       {"--seq", "1024"},
       {"--batch", "8"},
       {"--optimizer", "adamw"},
       {"--lr", "2e-4"},
       {"--beta1", "0.9"},
       {"--beta2", "0.95"},
       {"--weight-decay", "0.01"},
       {"--clip", "1"},
       {"--steps", "125000"},
       {"--warmup", "1250"},
       {"--decay", "linear"},
       {"--params", "fp16"},
       {"--recompute", Recipe::kFlag},
       {"--tensor", "8"},
       {"--shard", "mics"}},
      "all but --shard as the authors' example on SST-2 has it, which learns its sentences as "
      "running text, ends at step 100 of this "
      "schedule and never goes below a rate of 1e-5; --tensor is lower where so many do not fit"};
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all{bertLargePhase1(), bert15bDl1(), pythia69bTrn1(),
                                       neox20bTrn1(), gptjSmp()};
  return all;
}

std::string* valueOf(Recipe& recipe, const std::string& option) {
  const auto found =
      std::ranges::find(recipe.settings, option, [](const auto& s) { return s.first; });
  return found == recipe.settings.end() ? nullptr : &found->second;
}

void set(Recipe& recipe, const std::string& option, const std::string& value) {
  if (std::string* const known = valueOf(recipe, option))
    *known = value;
  else
    recipe.settings.emplace_back(option, value);
}

// A step of LANS moves each parameter by the learning rate, as a share of its length: the published rate is for
// many thousands of steps, and a few would get nowhere.
void hurryLans(Recipe& recipe) {
  const std::string* const optimizer = valueOf(recipe, "--optimizer");
  std::string* const rate = valueOf(recipe, "--lr");
  if (optimizer == nullptr || *optimizer != "lans" || rate == nullptr) return;
  *rate = fmt::format("{}", 10 * std::stod(*rate));
  recipe.lacks += "; scaled down, ten times that --lr";
}

Recipe scaledDownOf(Recipe recipe) {
  const std::string* const steps = valueOf(recipe, "--steps");
  const double share = steps == nullptr ? 1 : kFewSteps / std::stod(*steps);
  for (const char* const option : {"--warmup", "--hold"})
    if (std::string* const value = valueOf(recipe, option))
      *value = std::to_string(std::llround(std::stod(*value) * share));
  std::erase_if(recipe.settings, [](const auto& s) { return s.first == "--global-batch"; });
  hurryLans(recipe);
  for (const auto& [option, value] :
       {std::pair{"--steps", std::to_string(kFewSteps)}, std::pair{"--layers", std::string("2")},
        std::pair{"--hidden", std::string("64")}, std::pair{"--heads", std::string("4")},
        std::pair{"--seq", std::string("32")}, std::pair{"--batch", std::string("2")},
        std::pair{"--grad-accum", std::string("2")}, std::pair{"--log-every", std::string("5")}})
    set(recipe, option, value);
  return recipe;
}

}  // namespace

std::vector<std::string> recipeNames() {
  std::vector<std::string> names;
  for (const Recipe& each : recipes()) names.push_back(each.name);
  return names;
}

Recipe recipe(const std::string& name, bool scaledDown) {
  const auto found = std::ranges::find(recipes(), name, &Recipe::name);
  if (found == recipes().end())
    throw Failure(Exit::kUsage, fmt::format("there is no recipe {}; there are {}", name,
                                            fmt::join(recipeNames(), ", ")));
  return scaledDown ? scaledDownOf(*found) : *found;
}

}  // namespace weft::train
