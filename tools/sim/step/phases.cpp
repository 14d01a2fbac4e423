// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/step/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/invalid.h"
#include "shard/hops.h"
#include "shard/layout.h"
#include "shard/readiness.h"
#include "shard/step_outcome.h"
#include "tools/train/residency.h"

namespace weft::simulator {
namespace {

using After = std::vector<std::uint32_t>;
using shard::Level;

using train::Pass;

constexpr std::uint32_t kNothing = ~0u;
constexpr double kGradientBytes = sizeof(float);  // of an element, as weft-train has them

// A tied parameter is in the bucket of what it is tied to.
std::vector<std::set<int>> bucketsByLayer(const StepModel& model, const shard::Layout& layout) {
  std::vector<std::set<int>> all;
  for (const StepLayer& layer : model.layers) {
    all.emplace_back();
    for (std::size_t p = layer.first; p < layer.first + layer.count; ++p)
      if (const auto b = layout.slot(static_cast<std::uint32_t>(p)).bucket;
          b != shard::Layout::kNoBucket)
        all.back().insert(static_cast<int>(b));
  }
  return all;
}

class StepBuilder {
 public:
  StepBuilder(const StepModel& model, const StepSettings& settings, const shard::Layout& layout,
              std::uint32_t dataRanks, StepPhases* out)
      : model_(model),
        settings_(settings),
        layout_(layout),
        levels_(settings.degrees, dataRanks),
        readiness_(layout),
        out_(*out),
        current_(layout.buckets().size(), kNothing),
        copies_(layout.buckets().size(), kNothing),
        isHere_(layout.buckets().size(), 1),
        residency_(bucketsByLayer(model, layout), train::FirstLayer::kIsFirst) {}

  void build(std::uint32_t steps) {
    counted_ = std::min(steps, 2u) - 1;
    for (step_ = 0; step_ < steps; ++step_) {
      forward();
      finish();
      for (std::uint32_t micro = 0; micro < settings_.accumulate; ++micro) {
        if (micro > 0) forward();
        backward(micro + 1 == settings_.accumulate);
      }
      if (!settings_.overlaps) finish();
    }
    forward();
    finish();
  }

 private:
  // ---- phases

  std::uint32_t add(sim::Phase phase) {
    std::erase(phase.after, kNothing);
    last_[phase.stream] = static_cast<std::uint32_t>(out_.phases.size());
    out_.phases.push_back(std::move(phase));
    return last_[out_.phases.back().stream];
  }
  std::uint32_t compute(StepStream stream, std::string name, double ns, After after = {}) {
    return add({.name = std::move(name), .stream = stream, .after = std::move(after), .ns = ns});
  }
  std::uint32_t call(StepStream stream, std::string name, const sim::Groups& groups,
                     const plan::Call& what, After after = {}) {
    return add({.name = std::move(name),
                .stream = stream,
                .after = std::move(after),
                .call = numberOf({groups, what})});
  }
  // Equal calls of equal groups are one.
  std::uint32_t numberOf(const StepCall& wanted) {
    const auto same = std::ranges::find_if(out_.calls, [&](const StepCall& known) {
      const plan::Call &a = known.call, &b = wanted.call;
      return known.groups == wanted.groups && a.collective == b.collective && a.type == b.type &&
             a.op == b.op && a.count == b.count;
    });
    if (same == out_.calls.end()) {
      out_.calls.push_back(wanted);
      return static_cast<std::uint32_t>(out_.calls.size() - 1);
    }
    return static_cast<std::uint32_t>(same - out_.calls.begin());
  }
  sim::Groups groupsOf(Level level) const {
    return {levels_.size(level), levels_.stride(level) * settings_.tensor};
  }
  // The caller waits for these.
  void await(std::string name, After after) {
    std::erase(after, kNothing);
    if (!after.empty()) compute(kCaller, std::move(name), 0, std::move(after));
  }
  double elementsOf(std::uint32_t bucket) const {
    return static_cast<double>(layout_.buckets()[bucket].elements);
  }
  double bytesOf(std::uint32_t bucket) const {  // of its parameters
    return elementsOf(bucket) * static_cast<double>(reduce::sizeOf(settings_.paramType));
  }
  std::string named(const char* what, std::uint32_t bucket) const {
    return fmt::format("{} of bucket {}", what, bucket);
  }

  // ---- the caller's passes

