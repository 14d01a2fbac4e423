// SPDX-License-Identifier: Apache-2.0
#include "shard/sharded_optimizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <thread>
#include <utility>

#include "base/hash.h"
#include "base/text.h"

namespace weft {
namespace {

std::uint64_t fingerprint(const ShardConfig& c) {
  Hash hash;
  hash.add(c.degrees.param).add(c.degrees.grad).add(c.degrees.state).add(c.bucketElements);
  for (const DType t : {c.paramType, c.gradType, c.wireType})
    hash.add(static_cast<std::uint64_t>(t));
  hash.add(static_cast<std::uint64_t>(c.optimizer.kind))
      .add(static_cast<std::uint64_t>(c.rounding));
  for (const double x :
       {c.optimizer.beta1, c.optimizer.beta2, c.optimizer.epsilon, c.optimizer.momentum})
    hash.add(std::bit_cast<std::uint64_t>(x));
  for (const bool flag :
       {c.optimizer.nesterov, c.optimizer.lambOnAll, c.master, c.reproducible, c.eager})
    hash.add(flag ? 1u : 0u);
  return hash.add(c.seed).value();
}

bool isFloat(DType t) { return t == DType::F32 || t == DType::F16 || t == DType::BF16; }

Status invalid(std::string why) { return Status::error(Code::InvalidArgument, std::move(why)); }

Status checkEager(const ShardConfig& c, std::uint32_t ranks) {
  if (!c.eager) return {};
  if (c.degrees.param != 1 || c.degrees.grad != 1 || c.degrees.state != ranks || ranks == 1)
    return invalid("eager steps need the degrees {1, 1, ranks}, on 2 ranks or more");
  if (c.optimizer.kind == Optimizer::Lamb)
    return invalid("LAMB cannot step eagerly: its norms are of whole parameters");
  if (c.reproducible) return invalid("eager steps are not reproducible; fix: choose one of them");
  if (sizeOf(c.wireType) != sizeOf(c.paramType))
    return invalid("eager steps need a wire type as long as the parameters' type");
  return {};
}

Status checkConfig(const ShardConfig& c, std::uint32_t ranks) {
  WEFT_TRY(checkDegrees(c.degrees, ranks));
  if (!isFloat(c.paramType) || !isFloat(c.gradType) || !isFloat(c.wireType))
    return invalid("parameters, gradients and wire must be float32, float16 or bfloat16");
  if (c.gradType != c.wireType && c.gradType != DType::F32 && c.wireType != DType::F32)
    return invalid("gradients of one 16-bit type cannot travel as another");
  if (c.reproducible && (c.gradType != DType::F32 || c.wireType != DType::F32))
    return invalid("reproducible runs need fp32 gradients on an fp32 wire");
  const OptimizerSettings& o = c.optimizer;
  for (const double beta : {o.beta1, o.beta2, o.momentum})
    if (!(beta >= 0 && beta < 1)) return invalid("betas and momentum must be in [0, 1)");
  if (!(o.epsilon > 0)) return invalid("epsilon must be above 0");
  if (o.kind == Optimizer::Custom && !o.custom)
    return invalid("a custom optimizer needs its function");
  return checkEager(c, ranks);
}

Status gatherWords(Communicator& comm, const std::vector<std::uint64_t>& mine,
                   std::vector<std::uint64_t>* all) {
  all->resize(mine.size() * comm.ranks());
  Call call;
  call.collective = Collective::AllGather;
  call.type = DType::U64;
  call.count = mine.size();
  return comm.run(call, mine.data(), all->data(), nullptr, comm.config().timeoutMs, "shard");
}

Status agreeOnKind(Communicator& comm, const ShardConfig& config, const Layout& layout,
                   const Status& mine) {
  enum : std::size_t { kFailed, kConfig, kCount, kWords };
  std::vector<std::uint64_t> all;
  WEFT_TRY(gatherWords(comm, {mine.ok() ? 0u : 1u, fingerprint(config), layout.parameters().size()},
                       &all));
  WEFT_TRY(mine);
  const auto of = [&](std::size_t rank, std::size_t word) { return all[rank * kWords + word]; };
  for (std::size_t r = 0; r < comm.ranks(); ++r) {
    if (of(r, kFailed) != 0)
      return invalid(text("rank ", r, " cannot make its shard; fix: its own error says why"));
    if (of(r, kConfig) != of(0, kConfig))
      return invalid(text("rank ", r,
                          " has another configuration of the sharded optimizer than rank 0; fix: "
                          "pass the same on all ranks"));
    if (of(r, kCount) != of(0, kCount))
      return invalid(text("rank ", r, " registered ", of(r, kCount), " parameters, rank 0 ",
                          of(0, kCount), "; fix: build the same model on all ranks"));
  }
  return {};
}

// Every rank hears what all want, before anything is made, and says the same of it.
Status agree(Communicator& comm, const ShardConfig& config, const Layout& layout,
             const Status& mine) {
  WEFT_TRY(agreeOnKind(comm, config, layout, mine));
  std::vector<std::uint64_t> prints, all;
  const std::size_t n = layout.parameters().size();
  for (std::uint32_t p = 0; p < n; ++p) prints.push_back(layout.fingerprint(p));
  WEFT_TRY(gatherWords(comm, prints, &all));
  for (std::size_t i = n; i < all.size(); ++i) {
    const std::size_t r = i / n, p = i % n;
    if (all[i] == all[p]) continue;
    const ParameterSpec& spec = layout.parameters()[p];
    return invalid(text("rank ", r, " has another parameter number ", p, " than rank 0 (here '",
                        spec.name, "', ", spec.elements,
                        " elements); fix: register the same parameters in the same order"));
  }
  return {};
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(std::string name, int timeoutMs)
    : name_(std::move(name)), timeoutMs_(timeoutMs) {}

// What is queued ends with the error of its communicators, or by itself.
ShardedOptimizer::~ShardedOptimizer() {
  if (worker_ == nullptr) return;
  if (phase_ != Phase::Idle || micro_ != 0 || (gatherer_ && gatherer_->isBusy())) abort();
  worker_.reset();
}

Status ShardedOptimizer::create(Communicator& parent, const ShardConfig& config,
                                std::vector<ParameterSpec> parameters,
                                std::unique_ptr<ShardedOptimizer>* out) {
  Layout layout;
  Status placed = checkConfig(config, parent.ranks());
  if (placed.ok())
    placed = Layout::make(std::move(parameters), config.bucketElements, parent.ranks(), &layout);
  WEFT_TRY(parent.ranks() == 1 ? placed : agree(parent, config, layout, placed));
  std::unique_ptr<ShardedOptimizer> made(
      new ShardedOptimizer(parent.name(), parent.config().timeoutMs));
  WEFT_TRY(Mesh::make(parent, config.degrees, &made->mesh_));
  WEFT_TRY(ShardState::make(config, made->mesh_, std::move(layout), &made->state_));
  made->reducer_ = std::make_unique<Reducer>(made->mesh_, made->state_);
  made->updater_ = std::make_unique<Updater>(made->mesh_, made->state_);
  made->isReady_.assign(made->layout().parameters().size(), 0);
  made->isCurrent_.assign(made->state_.buckets(), 1);
  made->worker_ = std::make_unique<WorkStream>();
  if (made->mesh_.size(Level::Param) > 1)
    made->gatherer_ = std::make_unique<Gatherer>(
        made->mesh_, made->state_, made->timeoutMs_,
        [self = made.get()](std::uint32_t bucket) { return self->awaitUpdate(bucket); });
  *out = std::move(made);
  return {};
}

Status ShardedOptimizer::usage(std::string_view what) const {
  return Status::error(Code::InvalidUsage,
                       text("sharded optimizer on ", name_, ", rank ", mesh_.rank(), ": ", what));
}

Status ShardedOptimizer::start(int root) {
  if (phase_ != Phase::Idle) return usage("start in a step; fix: weftStepWait first");
  if (root < -1 || root >= static_cast<int>(mesh_.ranks()))
    return invalid(text("root ", root, " is no rank"));
  const std::size_t size = sizeOf(state_.config().paramType);
  if (root >= 0 && mesh_.world() != nullptr) {
    Call call;
    call.collective = Collective::Broadcast;
    call.type = DType::U8;
    call.root = root;
    call.count = layout().flatElements() * size;
    std::byte* const all = state_.parameters(0);
    WEFT_TRY(mesh_.world()->run(call, all, all, nullptr, timeoutMs_, "initial parameters"));
  }
  state_.adopt();
  if (mesh_.size(Level::Param) == 1) return {};
  for (std::uint32_t b = 0; b < state_.buckets(); ++b) WEFT_TRY(release(b));
  return {};
}

Status ShardedOptimizer::atRest(std::string_view call) {
  if (phase_ != Phase::Idle || micro_ != 0)
    return usage(text(call, " in a step; fix: call it after weftStepWait"));
  WEFT_TRY(worker_->synchronize());
  const std::lock_guard lock(mutex_);
  return broken_;
}

Status ShardedOptimizer::publish() {
  updater_->begin({}, timeoutMs_);
  for (std::uint32_t b = 0; b < state_.buckets(); ++b) {
    WEFT_TRY(updater_->publish(b));
    WEFT_TRY(release(b));
  }
  return {};
}

void ShardedOptimizer::fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  broken_ = status;
}

Status ShardedOptimizer::begin(const MicroStepArgs& args) {
  if (phase_ != Phase::Idle)
    return usage(phase_ == Phase::Backward
                     ? "weftStepBegin twice; fix: weftGradDone ends a micro-step"
                     : "weftStepBegin before weftStepWait of the step before");
  if (!(args.learningRate >= 0) || !(args.weightDecay >= 0) || !(args.clipNorm >= 0) ||
      !(args.lossScale > 0) || !(args.divisor >= 0))
    return invalid(
        "learningRate, weightDecay, clipNorm and divisor must be 0 or more, lossScale "
        "above 0");
  if (state_.config().eager && args.boundary && (args.clipNorm > 0 || args.skipNonFinite))
    return invalid(
        "an eager shard neither clips nor skips: it has stepped before it knows the norm; "
        "fix: clipNorm = 0 and skipNonFinite = 0, or create it without eager");
  const Status taken = worker_->synchronize();  // backward is about to write to what it reads
  {
    const std::lock_guard lock(mutex_);
    if (broken_.ok()) broken_ = taken;
    WEFT_TRY(broken_);
  }
  args_ = args;
  std::ranges::fill(isReady_, 0);
  missing_.clear();
  for (const Layout::Bucket& b : layout().buckets())
    missing_.push_back(static_cast<std::uint32_t>(b.parameters.size()));
  nextBucket_ = 0;
  phase_ = Phase::Backward;
  if (args.boundary) {
    const std::lock_guard lock(mutex_);
    state_.weightDecay = args.weightDecay;
    if (state_.config().eager) {
      ++state_.steps;
      updater_->begin({args.learningRate, averaging(), state_.steps}, timeoutMs_);
      std::ranges::fill(isCurrent_, 0);
    }
  }
  return {};
}

Status ShardedOptimizer::ready(std::uint32_t parameter) {
  if (phase_ != Phase::Backward) return usage("weftGradReady outside of a micro-step");
  if (parameter >= isReady_.size()) return invalid(text("there is no parameter ", parameter));
  const std::uint32_t p = layout().slot(parameter).parameter;
  const std::string& parameterName = layout().parameters()[p].name;
  if (layout().parameters()[p].frozen)
    return usage(text("parameter '", parameterName, "' is frozen and has no gradient"));
  if (isReady_[p] != 0)
    return usage(text("parameter '", parameterName, "' is ready twice in one micro-step"));
  isReady_[p] = 1;
  --missing_[layout().slot(p).bucket];
  launchComplete();
  return {};
}

void ShardedOptimizer::launchComplete() {
  while (nextBucket_ < missing_.size() && missing_[nextBucket_] == 0) launch(nextBucket_++);
}

double ShardedOptimizer::averaging() const {
  const double divisor = args_.divisor > 0 ? args_.divisor : mesh_.ranks();
  return 1 / (divisor * args_.lossScale);
}

void ShardedOptimizer::launch(std::uint32_t bucket) {
  const MicroStep micro{micro_, args_.boundary, timeoutMs_};
  if (!reducer_->takesPart(micro) && !state_.config().reproducible) return;
  worker_->enqueue([this, bucket, micro] {
    if (!reduced_.ok()) return reduced_;
    reduced_ = reduceOne(bucket, micro);
    if (!reduced_.ok()) mesh_.fail(reduced_);
    return reduced_;
  });
}

Status ShardedOptimizer::reduceOne(std::uint32_t bucket, const MicroStep& micro) {
  if (state_.config().reproducible) {
    const Status kept = reducer_->keep(bucket, micro);
    if (!kept.ok())
      return Status::error(kept.code(), text("rank ", mesh_.rank(), " of the sharded optimizer on ",
                                             name_, ": ", kept.text()));
  }
  if (!reducer_->takesPart(micro)) return {};
  if (!state_.config().eager) {
    WEFT_TRY(reducer_->reduce(bucket, micro));
    if (givesBack()) state_.clearGradients(bucket);
    return {};
  }
  WEFT_TRY(updater_->step(bucket, reducer_->wire(bucket), &reducer_->report()));
  markUpdated(bucket);
  return {};
}

Status ShardedOptimizer::done() {
  if (phase_ != Phase::Backward) return usage("weftGradDone outside of a micro-step");
  std::uint32_t missing = 0;
  for (std::uint32_t p = 0; p < isReady_.size() && missing == 0; ++p) {
    const ParameterSpec& spec = layout().parameters()[p];
    if (!spec.frozen && spec.tiedTo < 0 && isReady_[p] == 0) missing = p + 1;
  }
  if (missing != 0 && state_.config().eager) {
    abort();
    phase_ = Phase::Idle;
    return usage(text("parameter '", layout().parameters()[missing - 1].name,
                      "' was never ready, and the eager step of others has begun: aborted"));
  }
  // The other ranks wait for this one's part, whatever it is worth; the step is called off later.
  while (nextBucket_ < missing_.size()) launch(nextBucket_++);
  ++micro_;
  if (!args_.boundary) {
    phase_ = Phase::Idle;
    if (missing == 0) return {};
    return usage(text("parameter '", layout().parameters()[missing - 1].name,
                      "' was never ready in this micro-step: its gradient counts as it is"));
  }
  micros_ = std::exchange(micro_, 0);
  stepEnded_ = false;
  for (std::uint32_t b = 0; b < state_.buckets(); ++b) WEFT_TRY(release(b));  // they are old now
  if (!state_.config().eager) {
    const std::lock_guard lock(mutex_);
    std::ranges::fill(isCurrent_, 0);
  }
  worker_->enqueue([this, missing] {
    goesOn_ = false;
    result_ = finishStep(missing);
    if (!result_.ok() && !goesOn_) mesh_.fail(result_);
    endStep();
    return goesOn_ ? Status() : result_;
  });
  if (!givesBack()) worker_->enqueue([this] { return clearGradients(); });
  phase_ = Phase::Reducing;
  return {};
}

ShardedOptimizer::Word ShardedOptimizer::mine(std::uint32_t missing) {
  const GradientReport& report = reducer_->report();
  Word word{report.squares.words(), report.nonFinite, report.firstBad, -1, missing, argsPrint(),
            reducer_->earlyBad()};
  if (report.badMember < 0) return word;
  // The group whose members the last sum was of, the outermost one.
  for (std::size_t l = kLevels; l-- > 0;) {
    const auto level = static_cast<Level>(l);
    if (mesh_.size(level) == 1) continue;
    word.badRank = static_cast<std::int32_t>(
        mesh_.rankOf(level, static_cast<std::uint32_t>(report.badMember)));
    break;
  }
  if (mesh_.ranks() == 1) word.badRank = 0;
  return word;
}

Status ShardedOptimizer::shareWords() {
  words_.assign(mesh_.ranks(), own_);
  if (mesh_.world() == nullptr) return {};
  Call call;
  call.collective = Collective::AllGather;
  call.type = DType::U8;
  call.count = sizeof(Word);
  return mesh_.world()->run(call, &own_, words_.data(), nullptr, timeoutMs_, "gradient norm");
}

// The same on every rank, from the same words.
Status ShardedOptimizer::judge(StepOutcome* outcome) {
  const std::vector<Word>& words = words_;
  ExactSum squares;
  std::uint64_t firstBad = GradientStats::kNone;
  for (const Word& word : words) {
    ExactSum theirs;
    theirs.words() = word.squares;
    squares.add(theirs);
    outcome->nonFinite += word.nonFinite;
    if (word.firstBad >= firstBad) continue;
    firstBad = word.firstBad;
    outcome->badParameter = static_cast<int>(layout().parameterAt(firstBad));
    outcome->badRank = word.badRank;
  }
  // Where sums of groups are summed, or micro-steps were before, who did it was seen then.
  std::uint64_t earliest = ~std::uint64_t{0};
  for (const Word& word : words) {
    if (word.early.index != firstBad || word.early.rank < 0 || word.early.when >= earliest)
      continue;
    earliest = word.early.when;
    outcome->badRank = word.early.rank;
  }
  goesOn_ = true;
  for (std::size_t r = 0; r < words.size(); ++r) {
    if (words[r].missing == 0 && words[r].args == words[0].args) continue;
    outcome->skipped = !state_.config().eager;
    if (words[r].missing == 0)
      return usage(text("rank ", r, " has other weftStepArgs than rank 0; fix: pass the same"));
    return usage(text("parameter '", layout().parameters()[words[r].missing - 1].name,
                      "' was never ready on rank ", r,
                      "; no rank has stepped; fix: weftGradReady for every trained parameter"));
  }
  outcome->gradientNorm = std::sqrt(squares.value()) * averaging();
  outcome->skipped = outcome->nonFinite != 0 && args_.skipNonFinite;
  if (args_.clipNorm > 0 && outcome->gradientNorm > args_.clipNorm)
    outcome->clip = args_.clipNorm / outcome->gradientNorm;
  return {};
}

Status ShardedOptimizer::finishStep(std::uint32_t missing) {
  own_ = mine(missing);
  reducer_->reset();
  outcome_ = {};
  WEFT_TRY(reduced_);
  WEFT_TRY(shareWords());
  WEFT_TRY(judge(&outcome_));
  goesOn_ = false;
  if (!outcome_.skipped && !state_.config().eager) WEFT_TRY(updateAll(outcome_));
  if (state_.config().optimizer.kind == Optimizer::Custom && !outcome_.skipped)
    return shareFailures();
  goesOn_ = true;
  return {};
}

// A caller's optimizer may fail on any rank: all are told. Parameters are what it has left.
Status ShardedOptimizer::shareFailures() {
  const Updater::Failure& own = updater_->failure();
  std::vector<std::uint32_t>& all = failures_;
  all.assign(mesh_.ranks(), own.parameter);
  if (mesh_.world() != nullptr) {
    Call call;
    call.collective = Collective::AllGather;
    call.type = DType::U32;
    call.count = 1;
    WEFT_TRY(mesh_.world()->run(call, &own.parameter, all.data(), nullptr, timeoutMs_, "custom"));
  }
  goesOn_ = true;
  const auto nameOf = [&](std::uint32_t p) {
    return text("parameter '", layout().parameters()[p].name, "'");
  };
  if (!own.status.ok())
    return Status::error(own.status.code(),
                         text(own.status.text(), " for ", nameOf(own.parameter)));
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] != Updater::Failure::kNone)
      return Status::error(Code::RemoteError,
                           text("the custom optimizer failed on rank ", r, " for ", nameOf(all[r]),
                                "; fix: its own error says why"));
  return {};
}

