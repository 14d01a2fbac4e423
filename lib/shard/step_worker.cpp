// SPDX-License-Identifier: Apache-2.0
#include "shard/step_worker.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/threads.h"
#include "comm/agree.h"

namespace weft::shard {

StepWorker::StepWorker(Mesh& mesh, ShardState& state, SplitParameters split, std::string who,
                       int timeoutMs)
    : mesh_(mesh),
      state_(state),
      who_(std::move(who)),
      timeoutMs_(timeoutMs),
      reducer_(mesh, state),
      updater_(mesh, state, std::move(split)),
      progress_(state.buckets()) {}

Status StepWorker::rest() { return progress_.fail(stream_.synchronize()); }

Status StepWorker::begin(const MicroStepArgs& args) {
  WEFT_TRY(checkMicroSteps(args));
  WEFT_TRY(rest());  // backward is about to write to what it reads
  args_ = args;
  if (!args.boundary) return {};
  state_.weightDecay = args.weightDecay;
  if (!isEager()) return {};
  updater_.begin({args.learningRate, averaging(), ++std::atomic_ref(state_.steps)}, timeoutMs_);
  progress_.begin();
  return {};
}

// One rank adds all of its micro-steps as the tree does, whatever their number.
std::uint64_t StepWorker::runLength() const {
  return state_.config().reproducible && mesh_.ranks() > 1 ? runLengthOf(args_.microSteps) : 0;
}

Status StepWorker::checkMicroSteps(const MicroStepArgs& args) const {
  const std::uint64_t now = micro_ + 1, said = args.microSteps;
  if (said != 0 &&
      (now > said || args.boundary != (now == said) || (micro_ > 0 && said != args_.microSteps)))
    return Status::error(Code::InvalidUsage, who_, ": micro-step ", now,
                         args.boundary ? ", the last one," : "", " of a step whose microSteps is ",
                         said,
                         "; fix: weftStepArgs.microSteps is that of all micro-steps of a step, and "
                         "boundary is set in the last one");
  if (said != 0 || !state_.config().reproducible || mesh_.ranks() == 1) return {};
  if (!args.boundary || std::has_single_bit(now)) return {};
  return Status::error(Code::InvalidUsage, who_, ": a reproducible step of ", now,
                       " micro-steps, no power of two; fix: say so in weftStepArgs.microSteps from "
                       "the first of them on");
}

void StepWorker::reduce(std::uint32_t bucket) {
  const MicroStep micro{micro_, args_.boundary, timeoutMs_, runLength()};
  if (!reducer_.takesPart(micro) && !state_.config().reproducible) return;
  stream_.enqueue([this, bucket, micro] {
    if (!reduced_.ok()) return reduced_;
    reduced_ = withoutExceptions([&] { return reduceNow(bucket, micro); });
    if (!reduced_.ok()) mesh_.fail(reduced_);
    return reduced_;
  });
}

Status StepWorker::reduceNow(std::uint32_t bucket, const MicroStep& micro) {
  if (state_.config().reproducible)
    if (const Status kept = reducer_.keep(bucket, micro); !kept.ok())
      return Status::error(kept.code(), text(who_, ": ", kept.text()));
  if (!reducer_.takesPart(micro)) return {};
  if (!isEager()) {
    WEFT_TRY(reducer_.reduce(bucket, micro));
    if (givesBack() || !micro.boundary) state_.clearGradients(bucket);
    return {};
  }
  WEFT_TRY(updater_.step(bucket, reducer_.wire(bucket), &reducer_.report()));
  progress_.markUpdated(bucket);
  return {};
}

void StepWorker::step(std::uint32_t missing) {
  micros_ = std::exchange(micro_, 0);
  if (!isEager()) progress_.begin();
  stream_.enqueue([this, missing] {
    goesOn_ = false;
    result_ = withoutExceptions([&] { return stepNow(missing); });
    if (!result_.ok() && !goesOn_) mesh_.fail(result_);
    progress_.end();
    return goesOn_ ? Status() : result_;
  });
  if (!givesBack()) stream_.enqueue([this] { return clearGradients(); });
}

Status StepWorker::stepNow(std::uint32_t missing) {
  own_ = reportOf(reducer_, mesh_, args_, micros_, missing);
  reducer_.reset();
  outcome_ = {};
  WEFT_TRY(reduced_);
  WEFT_TRY(decide());
  if (!outcome_.skipped && !isEager()) WEFT_TRY(updateAll());
  if (state_.config().optimizer.kind == Optimizer::Custom && !outcome_.skipped)
    return shareFailures();
  goesOn_ = true;
  return {};
}

// With the ranks that share this part of the model, and then with those that have the others.
Status StepWorker::decide() {
  WEFT_TRY(comm::gatherRecords(mesh_.world(), own_, &reports_, timeoutMs_, "gradient norm"));
  std::string misuse;
  ownPart_ = partReportOf(reports_, state_.layout(), &misuse);
  WEFT_TRY(comm::gatherRecords(mesh_.parts(), ownPart_, &parts_, timeoutMs_, "norm of the parts"));
  const std::string ofParts = decideStep(parts_, args_, mesh_.ranks(), &outcome_);
  if (misuse.empty()) misuse = ofParts;
  goesOn_ = !misuse.empty();
  if (!goesOn_) return {};
  outcome_.skipped = !isEager();
  return Status::error(Code::InvalidUsage, who_, ": ", misuse);
}

// In the order in which forward uses them, so that it may begin after the first.
Status StepWorker::updateAll() {
  updater_.begin({args_.learningRate, averaging() * outcome_.clip, ++std::atomic_ref(state_.steps)},
                 timeoutMs_);
  if (needsTrust(state_.config().optimizer.kind)) WEFT_TRY(updater_.prepare());
  for (std::uint32_t b = state_.buckets(); b-- > 0;) {
    WEFT_TRY(updater_.update(b));
    if (b > 0) progress_.markUpdated(b);
  }
  return {};
}

// A caller's optimizer may fail on any rank: all are told. Parameters are what it has left.
Status StepWorker::shareFailures() {
  const Stepper::Failure& own = updater_.failure();
  WEFT_TRY(comm::gatherRecords(mesh_.world(), own.parameter, &failures_, timeoutMs_, "custom"));
  const bool failed =
      std::ranges::any_of(failures_, [](auto p) { return p != Stepper::Failure::kNone; });
  WEFT_TRY(
      comm::gatherRecords(mesh_.parts(), failed ? 1u : 0u, &failedParts_, timeoutMs_, "custom"));
  goesOn_ = true;
  const auto nameOf = [&](std::uint32_t p) {
    return text("parameter '", state_.layout().parameters()[p].name, "'");
  };
  if (!own.status.ok())
    return Status::error(own.status.code(),
                         text(own.status.text(), " for ", nameOf(own.parameter)));
  for (std::size_t r = 0; r < failures_.size(); ++r)
    if (failures_[r] != Stepper::Failure::kNone)
      return Status::error(Code::RemoteError, "the custom optimizer failed on rank ", r, " for ",
                           nameOf(failures_[r]), "; fix: its own error says why");
  for (std::size_t p = 0; p < failedParts_.size(); ++p)
    if (failedParts_[p] != 0)
      return Status::error(Code::RemoteError, "the custom optimizer failed in part ", p,
                           " of the model; fix: its own error says why");
  return {};
}

// Sharded gradients make room at once; whole ones are zeroed while forward runs.
bool StepWorker::givesBack() const { return state_.config().degrees.grad > 1; }

// Whoever has waited for the step goes first where there is no core for both. After a step that has
// failed peers may still read them.
Status StepWorker::clearGradients() {
  for (std::uint32_t b = 0; b < state_.buckets() && goesOn_; ++b) {
    std::this_thread::yield();
    state_.clearGradients(b);
  }
  return {};
}

Status StepWorker::wait(StepOutcome* outcome) {
  progress_.wait();
  Status status;
  (void)stream_.query(&status);  // a reduction's error comes first
  if (status.ok()) status = result_;
  if (!goesOn_) (void)progress_.fail(status);
  *outcome = outcome_;
  return status;
}

Status StepWorker::publish() {
  updater_.begin({}, timeoutMs_);
  for (std::uint32_t b = 0; b < state_.buckets(); ++b) WEFT_TRY(updater_.publish(b));
  return {};
}

}  // namespace weft::shard