  void forward() {
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const StepLayer& layer = model_.layers[i];
      acquire(i, Pass::kForward);
      compute(kCaller, "forward of " + layer.name, layer.forwardNs);
      addUpTensors(layer);
      release(i, Pass::kForward);
    }
  }

  // Waits until the step before is over, which has queued its last update.
  void finish() {
    if (stepped_ == kNothing) return;
    out_.ends.push_back(
        compute(kCaller, "end of the step", 0, {std::exchange(stepped_, kNothing)}));
  }

  void backward(bool boundary) {
    await("the worker's rest", {last_[kWorker]});
    readiness_.reset();
    boundary_ = boundary;
    for (std::size_t i = model_.layers.size(); i-- > 0;) {
      acquire(i, Pass::kBackward);
      differentiate(model_.layers[i]);
      addUpTensors(model_.layers[i]);
      release(i, Pass::kBackward);
    }
    reduceReady(true);
    if (boundary) step();
  }

  // Gradients of a layer are ready one after the other, in the reverse order of registration; its
  // time is spread over them as their elements.
  void differentiate(const StepLayer& layer) {
    double all = 0, done = 0, from = 0;
    for (std::size_t p = layer.first; p < layer.first + layer.count; ++p)
      all += static_cast<double>(model_.parameters[p].elements);
    const auto computeUntil = [&](double to) {
      const double part = all > 0 ? (to - from) / all : 1;
      const double ns = layer.backwardNs * part + touchGradients(to - from);
      if (part > 0) compute(kCaller, "backward of " + layer.name, ns);
      from = to;
    };
    for (std::size_t p = layer.first + layer.count; p-- > layer.first;) {
      done += static_cast<double>(model_.parameters[p].elements);
      if (!model_.parameters[p].isTrained()) continue;
      readiness_.mark(static_cast<std::uint32_t>(p));
      if (!settings_.overlaps) continue;
      std::uint32_t bucket = 0;
      while (readiness_.take(false, &bucket)) {
        computeUntil(done);
        reduce(bucket);
      }
    }
    computeUntil(all);
  }

  // Of so many elements: where gradients are sharded their memory is new in each micro-step.
  double touchGradients(double elements) const {
    return settings_.degrees.grad == 1 ? 0
                                       : elements * kGradientBytes * settings_.pages.touchNsPerByte;
  }

  // Megatron's groups add up what each of their ranks has made of a layer.
  void addUpTensors(const StepLayer& layer) {
    if (settings_.tensor == 1 || layer.tensorBytes == 0) return;
    plan::Call sum;
    sum.collective = schedule::Collective::AllReduce;
    sum.type = settings_.paramType;
    sum.count = layer.tensorBytes / reduce::sizeOf(sum.type);
    call(kCaller, "tensors of " + layer.name, {settings_.tensor, 1}, sum);
  }

  // ---- parameters that are sharded are gathered by a stream of their own

  // Waits for the layer's buckets, and begins to gather the one that comes next.
  void acquire(std::size_t layer, Pass pass) {
    const train::Residency::Wanted wanted = residency_.use(layer, pass);
    After after;
    for (const int bucket : wanted.now) {
      const auto b = static_cast<std::uint32_t>(bucket);
      gather(b);
      after.push_back(current_[b]);
      after.push_back(copies_[b]);
    }
    await("parameters of " + model_.layers[layer].name, std::move(after));
    if (wanted.next >= 0) gather(static_cast<std::uint32_t>(wanted.next));
  }

  void gather(std::uint32_t bucket) {
    if (levels_.size(Level::Param) == 1 || std::exchange(isHere_[bucket], 1) != 0) return;
    const std::uint64_t kept =
        levels_.partOf(0, layout_.buckets()[bucket].elements, Level::Param).elements;
    compute(kGatherer, named("memory for parameters", bucket),
            bytesOf(bucket) * settings_.pages.touchNsPerByte, {last_[kCaller], current_[bucket]});
    copies_[bucket] = call(kGatherer, named("parameters", bucket), groupsOf(Level::Param),
                           shard::gatherCall(settings_.paramType, kept));
    count(shard::gatherCall(settings_.paramType, kept), levels_.size(Level::Param));
  }

  void release(std::size_t layer, Pass pass) {
    for (const int bucket : residency_.leave(layer, pass)) drop(static_cast<std::uint32_t>(bucket));
  }

