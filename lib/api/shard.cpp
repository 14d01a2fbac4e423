// SPDX-License-Identifier: Apache-2.0
#include "weft/shard.h"

#include <memory>
#include <utility>

#include "api/check.h"
#include "api/structs.h"
#include "api/submit.h"
#include "shard/checkpoint.h"
#include "shard/export.h"
#include "shard/reshard.h"
#include "shard/sharded_optimizer.h"

namespace weft {
namespace {

// What a handle stands for. The writer ends first.
struct Shard {
  std::unique_ptr<ShardedOptimizer> optimizer;
  std::unique_ptr<CheckpointWriter> writer;
};

using ShardHandles = Handles<Shard, 0x5a>;

ShardHandles& shardHandles() {
  static ShardHandles& all = *new ShardHandles;
  return all;
}

Status findShard(weftShard_t handle, Shard** shard) {
  *shard = shardHandles().find(handle);
  if (*shard != nullptr) return {};
  if (shardHandles().isParents(handle))
    return Status::error(Code::InvalidUsage,
                         "shard was made before this process was forked; fix: make one here");
  return invalid("shard is null, destroyed or no shard");
}

Status findShard(weftShard_t handle, ShardedOptimizer** optimizer) {
  Shard* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  *optimizer = shard->optimizer.get();
  return {};
}

Status checkFlags(std::size_t i, const weftParam_t& p) {
  if (p.name == nullptr) return invalid(text("params[", i, "].name is NULL"));
  if ((p.flags & ~(WEFT_PARAM_FROZEN | WEFT_PARAM_NO_DECAY)) != 0)
    return invalid(text("params[", i, "] ('", p.name, "') has flags that do not exist"));
  if (p.shape != nullptr && (p.dimensions < 1 || p.dimensions > 64))
    return invalid(text("params[", i, "] ('", p.name, "').dimensions is ", p.dimensions));
  if (p.tiedTo < -1) return invalid(text("params[", i, "] ('", p.name, "').tiedTo is ", p.tiedTo));
  return {};
}

Status readParams(const weftParam_t* params, std::size_t n, std::vector<ParameterSpec>* out) {
  WEFT_TRY(checkPointer(params, "params"));
  if (n == 0 || n > (std::size_t{1} << 24)) return invalid(text("nparams is ", n));
  for (std::size_t i = 0; i < n; ++i) {
    const weftParam_t& p = params[i];
    WEFT_TRY(checkFlags(i, p));
    ParameterSpec spec{.name = p.name,
                       .elements = p.elements,
                       .frozen = (p.flags & WEFT_PARAM_FROZEN) != 0,
                       .noDecay = (p.flags & WEFT_PARAM_NO_DECAY) != 0,
                       .tiedTo = p.tiedTo,
                       .shape = {}};
    if (p.shape != nullptr) spec.shape.assign(p.shape, p.shape + p.dimensions);
    out->push_back(std::move(spec));
  }
  return {};
}

Status readDegree(const char* name, int degree, std::uint32_t ranks, std::uint32_t* out) {
  if (degree < 0) return invalid(text(name, " is ", degree, "; fix: 0 (all ranks) or more"));
  *out = degree == 0 ? ranks : static_cast<std::uint32_t>(degree);
  return {};
}

// A caller's optimizer, behind the library's interface.
std::function<Status(const StateRun&, const StepSettings&)> customStep(weftStepFn step,
                                                                       void* user) {
  return [=](const StateRun& run, const StepSettings& settings) -> Status {
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
    return Status::error(Code::SystemError, text("the custom optimizer returned ", failed));
  };
}

Status readOptimizer(const weftShardConfig_t& given, OptimizerSettings* out) {
  if (given.optimizer < weftOptAdamW || given.optimizer > weftOptCustom)
    return invalid(text("optimizer is ", given.optimizer));
  *out = {.kind = static_cast<Optimizer>(given.optimizer),
          .beta1 = given.beta1,
          .beta2 = given.beta2,
          .epsilon = given.epsilon,
          .momentum = given.momentum,
          .nesterov = given.nesterov != 0,
          .lambOnAll = given.lambOnAll != 0,
          .custom = {}};
  if (out->kind != Optimizer::Custom) return {};
  WEFT_TRY(checkPointer(reinterpret_cast<const void*>(given.custom), "custom"));
  if (given.master == 0 && given.paramType != weftFloat32)
    return invalid("a custom optimizer steps fp32 weights; fix: master = 1");
  out->custom = customStep(given.custom, given.user);
  return {};
}

Status readShardConfig(const weftShardConfig_t* config, std::uint32_t ranks, ShardConfig* out) {
  weftShardConfig_t given = WEFT_SHARD_CONFIG_INITIALIZER;
  if (config != nullptr) WEFT_TRY(readStruct(*config, WEFT_SHARD_MAGIC, "SHARD_CONFIG", &given));
  WEFT_TRY(readDegree("paramDegree", given.paramDegree, ranks, &out->degrees.param));
  WEFT_TRY(readDegree("gradDegree", given.gradDegree, ranks, &out->degrees.grad));
  WEFT_TRY(readDegree("stateDegree", given.stateDegree, ranks, &out->degrees.state));
  for (const weftDataType_t type : {given.paramType, given.gradType, given.wireType})
    WEFT_TRY(checkType(type));
  out->paramType = static_cast<DType>(given.paramType);
  out->gradType = static_cast<DType>(given.gradType);
  out->wireType = static_cast<DType>(given.wireType);
  WEFT_TRY(readOptimizer(given, &out->optimizer));
  if (given.rounding != weftRoundNearest && given.rounding != weftRoundStochastic)
    return invalid(text("rounding is ", given.rounding));
  out->rounding = static_cast<RoundingMode>(given.rounding);
  out->master = given.master != 0;
  out->seed = given.seed;
  if (given.bucketElements != 0) out->bucketElements = given.bucketElements;
  out->reproducible = given.reproducible != 0;
  out->eager = given.eager != 0;
  return {};
}

Status publishShard(std::unique_ptr<ShardedOptimizer> made, weftShard_t* shard) {
  auto whole = std::make_shared<Shard>();
  whole->optimizer = std::move(made);
  whole->writer = std::make_unique<CheckpointWriter>(*whole->optimizer);
  const std::uintptr_t handle = shardHandles().add(std::move(whole));
  if (handle == 0)
    return Status::error(Code::InvalidUsage, text("this process has ", ShardHandles::kCapacity,
                                                  " shards already; fix: destroy some"));
  *shard = reinterpret_cast<weftShard_t>(handle);
  return {};
}

Status createShard(weftShard_t* shard, weftComm_t handle, const weftParam_t* params,
                   std::size_t nparams, const weftShardConfig_t* config) {
  WEFT_TRY(checkPointer(shard, "shard"));
  *shard = nullptr;
  std::shared_ptr<Communicator> comm;
  WEFT_TRY(shareComm(handle, &comm));
  if (inGroup())
    return Status::error(Code::InvalidUsage,
                         "weftShardCreate inside of a group; fix: call it after weftGroupEnd");
  std::vector<ParameterSpec> specs;
  ShardConfig wanted;
  WEFT_TRY(readParams(params, nparams, &specs));
  WEFT_TRY(readShardConfig(config, comm->ranks(), &wanted));
  std::unique_ptr<ShardedOptimizer> made;
  WEFT_TRY(runInTurn(
      *comm, [&] { return ShardedOptimizer::create(*comm, wanted, std::move(specs), &made); }));
  return publishShard(std::move(made), shard);
}

Status checkParam(const ShardedOptimizer& shard, std::size_t param) {
  const std::size_t n = shard.layout().parameters().size();
  return param < n ? Status() : invalid(text("param is ", param, "; there are ", n));
}

Status buffers(weftShard_t handle, std::size_t param, void** weights, void** gradient) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  WEFT_TRY(checkParam(*shard, param));
  const auto p = static_cast<std::uint32_t>(param);
  if (weights != nullptr) *weights = shard->state().parameter(p);
  if (gradient != nullptr) *gradient = shard->state().gradient(p);
  return {};
}

Status bucketOf(weftShard_t handle, std::size_t param, int* bucket) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  WEFT_TRY(checkPointer(bucket, "bucket"));
  WEFT_TRY(checkParam(*shard, param));
  const std::uint32_t b = shard->layout().slot(static_cast<std::uint32_t>(param)).bucket;
  *bucket = b == Layout::kNoBucket ? -1 : static_cast<int>(b);
  return {};
}

