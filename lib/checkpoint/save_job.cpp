// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save_job.h"

#include <cstdio>

#include "base/text.h"
#include "base/threads.h"
#include "checkpoint/folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/saved_offsets.h"
#include "checkpoint/source.h"
#include "comm/agree.h"

namespace weft::checkpoint {
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

// What comes before the data of the runs.
Status SaveJob::makeHeader(std::string* header) const {
  std::vector<Tensor> tensors;
  SavedOffsets offsets;
  for (const SavedRun& run : runs) {
    tensors.push_back({tensorName(run.parameter, run.array), run.type, {run.elements}});
    offsets[tensors.back().name] = run.from;
  }
  TensorMetadata metadata;
  WEFT_TRY(printOffsets(offsets, &metadata));
  return safetensorsHeader(tensors, metadata, header);
}

Status SaveJob::writeShard(const std::string& folder, CheckpointIndex::File* file) const {
  std::string header;
  WEFT_TRY(makeHeader(&header));
  OutputFile out;
  WEFT_TRY(OutputFile::create(text(folder, "/", fileName(rank, writers)), &out));
  WEFT_TRY(out.append(header.data(), header.size()));
  for (const SavedRun& run : runs) WEFT_TRY(out.append(run.data, run.bytes()));
  WEFT_TRY(out.finish());
  file->bytes = out.bytes();
  file->sha256 = out.sha256();
  return {};
}

Status SaveJob::shareFiles(comm::Communicator* ranks, const CheckpointIndex::File& mine,
                           std::vector<CheckpointIndex::File>* all) const {
  Written own{mine.bytes, {}};
  mine.sha256.copy(own.sha256, sizeof(own.sha256));
  std::vector<Written> written;
  WEFT_TRY(comm::gatherRecords(ranks, own, &written, timeoutMs, "checkpoint"));
  for (std::uint32_t w = 0; w < writers; ++w)
    all->push_back({fileName(w, writers), written[w].bytes,
                    std::string(written[w].sha256, sizeof(written[w].sha256))});
  return {};
}

Status SaveJob::run(comm::Communicator* ranks) const {
  const CheckpointFolder folder(dir);
  CheckpointIndex complete = index;
  CheckpointIndex::File mine;
  const auto together = [&](bool takesPart, auto&& body) {
    return comm::agreeOn(ranks, takesPart ? withoutExceptions(body) : Status(), timeoutMs,
                         "checkpoint");
  };
  const bool first = rank == 0;
  WEFT_TRY(together(first, [&] { return folder.prepare(index.steps); }));
  Status status =
      together(rank < writers, [&] { return writeShard(folder.aside(index.steps), &mine); });
  if (status.ok()) status = shareFiles(ranks, mine, &complete.files);
  if (status.ok()) status = together(first, [&] { return folder.commit(complete); });
  if (!status.ok() && first) folder.drop(index.steps);
  return status;
}

}  // namespace weft::checkpoint