  void drop(std::uint32_t bucket) {
    if (levels_.size(Level::Param) == 1 || std::exchange(isHere_[bucket], 0) == 0) return;
    compute(kCaller, named("memory of parameters", bucket),
            bytesOf(bucket) * settings_.pages.giveBackNsPerByte);
  }

  // ---- the worker

  void reduceReady(bool all) {
    std::uint32_t bucket = 0;
    while (readiness_.take(all, &bucket)) reduce(bucket);
  }

  void reduce(std::uint32_t bucket) {
    if (!shard::movesGradients(settings_.degrees, boundary_)) return;
    After after{last_[kCaller]};
    (void)shard::visitReductions(levels_, layout_.buckets()[bucket].elements, settings_.wireType,
                                 boundary_, [&](Level level, const plan::Call& what) {
                                   call(kWorker, named("gradients", bucket), groupsOf(level), what,
                                        after);
                                   count(what, levels_.size(level));
                                   return Status();
                                 });
    if (settings_.degrees.grad > 1)
      compute(kWorker, named("memory of gradients", bucket),
              elementsOf(bucket) * kGradientBytes * settings_.pages.giveBackNsPerByte);
  }

  // What ranks say of the step, then the updates, in the order in which forward uses them.
  void step() {
    if (levels_.ranks() > 1)
      call(kWorker, "the gradients' norm", {levels_.ranks(), settings_.tensor},
           shard::gatherCall(reduce::DType::U8, sizeof(shard::StepReport)), {last_[kCaller]});
    for (std::uint32_t b = 0; b < isHere_.size(); ++b) drop(b);  // they are old now
    for (auto b = static_cast<std::uint32_t>(current_.size()); b-- > 0;) update(b);
    stepped_ = last_[kWorker];
  }

  void update(std::uint32_t bucket) {
    const std::uint64_t elements = layout_.buckets()[bucket].elements;
    const auto own = static_cast<double>(levels_.partOf(0, elements, Level::State).elements);
    compute(kWorker, named("update", bucket), own * model_.updateNsPerElement, {last_[kCaller]});
    bool any = false;
    (void)shard::visitUpdates(levels_, elements, settings_.paramType, &any,
                              [&](Level level, const plan::Call& what, bool) {
                                call(kWorker, named("parameters", bucket), groupsOf(level), what);
                                count(what, levels_.size(level));
                                return Status();
                              });
    current_[bucket] = last_[kWorker];
  }

  // Of the second step, if there is one: the first has copies of all parameters when it begins.
  void count(const plan::Call& what, std::uint32_t ranks) {
    if (step_ != counted_) return;
    const double block = static_cast<double>(what.count * reduce::sizeOf(what.type));
    const bool both = what.collective == schedule::Collective::AllReduce;
    out_.sentBytes += block * (ranks - 1) * (both ? 2 : 1);
  }

  const StepModel& model_;
  const StepSettings& settings_;
  const shard::Layout& layout_;
  const shard::Levels levels_;
  shard::Readiness readiness_;
  StepPhases& out_;
  std::uint32_t last_[3] = {kNothing, kNothing, kNothing};  // by stream
  std::vector<std::uint32_t> current_;  // by bucket: the phase that has updated it
  std::vector<std::uint32_t> copies_;   // by bucket: the phase that has gathered it
  std::vector<char> isHere_;            // by bucket: its whole copy, or it is coming
  train::Residency residency_;
  std::uint32_t stepped_ = kNothing;  // the last phase of the step that is under way
  std::uint32_t step_ = 0, counted_ = 0;
  bool boundary_ = false;
};

}  // namespace

Status makePhases(const StepModel& model, const StepSettings& settings, std::uint32_t ranks,
                  std::uint32_t steps, StepPhases* out) {
  *out = {};
  if (settings.tensor == 0 || ranks % settings.tensor != 0)
    return invalid("tensor groups of ", settings.tensor, " do not divide ", ranks,
                   " ranks; fix: choose a divisor");
  const std::uint32_t dataRanks = ranks / settings.tensor;
  WEFT_TRY(shard::checkDegrees(settings.degrees, dataRanks));
  shard::Layout layout;
  WEFT_TRY(shard::Layout::make(model.parameters, settings.bucketElements, dataRanks, &layout));
  out->buckets = layout.buckets().size();
  StepBuilder(model, settings, layout, dataRanks, out).build(steps);
  return {};
}

}  // namespace weft::simulator
