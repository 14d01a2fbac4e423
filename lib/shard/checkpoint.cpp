// SPDX-License-Identifier: Apache-2.0
#include "shard/checkpoint.h"

#include <cstring>
#include <utility>

#include "base/invalid.h"
#include "base/mark.h"
#include "base/text.h"
#include "base/threads.h"
#include "checkpoint/folder.h"
#include "checkpoint/save_job.h"
#include "checkpoint/source.h"
#include "comm/agree.h"
#include "comm/create.h"

namespace weft::shard {
namespace {

Status agree(ShardedOptimizer& shard, const Status& mine, int timeoutMs) {
  return comm::agreeOn(shard.mesh().world(), mine, timeoutMs, "checkpoint");
}

// The index of the model and its optimizer, without files.
checkpoint::CheckpointIndex indexOf(ShardedOptimizer& shard) {
  checkpoint::CheckpointIndex index;
  index.arrays = shard.state().arrayNames();
  index.steps = shard.state().steps;
  for (const ParameterSpec& p : shard.layout().parameters())
    if (!p.isTied()) index.parameters.push_back({p.name, p.elements, p.frozen});
  return index;
}

// The path of the checkpoint to load, from rank 0: `latest` may change meanwhile.
Status findCheckpoint(ShardedOptimizer& shard, const std::string& dir, std::string* path) {
  char chosen[4096] = {};
  Status status = shard.atRest("loading a checkpoint");
  if (status.ok() && shard.mesh().rank() == 0)
    status = checkpoint::CheckpointFolder(dir).latest(path);
  if (status.ok() && path->size() >= sizeof(chosen))
    status = invalid("the path of the checkpoint is too long");
  WEFT_TRY(agree(shard, status, shard.timeoutMs()));
  path->copy(chosen, sizeof(chosen) - 1);
  WEFT_TRY(comm::shareFrom(shard.mesh().world(), 0, chosen, sizeof(chosen), shard.timeoutMs(),
                           "checkpoint"));
  *path = chosen;
  return {};
}

// A run of one parameter in one of its arrays.
struct ArrayRun {
  const std::string& parameter;
  std::size_t array;
  std::uint64_t from, elements;
  StateRun::Array memory;
};

// Calls body(ArrayRun) for what this rank owns and, with `frozen`, what every rank has.
template <class Body>
void visitArrays(const ShardState& state, std::size_t arrays, bool frozen, Body&& body) {
  const auto nameOf = [&](std::uint32_t p) -> auto& { return state.layout().parameters()[p].name; };
  for (std::uint32_t b = 0; b < state.buckets(); ++b)
    state.visitOwn(b, [&](const StateRun& run) {
      for (std::size_t a = 0; a < arrays; ++a)
        body(ArrayRun{nameOf(run.parameter), a, run.from, run.slice.n, run.array(a)});
    });
  if (!frozen) return;
  for (const std::uint32_t p : state.layout().frozen())
    body(ArrayRun{nameOf(p),
                  0,
                  0,
                  state.layout().slot(p).elements,
                  {state.config().paramType, state.parameter(p)}});
}

// Weights, and of the state what `what` says: else it is as at the beginning.
Status readState(const checkpoint::CheckpointSource& source, Loaded what, ShardState& state) {
  Status status;
  visitArrays(state, state.arrayNames().size(), true, [&](const ArrayRun& r) {
    if (!status.ok()) return;
    if (r.array == 0 || what == Loaded::All)
      status = source.read(r.parameter, r.array, r.from, r.elements, r.memory.type, r.memory.data);
    else
      std::memset(r.memory.data, 0, r.elements * reduce::sizeOf(r.memory.type));
  });
  if (status.ok()) state.steps = what == Loaded::All ? source.index().steps : 0;
  return status;
}

Status load(ShardedOptimizer& shard, const std::string& dir, std::string* meta, Loaded what) {
  checkpoint::CheckpointSource source;
  std::string path;
  WEFT_TRY(findCheckpoint(shard, dir, &path));
  const int patience =
      checkpoint::diskTimeoutMs(shard.timeoutMs(), shard.state().checkpointBytes());
  Status status = withoutExceptions([&]() -> Status {
    checkpoint::CheckpointIndex wanted = indexOf(shard);
    if (what == Loaded::Weights) wanted.arrays.clear();
    WEFT_TRY(checkpoint::CheckpointSource::open(path, wanted, &source));
    return source.verify(shard.mesh().rank(), shard.mesh().ranks());
  });
  WEFT_TRY(agree(shard, status, patience));
  // From here on the state is that of the checkpoint, or of nothing.
  status = withoutExceptions([&] { return readState(source, what, shard.state()); });
  status = agree(shard, status, patience);
  if (status.ok()) status = shard.publish();
  if (!status.ok()) shard.fail(status);
  if (status.ok() && meta != nullptr) *meta = source.index().meta;
  return status;
}

// What this rank is to write. Ranks of the first replica have all of it.
void collect(const ShardState& state, checkpoint::SaveJob* job) {
  const std::vector<std::string>& arrays = job->index.arrays;
  if (job->rank >= job->writers) return;
  visitArrays(state, arrays.size(), job->rank == 0, [&](const ArrayRun& r) {
    job->runs.push_back(
        {r.parameter, arrays[r.array], r.from, r.elements, r.memory.type, r.memory.data});
  });
}

Status makeJob(ShardedOptimizer& shard, const std::string& dir, const std::string& meta,
               checkpoint::SaveJob* job) {
  WEFT_TRY(shard.atRest("saving a checkpoint"));
  if (dir.empty()) return invalid("checkpoints need a folder");
  WEFT_TRY(checkpoint::checkMeta(meta));
  job->dir = dir;
  job->timeoutMs = checkpoint::diskTimeoutMs(shard.timeoutMs(), shard.state().checkpointBytes());
  job->rank = shard.mesh().rank();
  job->writers = shard.mesh().degrees().state;
  job->index = indexOf(shard);
  job->index.meta = meta;
  collect(shard.state(), job);
  return {};
}

// A copy, so that training may go on.
struct CopiedJob {
  checkpoint::SaveJob job;
  ShardMemory data;