Status checkSize(std::size_t size, std::size_t known, const char* what) {
  return size >= sizeof(std::size_t) && size <= known
             ? Status()
             : invalid(text(what, "->size is ", size, "; fix: sizeof(*", what, ")"));
}

Status shardInfo(weftShard_t handle, weftShardInfo_t* info) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  WEFT_TRY(checkPointer(info, "info"));
  WEFT_TRY(checkSize(info->size, sizeof(*info), "info"));
  const Layout& layout = shard->layout();
  const weftShardInfo_t full{
      .size = info->size,
      .buckets = static_cast<int>(layout.buckets().size()),
      .elements = layout.trainedElements(),
      .paddedElements = layout.bucketedElements(),
      .ownElements = layout.bucketedElements() / shard->mesh().degrees().state,
      .bytes = shard->state().bytes(),
      .wireBytes = shard->mesh().movedBytes(),
      .steps = shard->steps(),
      .fingerprint = layout.fingerprint()};
  std::memcpy(info, &full, info->size);
  return {};
}

Status startShard(weftShard_t handle, int root) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  return shard->start(root);
}

Status beginStep(weftShard_t handle, const weftStepArgs_t* args) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  weftStepArgs_t given = WEFT_STEP_ARGS_INITIALIZER;
  if (args != nullptr) WEFT_TRY(readStruct(*args, WEFT_SHARD_MAGIC, "STEP_ARGS", &given));
  return shard->begin({.boundary = given.boundary != 0,
                       .learningRate = given.learningRate,
                       .weightDecay = given.weightDecay,
                       .clipNorm = given.clipNorm,
                       .lossScale = given.lossScale,
                       .divisor = given.divisor,
                       .skipNonFinite = given.skipNonFinite != 0});
}

