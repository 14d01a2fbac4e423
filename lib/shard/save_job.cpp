// SPDX-License-Identifier: Apache-2.0
#include "shard/save_job.h"

#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "base/threads.h"
#include "shard/agree.h"
#include "shard/checkpoint_folder.h"
#include "shard/checkpoint_source.h"

namespace weft {
namespace {

std::string fileName(std::uint32_t writer, std::uint32_t writers) {
  char name[64];
  std::snprintf(name, sizeof(name), "shard-%05u-of-%05u.safetensors", writer, writers);
  return name;
}

// What ranks tell each other of a file.
struct Written {
  std::uint64_t bytes = 0;
  char sha256[64] = {};
};

}  // namespace

Status SaveJob::make(ShardedOptimizer& shard, const std::string& dir, const std::string& meta,
                     SaveJob* out) {
  WEFT_TRY(shard.atRest("saving a checkpoint"));
  if (dir.empty()) return Status::error(Code::InvalidArgument, "checkpoints need a folder");
  WEFT_TRY(checkMeta(meta));
  SaveJob job;
  job.dir_ = dir;
  job.timeoutMs_ = diskTimeoutMs(shard.timeoutMs(), shard.state().checkpointBytes());
  job.rank_ = shard.mesh().rank();
  job.writers_ = shard.mesh().degrees().state;
  job.index_ = indexOf(shard.layout(), shard.state().arrayNames());
  job.index_.steps = shard.state().steps;
  job.index_.meta = meta;
  job.collect(shard);
  *out = std::move(job);
  return {};
}

// Ranks of the first replica have all of it.
void SaveJob::collect(ShardedOptimizer& shard) {
  ShardState& state = shard.state();
  const Layout& layout = state.layout();
  if (rank_ >= writers_) return;
  for (std::uint32_t b = 0; b < state.buckets(); ++b) {
    const ShardState::Range own = state.part(b, Level::State);
    state.visitRuns(b, own.offset, own.elements, nullptr, nullptr, [&](const StateRun& run) {
      for (std::size_t a = 0; a < index_.arrays.size(); ++a)
        add(layout, run.parameter, index_.arrays[a], run.from, run.slice.n,
            a == 0 ? run.slice.weightType : DType::F32,
            a == 0 ? run.slice.weights : run.state[a - 1]);
    });
  }
  for (std::uint32_t p = 0; p < layout.parameters().size() && rank_ == 0; ++p) {
    const ParameterSpec& spec = layout.parameters()[p];
    if (spec.frozen && spec.tiedTo < 0)
      add(layout, p, index_.arrays[0], 0, spec.elements, state.config().paramType,
          state.parameter(p));
  }
}

void SaveJob::add(const Layout& layout, std::uint32_t parameter, const std::string& array,
                  std::uint64_t from, std::uint64_t elements, DType type, const void* data) {
  Tensor tensor;
  tensor.name = nameOf({layout.parameters()[parameter].name, array, from, elements});
  tensor.type = type;
  tensor.shape = {elements};
  tensors_.push_back(std::move(tensor));
  data_.push_back(data);
}

Status SaveJob::copy() {
  std::size_t bytes = 0;
  for (const Tensor& t : tensors_) bytes += t.bytes();
  WEFT_TRY(
      ShardMemory::make(ShardMemory::Kind::Private, bytes, "the copy of a checkpoint", &copy_));
  std::byte* at = copy_.data();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    std::memcpy(at, data_[i], tensors_[i].bytes());
    data_[i] = at;
    at += tensors_[i].bytes();
  }
  return {};
}

Status SaveJob::writeShard(const std::string& folder, CheckpointIndex::File* file) const {
  std::string header;
  WEFT_TRY(safetensorsHeader(tensors_, {{"format", "weft"}}, &header));
  OutputFile out;
  WEFT_TRY(OutputFile::create(text(folder, "/", fileName(rank_, writers_)), &out));
  WEFT_TRY(out.append(header.data(), header.size()));
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    WEFT_TRY(out.append(data_[i], tensors_[i].bytes()));
  WEFT_TRY(out.finish());
  file->bytes = out.bytes();
  file->sha256 = out.sha256();
  return {};
}

Status SaveJob::shareFiles(Communicator* ranks, const CheckpointIndex::File& mine) {
  Written own{mine.bytes, {}};
  mine.sha256.copy(own.sha256, sizeof(own.sha256));
  std::vector<Written> all(ranks == nullptr ? 1 : ranks->ranks());
  WEFT_TRY(shareAll(ranks, &own, sizeof(own), all.data(), timeoutMs_));
  for (std::uint32_t w = 0; w < writers_; ++w)
    index_.files.push_back(
        {fileName(w, writers_), all[w].bytes, std::string(all[w].sha256, sizeof(all[w].sha256))});
  return {};
}

Status SaveJob::run(Communicator* ranks) {
  const CheckpointFolder folder(dir_);
  CheckpointIndex::File mine;
  const auto together = [&](bool takesPart, auto&& body) {
    return agreeOn(ranks, takesPart ? withoutExceptions(body) : Status(), timeoutMs_);
  };
  const bool first = rank_ == 0;
  WEFT_TRY(together(first, [&] { return folder.prepare(index_.steps); }));
  Status status =
      together(rank_ < writers_, [&] { return writeShard(folder.aside(index_.steps), &mine); });
  if (status.ok()) status = shareFiles(ranks, mine);
  if (status.ok()) status = together(first, [&] { return folder.commit(index_); });
  if (!status.ok() && first) folder.drop(index_.steps);
  return status;
}

}  // namespace weft
