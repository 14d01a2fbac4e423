// SPDX-License-Identifier: Apache-2.0
#include "weft/shard.h"

#include <memory>
#include <span>
#include <utility>

#include "api/check.h"
#include "api/structs.h"
#include "api/submit.h"
#include "shard/checkpoint.h"
#include "shard/export.h"
#include "shard/reshard.h"
#include "shard/sharded_optimizer.h"

namespace weft::api {
namespace {

// What a handle stands for. The writer ends first.
struct Shard {
  std::unique_ptr<shard::ShardedOptimizer> optimizer;
  std::unique_ptr<shard::CheckpointWriter> writer;
};

using ShardHandles = Handles<Shard, 0x5a>;

ShardHandles& shardHandles() { return processWide<ShardHandles>(); }

Status findShard(weftShard_t handle, ShardHandles::Pin* shard) {
  *shard = shardHandles().find(handle);
  if (*shard) return {};
  if (shardHandles().isParents(handle))
    return Status::error(Code::InvalidUsage,
                         "shard was made before this process was forked; fix: make one here");
  return invalid("shard is null, destroyed or no shard");
}

// Runs a call on a shard. An exception on one rank alone would leave others waiting: it is the end of
// the shard.
template <class Body>
weftResult_t onShard(weftShard_t handle, Body&& body) noexcept {
  return entry([&]() -> Status {
    ShardHandles::Pin shard;
    WEFT_TRY(findShard(handle, &shard));
    try {
      return body(*shard);
    } catch (...) {
      const Status status = statusOfException();
      shard->optimizer->breakOff(status);
      return status;
    }
  });
}

// The same for a call on a parameter: body(optimizer, parameter).
template <class Body>
weftResult_t onParam(weftShard_t handle, std::size_t param, const Body& body) noexcept {
  return onShard(handle, [&](Shard& shard) -> Status {
    const std::size_t n = shard.optimizer->layout().parameters().size();
    if (param >= n) return invalid("param is ", param, "; there are ", n);
    return body(*shard.optimizer, static_cast<std::uint32_t>(param));
  });
}

// The same for a call on a bucket.
using BucketCall = Status (shard::ShardedOptimizer::*)(std::uint32_t bucket);
weftResult_t onBucket(weftShard_t handle, int bucket, BucketCall call) noexcept {
  return onShard(handle, [&](Shard& shard) -> Status {
    const auto b = static_cast<std::uint32_t>(bucket);
    if (b >= shard.optimizer->state().buckets()) return invalid("there is no bucket ", bucket);
    return (*shard.optimizer.*call)(b);
  });
}

Status checkFlags(std::size_t i, const weftParam_t& p) {
  if (p.name == nullptr) return invalid("params[", i, "].name is NULL");
  constexpr unsigned kKnown =
      WEFT_PARAM_FROZEN | WEFT_PARAM_NO_DECAY | WEFT_PARAM_COPY | WEFT_PARAM_SPLIT;
  if ((p.flags & ~kKnown) != 0)
    return invalid("params[", i, "] ('", p.name, "') has flags that do not exist");
  if (p.shape != nullptr && (p.dimensions < 1 || p.dimensions > 64))
    return invalid("params[", i, "] ('", p.name, "').dimensions is ", p.dimensions);
  if (p.tiedTo < -1) return invalid("params[", i, "] ('", p.name, "').tiedTo is ", p.tiedTo);
  return {};
}

Status readParams(const weftParam_t* params, std::size_t n,
                  std::vector<shard::ParameterSpec>* out) {
  WEFT_TRY(checkPointer(params, "params"));
  if (n == 0 || n > (std::size_t{1} << 24)) return invalid("nparams is ", n);
  for (std::size_t i = 0; i < n; ++i) {
    const weftParam_t& p = params[i];
    WEFT_TRY(checkFlags(i, p));
    shard::ParameterSpec spec{.name = p.name,
                              .elements = p.elements,
                              .frozen = (p.flags & WEFT_PARAM_FROZEN) != 0,
                              .noDecay = (p.flags & WEFT_PARAM_NO_DECAY) != 0,
                              .copy = (p.flags & WEFT_PARAM_COPY) != 0,
                              .split = (p.flags & WEFT_PARAM_SPLIT) != 0,
                              .tiedTo = p.tiedTo,
                              .shape = {}};
    if (p.shape != nullptr) spec.shape.assign(p.shape, p.shape + p.dimensions);
    out->push_back(std::move(spec));
  }
  return {};
}

Status readDegree(const char* name, int degree, std::uint32_t ranks, std::uint32_t* out) {
  if (degree < 0) return invalid(name, " is ", degree, "; fix: 0 (all ranks) or more");
  *out = degree == 0 ? ranks : static_cast<std::uint32_t>(degree);
  return {};
}

// A caller's optimizer, behind the library's interface.
std::function<Status(const shard::StateRun&, const shard::StepSettings&)> customStep(
    weftStepFn step, void* user) {
  return [=](const shard::StateRun& run, const shard::StepSettings& settings) -> Status {
    const weftRun_t given{.param = run.parameter,
                          .offset = run.from,
                          .elements = run.slice.n,
                          .weights = static_cast<float*>(run.slice.weights),
                          .gradients = run.gradients,
                          .state = {run.state[0], run.state[1]},
                          .gradientScale = settings.gradientScale,
                          .learningRate = settings.learningRate,
                          .weightDecay = run.weightDecay,
                          .step = settings.step};
    const int failed = step(&given, user);
    if (failed == 0) return {};
    return Status::error(Code::SystemError, "the custom optimizer returned ", failed);
  };
}

Status readOptimizer(const weftShardConfig_t& given, shard::OptimizerSettings* out) {
  if (given.optimizer < weftOptAdamW || given.optimizer > weftOptLans)
    return invalid("optimizer is ", given.optimizer);
  *out = {.kind = static_cast<shard::Optimizer>(given.optimizer),
          .beta1 = given.beta1,
          .beta2 = given.beta2,
          .epsilon = given.epsilon,
          .momentum = given.momentum,
          .nesterov = given.nesterov != 0,
          .lambOnAll = given.lambOnAll != 0,
          .custom = {}};
  if (out->kind != shard::Optimizer::Custom) return {};
  WEFT_TRY(checkPointer(reinterpret_cast<const void*>(given.custom), "custom"));
  if (given.master == 0 && given.paramType != weftFloat32)
    return invalid("a custom optimizer steps fp32 weights; fix: master = 1");
  out->custom = customStep(given.custom, given.user);
  return {};
}

Status readShardConfig(const weftShardConfig_t* config, std::uint32_t ranks,
                       shard::ShardConfig* out) {
  weftShardConfig_t given = WEFT_SHARD_CONFIG_INITIALIZER;
  if (config != nullptr) WEFT_TRY(readStruct(*config, WEFT_SHARD_MAGIC, "SHARD_CONFIG", &given));
  WEFT_TRY(readDegree("paramDegree", given.paramDegree, ranks, &out->degrees.param));
  WEFT_TRY(readDegree("gradDegree", given.gradDegree, ranks, &out->degrees.grad));
  WEFT_TRY(readDegree("stateDegree", given.stateDegree, ranks, &out->degrees.state));
  for (const weftDataType_t type : {given.paramType, given.gradType, given.wireType})
    WEFT_TRY(checkType(type));
  out->paramType = static_cast<reduce::DType>(given.paramType);
  out->gradType = static_cast<reduce::DType>(given.gradType);
  out->wireType = static_cast<reduce::DType>(given.wireType);
  WEFT_TRY(readOptimizer(given, &out->optimizer));
  if (given.rounding != weftRoundNearest && given.rounding != weftRoundStochastic)
    return invalid("rounding is ", given.rounding);
  out->rounding = static_cast<reduce::RoundingMode>(given.rounding);
  out->master = given.master != 0;
  out->seed = given.seed;
  if (given.bucketElements != 0) out->bucketElements = given.bucketElements;
  out->reproducible = given.reproducible != 0;
  out->eager = given.eager != 0;
  return {};
}

// Those of a configuration; null: the ranks have all of the model.
Status findParts(const weftShardConfig_t* config, std::span<const shard::ParameterSpec> specs,
                 std::shared_ptr<comm::Communicator>* parts) {
  weftShardConfig_t given = WEFT_SHARD_CONFIG_INITIALIZER;
  if (config != nullptr) WEFT_TRY(readStruct(*config, WEFT_SHARD_MAGIC, "SHARD_CONFIG", &given));
  if (given.parts != nullptr) return shareComm(given.parts, parts);
  for (const shard::ParameterSpec& p : specs)
    if (p.copy || p.split)
      return invalid("parameter '", p.name, "' is WEFT_PARAM_", p.copy ? "COPY" : "SPLIT",
                     ", of a model that is not in parts; fix: config.parts");
  return {};
}

Status publishShard(std::unique_ptr<shard::ShardedOptimizer> made, weftShard_t* shard) {
  auto whole = std::make_shared<Shard>();
  whole->optimizer = std::move(made);
  whole->writer = std::make_unique<shard::CheckpointWriter>(*whole->optimizer);
  return publish(shardHandles(), std::move(whole), "shards", shard);
}

Status createShard(weftShard_t* shard, weftComm_t handle, const weftParam_t* params,
                   std::size_t nparams, const weftShardConfig_t* config) {
  WEFT_TRY(checkPointer(shard, "shard"));
  *shard = nullptr;
  std::shared_ptr<comm::Communicator> comm;
  WEFT_TRY(shareComm(handle, &comm));
  if (inGroup())
    return Status::error(Code::InvalidUsage,
                         "weftShardCreate inside of a group; fix: call it after weftGroupEnd");
  return failingAll(*comm, [&]() -> Status {
    std::vector<shard::ParameterSpec> specs;
    shard::ShardConfig wanted;
    WEFT_TRY(readParams(params, nparams, &specs));
    WEFT_TRY(readShardConfig(config, comm->ranks(), &wanted));
    std::shared_ptr<comm::Communicator> parts;
    WEFT_TRY(findParts(config, specs, &parts));
    std::unique_ptr<shard::ShardedOptimizer> made;
    const auto create = [&] {
      return shard::ShardedOptimizer::create(*comm, wanted, std::move(specs), &made, parts.get());
    };
    WEFT_TRY(runInTurn(*comm, [&] { return parts ? runInTurn(*parts, create) : create(); }));
    return publishShard(std::move(made), shard);
  });
}

Status checkSize(std::size_t size, std::size_t known, const char* what) {
  return size >= sizeof(std::size_t) && size <= known
             ? Status()
             : invalid(what, "->size is ", size, "; fix: sizeof(*", what, ")");
}

// As much as the caller's version of an appendable struct has.
template <class Struct>
Status fillStruct(Struct* to, const Struct& full) {
  std::memcpy(to, &full, to->size);
  return {};
}

Status shardInfo(shard::ShardedOptimizer& shard, weftShardInfo_t* info) {
  WEFT_TRY(checkPointer(info, "info"));
  WEFT_TRY(checkSize(info->size, sizeof(*info), "info"));
  const shard::Layout& layout = shard.layout();
  return fillStruct(info, {.size = info->size,
                           .buckets = static_cast<int>(layout.buckets().size()),
                           .elements = layout.trainedElements(),
                           .paddedElements = layout.bucketedElements(),
                           .ownElements = layout.bucketedElements() / shard.mesh().degrees().state,
                           .bytes = shard.state().bytes(),
                           .wireBytes = shard.mesh().movedBytes(),
                           .steps = shard.steps(),
                           .fingerprint = layout.fingerprint()});
}

Status beginStep(shard::ShardedOptimizer& shard, const weftStepArgs_t* args) {
  weftStepArgs_t given = WEFT_STEP_ARGS_INITIALIZER;
  if (args != nullptr) WEFT_TRY(readStruct(*args, WEFT_SHARD_MAGIC, "STEP_ARGS", &given));
  if (given.microSteps < 0) return invalid("microSteps is ", given.microSteps, "; fix: 0 or more");
  return shard.begin({.boundary = given.boundary != 0,
                      .learningRate = given.learningRate,
                      .weightDecay = given.weightDecay,
                      .clipNorm = given.clipNorm,
                      .lossScale = given.lossScale,
                      .divisor = given.divisor,
                      .skipNonFinite = given.skipNonFinite != 0,
                      .microSteps = static_cast<std::uint32_t>(given.microSteps)});
}

Status stepWait(shard::ShardedOptimizer& shard, weftStepStats_t* stats) {
  if (stats != nullptr) WEFT_TRY(checkSize(stats->size, sizeof(*stats), "stats"));
  shard::StepOutcome outcome;
  Status status = shard.wait(&outcome);
  if (stats != nullptr)
    (void)fillStruct(stats, {.size = stats->size,
                             .gradientNorm = outcome.gradientNorm,
                             .clip = outcome.clip,
                             .nonFinite = outcome.nonFinite,
                             .skipped = outcome.skipped ? 1 : 0,
                             .badParam = outcome.badParameter,
                             .badRank = outcome.badRank,
                             .exposedSeconds = outcome.exposedSeconds,
                             .badPart = outcome.badPart});
  return status;
}

Status destroyShard(weftShard_t handle) {
  if (handle == nullptr) return {};
  ShardHandles::Pin shard;
  WEFT_TRY(findShard(handle, &shard));
  (void)shardHandles().remove(handle);  // unless another thread just did
  return {};
}

Status load(Shard& shard, const char* dir, char* meta, std::size_t length, shard::Loaded what) {
  WEFT_TRY(checkPointer(dir, "dir"));
  if (length != 0) WEFT_TRY(checkPointer(meta, "meta"));
  WEFT_TRY(shard.writer->wait());
  std::string stored;
  WEFT_TRY(shard::loadCheckpoint(*shard.optimizer, dir, &stored, what));
  if (length == 0) return {};
  const std::size_t n = std::min(stored.size(), length - 1);
  std::memcpy(meta, stored.data(), n);
  meta[n] = 0;
  return {};
}

Status reshardBetween(weftShard_t from, weftShard_t to) {
  ShardHandles::Pin before, after;
  if (from != nullptr) WEFT_TRY(findShard(from, &before));
  if (to != nullptr) WEFT_TRY(findShard(to, &after));
  return shard::reshard(before ? before->optimizer.get() : nullptr,
                        after ? after->optimizer.get() : nullptr);
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;
using weft::Status;
using weft::shard::ShardedOptimizer;

weftResult_t weftShardCreate(weftShard_t* shard, weftComm_t comm, const weftParam_t* params,
                             size_t nparams, const weftShardConfig_t* config) {
  return entry([&] { return createShard(shard, comm, params, nparams, config); });
}
weftResult_t weftShardDestroy(weftShard_t shard) {
  return entry([&] { return destroyShard(shard); });
}
weftResult_t weftShardAbort(weftShard_t shard) {
  return onShard(shard, [](Shard& s) -> Status {
    s.optimizer->abort();
    return {};
  });
}
weftResult_t weftShardBuffers(weftShard_t shard, size_t param, void** weights, void** gradient) {
  return onParam(shard, param, [&](ShardedOptimizer& s, std::uint32_t p) -> Status {
    if (weights != nullptr) *weights = s.state().parameter(p);
    if (gradient != nullptr) *gradient = s.state().gradient(p);
    return {};
  });
}
weftResult_t weftShardBucket(weftShard_t shard, size_t param, int* bucket) {
  return onParam(shard, param, [&](ShardedOptimizer& s, std::uint32_t p) {
    // kNoBucket, that of frozen parameters, becomes -1.
    return give(bucket, "bucket", static_cast<int>(s.layout().slot(p).bucket));
  });
}
weftResult_t weftShardInfo(weftShard_t shard, weftShardInfo_t* info) {
  return onShard(shard, [&](Shard& s) { return shardInfo(*s.optimizer, info); });
}
weftResult_t weftShardStart(weftShard_t shard, int root) {
  return onShard(shard, [&](Shard& s) { return s.optimizer->start(root); });
}
weftResult_t weftShardSetWeights(weftShard_t shard, size_t param, const float* weights) {
  return onParam(shard, param, [&](ShardedOptimizer& s, std::uint32_t p) -> Status {
    WEFT_TRY(checkPointer(weights, "weights"));
    return s.setWeights(p, weights);
  });
}
weftResult_t weftStepBegin(weftShard_t shard, const weftStepArgs_t* args) {
  return onShard(shard, [&](Shard& s) { return beginStep(*s.optimizer, args); });
}
weftResult_t weftGradReady(weftShard_t shard, size_t param) {
  return onParam(shard, param, [](ShardedOptimizer& s, std::uint32_t p) { return s.ready(p); });
}
weftResult_t weftGradDone(weftShard_t shard) {
  return onShard(shard, [](Shard& s) { return s.optimizer->done(); });
}
weftResult_t weftParamWait(weftShard_t shard, int bucket) {
  return onBucket(shard, bucket, &ShardedOptimizer::acquire);
}
weftResult_t weftParamPrefetch(weftShard_t shard, int bucket) {
  return onBucket(shard, bucket, &ShardedOptimizer::prefetch);
}
weftResult_t weftParamRelease(weftShard_t shard, int bucket) {
  return onBucket(shard, bucket, &ShardedOptimizer::release);
}
weftResult_t weftStepWait(weftShard_t shard, weftStepStats_t* stats) {
  return onShard(shard, [&](Shard& s) { return stepWait(*s.optimizer, stats); });
}
weftResult_t weftShardSave(weftShard_t shard, const char* dir, const char* meta, int async) {
  return onShard(shard, [&](Shard& s) -> Status {
    WEFT_TRY(checkPointer(dir, "dir"));
    WEFT_TRY(s.writer->save(dir, meta == nullptr ? "" : meta));
    return async != 0 ? Status() : s.writer->wait();
  });
}
weftResult_t weftShardSaveWait(weftShard_t shard) {
  return onShard(shard, [](Shard& s) { return s.writer->wait(); });
}
weftResult_t weftShardLoad(weftShard_t shard, const char* dir, char* meta, size_t length) {
  return onShard(shard,
                 [&](Shard& s) { return load(s, dir, meta, length, weft::shard::Loaded::All); });
}
weftResult_t weftShardLoadWeights(weftShard_t shard, const char* dir, char* meta, size_t length) {
  return onShard(
      shard, [&](Shard& s) { return load(s, dir, meta, length, weft::shard::Loaded::Weights); });
}
weftResult_t weftShardExport(weftShard_t shard, const char* file, int fullPrecision) {
  return onShard(shard, [&](Shard& s) -> Status {
    WEFT_TRY(checkPointer(file, "file"));
    return weft::shard::exportModel(*s.optimizer, file, fullPrecision != 0);
  });
}
weftResult_t weftShardReshard(weftShard_t from, weftShard_t to) {
  return entry([&] { return reshardBetween(from, to); });
}