Status gradReady(weftShard_t handle, std::size_t param) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  WEFT_TRY(checkParam(*shard, param));
  return shard->ready(static_cast<std::uint32_t>(param));
}

Status gradDone(weftShard_t handle) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  return shard->done();
}

Status paramWait(weftShard_t handle, int bucket) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  return shard->acquire(static_cast<std::uint32_t>(bucket));
}

Status paramPrefetch(weftShard_t handle, int bucket) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  return shard->prefetch(static_cast<std::uint32_t>(bucket));
}

Status paramRelease(weftShard_t handle, int bucket) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  return shard->release(static_cast<std::uint32_t>(bucket));
}

Status stepWait(weftShard_t handle, weftStepStats_t* stats) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  if (stats != nullptr) WEFT_TRY(checkSize(stats->size, sizeof(*stats), "stats"));
  StepOutcome outcome;
  const Status status = shard->wait(&outcome);
  if (stats == nullptr) return status;
  const weftStepStats_t full{.size = stats->size,
                             .gradientNorm = outcome.gradientNorm,
                             .clip = outcome.clip,
                             .nonFinite = outcome.nonFinite,
                             .skipped = outcome.skipped ? 1 : 0,
                             .badParam = outcome.badParameter,
                             .badRank = outcome.badRank,
                             .exposedSeconds = outcome.exposedSeconds};
  std::memcpy(stats, &full, stats->size);
  return status;
}

Status destroyShard(weftShard_t handle) {
  if (handle == nullptr) return {};
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  (void)shardHandles().remove(handle);
  return {};
}

Status save(weftShard_t handle, const char* dir, const char* meta, bool async) {
  Shard* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  WEFT_TRY(checkPointer(dir, "dir"));
  WEFT_TRY(shard->writer->save(dir, meta == nullptr ? "" : meta));
  return async ? Status() : shard->writer->wait();
}

Status saveWait(weftShard_t handle) {
  Shard* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  return shard->writer->wait();
}

Status load(weftShard_t handle, const char* dir, char* meta, std::size_t length) {
  Shard* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  WEFT_TRY(checkPointer(dir, "dir"));
  if (length != 0) WEFT_TRY(checkPointer(meta, "meta"));
  WEFT_TRY(shard->writer->wait());
  std::string stored;
  WEFT_TRY(loadCheckpoint(*shard->optimizer, dir, &stored));
  if (length == 0) return {};
  const std::size_t n = std::min(stored.size(), length - 1);
  std::memcpy(meta, stored.data(), n);
  meta[n] = 0;
  return {};
}