  Status copy() {
    std::size_t bytes = 0;
    for (const checkpoint::SavedRun& run : job.runs) bytes += run.bytes();
    WEFT_TRY(
        ShardMemory::make(ShardMemory::Kind::Private, bytes, "the copy of a checkpoint", &data));
    std::byte* at = data.data();
    for (checkpoint::SavedRun& run : job.runs) {
      run.data = std::memcpy(at, run.data, run.bytes());
      at += run.bytes();
    }
    return {};
  }
};

}  // namespace

Status loadCheckpoint(ShardedOptimizer& shard, const std::string& dir, std::string* meta,
                      Loaded what) {
  return withoutExceptions([&] { return load(shard, dir, meta, what); });
}

CheckpointWriter::~CheckpointWriter() { (void)wait(); }

Status CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  return std::exchange(result_, Status());
}

Status CheckpointWriter::connect() {
  comm::Communicator* const world = shard_.mesh().world();
  if (world == nullptr || ranks_ != nullptr) return {};
  comm::CommConfig config = world->config();
  config.name = text(shard_.name(), ".checkpoint");
  const Status made =
      comm::splitCommunicator(*world, 0, static_cast<int>(world->rank()), config, &ranks_);
  const Status agreed = agree(shard_, made, shard_.timeoutMs());
  if (!agreed.ok()) ranks_.reset();  // where it was made, as well: all ranks try again next time
  return agreed;
}

Status CheckpointWriter::save(const std::string& dir, const std::string& meta) {
  WEFT_TRY(wait());
  return withoutExceptions([&]() -> Status {
    auto copied = std::make_shared<CopiedJob>();
    const Status made = withoutExceptions([&]() -> Status {
      WEFT_TRY(makeJob(shard_, dir, meta, &copied->job));
      return copied->copy();
    });
    WEFT_TRY(agree(shard_, made, shard_.timeoutMs()));
    WEFT_TRY(connect());
    const auto write = [this, copied] {
      result_ = withoutExceptions([&] { return copied->job.run(ranks_.get()); });
    };
    const SignalsBlocked blocked;
    const auto start = [&] { return thread_ = std::thread(write), Status(); };
    // Without a thread it is written at once: the other ranks wait for this one's part.
    if (!withoutExceptions(start).ok() && WEFT_MARK("a checkpoint is written at once")) write();
    return {};
  });
}

}  // namespace weft::shard