// What must be the same on all ranks.
std::uint64_t ShardedOptimizer::argsPrint() const {
  Hash hash;
  for (const double x :
       {args_.learningRate, args_.weightDecay, args_.clipNorm, args_.lossScale, args_.divisor})
    hash.add(std::bit_cast<std::uint64_t>(x));
  return hash.add(args_.skipNonFinite ? 1u : 0u).add(micros_).value();
}

// In the order in which forward uses them, so that it may begin after the first.
Status ShardedOptimizer::updateAll(const StepOutcome& outcome) {
  {
    const std::lock_guard lock(mutex_);
    ++state_.steps;
  }
  updater_->begin({args_.learningRate, averaging() * outcome.clip, state_.steps}, timeoutMs_);
  if (state_.config().optimizer.kind == Optimizer::Lamb) WEFT_TRY(updater_->prepare());
  for (std::uint32_t b = state_.buckets(); b-- > 0;) {
    WEFT_TRY(updater_->update(b));
    if (b > 0) markUpdated(b);
  }
  return {};
}

// Sharded gradients make room at once; whole ones are zeroed while forward runs.
bool ShardedOptimizer::givesBack() const { return state_.config().degrees.grad > 1; }

// Whoever has waited for the step goes first where there is no core for both. After a step that has
// failed peers may still read them.
Status ShardedOptimizer::clearGradients() {
  for (std::uint32_t b = 0; b < state_.buckets() && goesOn_; ++b) {
    std::this_thread::yield();
    state_.clearGradients(b);
  }
  return {};
}