Status exportShard(weftShard_t handle, const char* file, bool fullPrecision) {
  ShardedOptimizer* shard = nullptr;
  WEFT_TRY(findShard(handle, &shard));
  WEFT_TRY(checkPointer(file, "file"));
  return exportModel(*shard, file, fullPrecision);
}

Status reshardBetween(weftShard_t from, weftShard_t to) {
  ShardedOptimizer *before = nullptr, *after = nullptr;
  if (from != nullptr) WEFT_TRY(findShard(from, &before));
  if (to != nullptr) WEFT_TRY(findShard(to, &after));
  return reshard(before, after);
}

// Another thread may be destroying it.
Status abortShard(weftShard_t handle) {
  const std::shared_ptr<Shard> shard = shardHandles().share(handle);
  ShardedOptimizer* found = nullptr;
  if (shard == nullptr) return findShard(handle, &found);
  shard->optimizer->abort();
  return {};
}

}  // namespace
}  // namespace weft

using weft::entry;

weftResult_t weftShardCreate(weftShard_t* shard, weftComm_t comm, const weftParam_t* params,
                             size_t nparams, const weftShardConfig_t* config) {
  return entry([&] { return weft::createShard(shard, comm, params, nparams, config); });
}
weftResult_t weftShardDestroy(weftShard_t shard) {
  return entry([&] { return weft::destroyShard(shard); });
}
weftResult_t weftShardAbort(weftShard_t shard) {
  return entry([&] { return weft::abortShard(shard); });
}
weftResult_t weftShardBuffers(weftShard_t shard, size_t param, void** weights, void** gradient) {
  return entry([&] { return weft::buffers(shard, param, weights, gradient); });
}
weftResult_t weftShardBucket(weftShard_t shard, size_t param, int* bucket) {
  return entry([&] { return weft::bucketOf(shard, param, bucket); });
}
weftResult_t weftShardInfo(weftShard_t shard, weftShardInfo_t* info) {
  return entry([&] { return weft::shardInfo(shard, info); });
}
weftResult_t weftShardStart(weftShard_t shard, int root) {
  return entry([&] { return weft::startShard(shard, root); });
}
weftResult_t weftStepBegin(weftShard_t shard, const weftStepArgs_t* args) {
  return entry([&] { return weft::beginStep(shard, args); });
}
weftResult_t weftGradReady(weftShard_t shard, size_t param) {
  return entry([&] { return weft::gradReady(shard, param); });
}
weftResult_t weftGradDone(weftShard_t shard) {
  return entry([&] { return weft::gradDone(shard); });
}
weftResult_t weftParamWait(weftShard_t shard, int bucket) {
  return entry([&] { return weft::paramWait(shard, bucket); });
}
weftResult_t weftParamPrefetch(weftShard_t shard, int bucket) {
  return entry([&] { return weft::paramPrefetch(shard, bucket); });
}
weftResult_t weftParamRelease(weftShard_t shard, int bucket) {
  return entry([&] { return weft::paramRelease(shard, bucket); });
}
weftResult_t weftStepWait(weftShard_t shard, weftStepStats_t* stats) {
  return entry([&] { return weft::stepWait(shard, stats); });
}
weftResult_t weftShardSave(weftShard_t shard, const char* dir, const char* meta, int async) {
  return entry([&] { return weft::save(shard, dir, meta, async != 0); });
}
weftResult_t weftShardSaveWait(weftShard_t shard) {
  return entry([&] { return weft::saveWait(shard); });
}
weftResult_t weftShardLoad(weftShard_t shard, const char* dir, char* meta, size_t length) {
  return entry([&] { return weft::load(shard, dir, meta, length); });
}
weftResult_t weftShardExport(weftShard_t shard, const char* file, int fullPrecision) {
  return entry([&] { return weft::exportShard(shard, file, fullPrecision != 0); });
}
weftResult_t weftShardReshard(weftShard_t from, weftShard_t to) {
  return entry([&] { return weft::reshardBetween(from, to); });
}
