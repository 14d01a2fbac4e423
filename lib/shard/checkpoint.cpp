// SPDX-License-Identifier: Apache-2.0
#include "shard/checkpoint.h"

#include "base/text.h"
#include "base/threads.h"
#include "comm/create.h"
#include "shard/agree.h"
#include "shard/checkpoint_folder.h"
#include "shard/checkpoint_source.h"
#include "shard/save_job.h"

namespace weft {
namespace {

// The path of the checkpoint to load, from rank 0: `latest` may change meanwhile.
Status findCheckpoint(ShardedOptimizer& shard, const std::string& dir, std::string* path) {
  char chosen[4096] = {};
  Status status = shard.atRest("loading a checkpoint");
  if (status.ok() && shard.mesh().rank() == 0) status = CheckpointFolder(dir).latest(path);
  if (status.ok() && path->size() >= sizeof(chosen))
    status = Status::error(Code::InvalidArgument, "the path of the checkpoint is too long");
  Communicator* const world = shard.mesh().world();
  WEFT_TRY(agreeOn(world, status, shard.timeoutMs()));
  path->copy(chosen, sizeof(chosen) - 1);
  WEFT_TRY(shareFrom(world, 0, chosen, sizeof(chosen), shard.timeoutMs()));
  *path = chosen;
  return {};
}

Status readBucket(const CheckpointSource& source, ShardState& state, std::uint32_t bucket) {
  Status status;
  const ShardState::Range own = state.part(bucket, Level::State);
  state.visitRuns(bucket, own.offset, own.elements, nullptr, nullptr, [&](const StateRun& run) {
    const auto read = [&](std::size_t array, DType type, void* to) {
      if (status.ok()) status = source.read(run.parameter, array, run.from, run.slice.n, type, to);
    };
    read(0, run.slice.weightType, run.slice.weights);
    for (std::size_t a = 1; a < source.index().arrays.size(); ++a)
      read(a, DType::F32, run.state[a - 1]);
  });
  return status;
}

// What this rank owns, and what every rank has.
Status readState(const CheckpointSource& source, ShardState& state) {
  for (std::uint32_t b = 0; b < state.buckets(); ++b) WEFT_TRY(readBucket(source, state, b));
  const auto& parameters = state.layout().parameters();
  for (std::uint32_t p = 0; p < parameters.size(); ++p)
    if (parameters[p].frozen && parameters[p].tiedTo < 0)
      WEFT_TRY(source.read(p, 0, 0, parameters[p].elements, state.config().paramType,
                           state.parameter(p)));
  state.steps = source.index().steps;
  return {};
}

Status load(ShardedOptimizer& shard, const std::string& dir, std::string* meta) {
  Communicator* const world = shard.mesh().world();
  CheckpointSource source;
  std::string path;
  WEFT_TRY(findCheckpoint(shard, dir, &path));
  ShardState& state = shard.state();
  const int patience = diskTimeoutMs(shard.timeoutMs(), state.checkpointBytes());
  Status status = withoutExceptions([&]() -> Status {
    WEFT_TRY(CheckpointSource::open(path, state.layout(), state.arrayNames(), &source));
    return source.verify(shard.mesh().rank(), shard.mesh().ranks());
  });
  WEFT_TRY(agreeOn(world, status, patience));
  // From here on the state is that of the checkpoint, or of nothing.
  status = withoutExceptions([&] { return readState(source, state); });
  status = agreeOn(world, status, patience);
  if (status.ok()) status = shard.publish();
  if (!status.ok()) shard.fail(status);
  if (status.ok() && meta != nullptr) *meta = source.index().meta;
  return status;
}

}  // namespace

Status saveCheckpoint(ShardedOptimizer& shard, const std::string& dir, const std::string& meta) {
  return withoutExceptions([&]() -> Status {
    SaveJob job;
    Communicator* const world = shard.mesh().world();
    const Status made = withoutExceptions([&] { return SaveJob::make(shard, dir, meta, &job); });
    WEFT_TRY(agreeOn(world, made, shard.timeoutMs()));
    return job.run(world);
  });
}

Status loadCheckpoint(ShardedOptimizer& shard, const std::string& dir, std::string* meta) {
  return withoutExceptions([&] { return load(shard, dir, meta); });
}

CheckpointWriter::~CheckpointWriter() { (void)wait(); }

Status CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  return std::exchange(result_, Status());
}

Status CheckpointWriter::connect() {
  Communicator* const world = shard_.mesh().world();
  if (world == nullptr || ranks_ != nullptr) return {};
  CommConfig config = world->config();
  config.name = text(shard_.name(), ".checkpoint");
  return splitCommunicator(*world, 0, static_cast<int>(world->rank()), config, &ranks_);
}

Status CheckpointWriter::save(const std::string& dir, const std::string& meta) {
  WEFT_TRY(wait());
  return withoutExceptions([&]() -> Status {
    auto job = std::make_shared<SaveJob>();
    const Status made = withoutExceptions([&]() -> Status {
      WEFT_TRY(SaveJob::make(shard_, dir, meta, job.get()));
      return job->copy();
    });
    WEFT_TRY(agreeOn(shard_.mesh().world(), made, shard_.timeoutMs()));
    WEFT_TRY(connect());
    const SignalsBlocked blocked;
    thread_ = std::thread(
        [this, job] { result_ = withoutExceptions([&] { return job->run(ranks_.get()); }); });
    return {};
  });
}

}  // namespace weft