void ShardedOptimizer::endStep() {
  const std::lock_guard lock(mutex_);
  std::ranges::fill(isCurrent_, 1);
  stepEnded_ = true;
  updated_.notify_all();
}

void ShardedOptimizer::markUpdated(std::uint32_t bucket) {
  const std::lock_guard lock(mutex_);
  isCurrent_[bucket] = 1;
  updated_.notify_all();
}

Status ShardedOptimizer::wait(StepOutcome* outcome) {
  if (phase_ != Phase::Reducing)
    return usage("weftStepWait without a step; fix: weftStepBegin with boundary, weftGradDone");
  const Clock::time_point from = Clock::now();
  Status status;
  {
    std::unique_lock lock(mutex_);
    updated_.wait(lock, [&] { return stepEnded_; });  // its collectives have deadlines
    Status first;
    (void)worker_->query(&first);  // a reduction's
    status = first.ok() ? result_ : first;
    if (!status.ok() && !goesOn_) broken_ = status;
  }
  waited_ += Clock::now() - from;
  phase_ = Phase::Idle;
  *outcome = outcome_;
  outcome->exposedSeconds = std::chrono::duration<double>(waited_).count();
  waited_ = {};
  return status;
}

std::int64_t ShardedOptimizer::steps() {
  const std::lock_guard lock(mutex_);
  return state_.steps;
}

