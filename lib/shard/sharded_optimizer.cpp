// SPDX-License-Identifier: Apache-2.0
#include "shard/sharded_optimizer.h"

#include <atomic>
#include <utility>

#include "base/invalid.h"
#include "base/text.h"
#include "base/threads.h"
#include "comm/agree.h"
#include "shard/split_parameters.h"

namespace weft::shard {

Status ShardedOptimizer::create(comm::Communicator& parent, const ShardConfig& config,
                                std::vector<ParameterSpec> parameters,
                                std::unique_ptr<ShardedOptimizer>* out, comm::Communicator* parts) {
  Layout layout;
  ModelPart part;
  if (parts != nullptr) part = {parts->rank(), parts->ranks()};
  Status placed = checkConfig(config, parent.ranks());
  if (placed.ok())
    placed = Layout::make(std::move(parameters), config.bucketElements, parent.ranks(), &layout);
  if (parent.ranks() > 1) placed = agreeOnModel(parent, config, part, layout, placed);
  WEFT_TRY(parts == nullptr ? placed : agreeOnParts(parent, *parts, config, placed));
  std::unique_ptr<ShardedOptimizer> made(
      new ShardedOptimizer(parent.name(), parent.config().timeoutMs));
  SplitParameters split;
  if (parts != nullptr) WEFT_TRY(SplitParameters::find(*parts, layout, made->timeoutMs_, &split));
  WEFT_TRY(Mesh::make(parent, parts, config.degrees, &made->mesh_));
  WEFT_TRY(ShardState::make(config, made->mesh_, std::move(layout), &made->state_));
  made->worker_ = std::make_unique<StepWorker>(made->mesh_, made->state_, std::move(split),
                                               made->who(), made->timeoutMs_);
  if (made->mesh_.size(Level::Param) > 1)
    made->gatherer_ = std::make_unique<Gatherer>(made->mesh_, made->state_,
                                                 made->worker_->progress(), made->timeoutMs_);
  *out = std::move(made);
  return {};
}

// What is queued ends with the error of its communicators, or by itself.
ShardedOptimizer::~ShardedOptimizer() {
  if (worker_ == nullptr) return;
  if (phase_ == Phase::Idle && worker_->isBetweenSteps() && !(gatherer_ && gatherer_->isBusy()))
    return;
  const auto end = [&] { return abort(), Status(); };
  if (!withoutExceptions(end).ok()) (void)withoutExceptions(end);  // no memory: once more
}

std::string ShardedOptimizer::who() const {
  return text("sharded optimizer on ", name_, ", rank ", mesh_.rank());
}

Status ShardedOptimizer::usage(std::string_view what) const {
  return Status::error(Code::InvalidUsage, who(), ": ", what);
}

Status ShardedOptimizer::start(int root) {
  if (phase_ != Phase::Idle) return usage("start in a step; fix: weftStepWait first");
  if (root < -1 || root >= static_cast<int>(mesh_.ranks()))
    return invalid("root ", root, " is no rank");
  if (root >= 0)
    WEFT_TRY(comm::shareFrom(mesh_.world(), static_cast<std::uint32_t>(root), state_.parameters(0),
                             layout().flatElements() * reduce::sizeOf(state_.config().paramType),
                             timeoutMs_, "initial parameters"));
  state_.adopt();
  hasWeights_ = true;
  releaseAll();
  return {};
}

// One rank alone has no communicators, which would tell.
void ShardedOptimizer::abort() {
  mesh_.abort();
  if (mesh_.ranks() == 1)
    fail(Status::error(Code::Aborted, who(), " was aborted; fix: destroy it and create a new one"));
}

Status ShardedOptimizer::atRest(std::string_view call) {
  if (phase_ != Phase::Idle || !worker_->isBetweenSteps())
    return usage(text(call, " in a step; fix: call it after weftStepWait"));
  return worker_->rest();
}

Status ShardedOptimizer::setWeights(std::uint32_t parameter, const float* weights) {
  WEFT_TRY(atRest("weftShardSetWeights"));
  state_.setWeights(layout().slot(parameter).parameter, weights);
  return {};
}

Status ShardedOptimizer::publish() {
  WEFT_TRY(worker_->publish());
  hasWeights_ = true;
  releaseAll();
  return {};
}

Status ShardedOptimizer::begin(const MicroStepArgs& args) {
  if (phase_ != Phase::Idle)
    return usage(phase_ == Phase::Backward
                     ? "weftStepBegin twice; fix: weftGradDone ends a micro-step"
                     : "weftStepBegin before weftStepWait of the step before");
  if (!hasWeights_)
    return usage("weftStepBegin without weights; fix: weftShardStart, or weftShardLoad");
  WEFT_TRY(checkArgs(args, state_.config().eager));
  WEFT_TRY(worker_->begin(args));
  readiness_.reset();
  atBoundary_ = args.boundary;
  phase_ = Phase::Backward;
  return {};
}

Status ShardedOptimizer::ready(std::uint32_t parameter) {
  if (phase_ != Phase::Backward) return usage("weftGradReady outside of a micro-step");
  const std::uint32_t p = layout().slot(parameter).parameter;
  if (const char* const wrong = readiness_.mark(p))
    return usage(text("parameter '", layout().parameters()[p].name, "' ", wrong));
  reduceBuckets(false);
  return {};
}

void ShardedOptimizer::reduceBuckets(bool all) {
  for (std::uint32_t bucket = 0; readiness_.take(all, &bucket);) worker_->reduce(bucket);
}

Status ShardedOptimizer::neverReady(std::uint32_t missing, std::string_view so) const {
  return usage(
      text("parameter '", layout().parameters()[missing - 1].name, "' was never ready", so));
}

Status ShardedOptimizer::done() {
  if (phase_ != Phase::Backward) return usage("weftGradDone outside of a micro-step");
  phase_ = Phase::Idle;
  const std::uint32_t missing = readiness_.missing();
  if (missing != 0 && state_.config().eager) {
    abort();
    return neverReady(missing, ", and the eager step of others has begun: aborted");
  }
  // The other ranks wait for this one's part, whatever it is worth; the step is called off later.
  reduceBuckets(true);
  worker_->endMicroStep();
  if (!atBoundary_) {
    if (missing == 0) return {};
    return neverReady(missing, " in this micro-step: its gradient counts as it is");
  }
  releaseAll();  // they are old now
  worker_->step(missing);
  phase_ = Phase::Reducing;
  return {};
}

Status ShardedOptimizer::wait(StepOutcome* outcome) {
  if (phase_ != Phase::Reducing)
    return usage("weftStepWait without a step; fix: weftStepBegin with boundary, weftGradDone");
  const Clock::time_point from = Clock::now();
  const Status status = worker_->wait(outcome);
  waited_ += Clock::now() - from;
  phase_ = Phase::Idle;
  outcome->exposedSeconds = std::chrono::duration<double>(std::exchange(waited_, {})).count();
  return status;
}

std::int64_t ShardedOptimizer::steps() { return std::atomic_ref(state_.steps).load(); }

Status ShardedOptimizer::acquire(std::uint32_t bucket) {
  const Clock::time_point from = Clock::now();
  Status status = worker_->progress().awaitUpdate(bucket, timeoutMs_);
  if (status.ok() && gatherer_) {
    status = gatherer_->wait(bucket);
    if (!status.ok()) fail(status);
  }
  waited_ += Clock::now() - from;
  return status;
}

Status ShardedOptimizer::prefetch(std::uint32_t bucket) {
  if (gatherer_) gatherer_->begin(bucket);
  return {};
}

Status ShardedOptimizer::release(std::uint32_t bucket) {
  if (gatherer_) gatherer_->drop(bucket);
  return {};
}

void ShardedOptimizer::releaseAll() {
  for (std::uint32_t b = 0; gatherer_ && b < state_.buckets(); ++b) gatherer_->drop(b);
}

}  // namespace weft::shard