Status ShardedOptimizer::checkBucket(std::uint32_t bucket) const {
  if (bucket < state_.buckets()) return {};
  return invalid(text("there is no bucket ", static_cast<int>(bucket)));
}

Status ShardedOptimizer::acquire(std::uint32_t bucket) {
  WEFT_TRY(checkBucket(bucket));
  const Clock::time_point from = Clock::now();
  Status status = awaitUpdate(bucket);
  if (status.ok() && gatherer_) {
    status = gatherer_->wait(bucket);
    const std::lock_guard lock(mutex_);
    if (!status.ok()) broken_ = status;
  }
  waited_ += Clock::now() - from;
  return status;
}

Status ShardedOptimizer::prefetch(std::uint32_t bucket) {
  WEFT_TRY(checkBucket(bucket));
  if (gatherer_) gatherer_->begin(bucket);
  return {};
}

Status ShardedOptimizer::awaitUpdate(std::uint32_t bucket) {
  std::unique_lock lock(mutex_);
  WEFT_TRY(broken_);
  const auto ready = [&] { return isCurrent_[bucket] != 0; };
  if (!updated_.wait_for(lock, std::chrono::milliseconds(timeoutMs_), ready))
    return Status::error(Code::Timeout,
                         text("the update of bucket ", bucket, " did not end within ", timeoutMs_,
                              " ms; fix: weftStepWait has the reason"));
  return {};
}

Status ShardedOptimizer::release(std::uint32_t bucket) {
  WEFT_TRY(checkBucket(bucket));
  if (gatherer_) gatherer_->drop(bucket);
  return {};
}

}  // namespace weft
