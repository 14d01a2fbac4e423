// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/job.h"

#include <ctime>

#include "base/environment.h"
#include "base/text.h"
#include "bootstrap/bytes.h"

namespace weft {
namespace {

// Several variables as one name; empty unless the first is set.
std::string nameFrom(const char* first, const char* second = nullptr) {
  const std::string name = environment(first);
  return name.empty() || !second ? name : text(name, '.', environment(second));
}

std::uint64_t nonceOf(JobKind kind, const std::string& name) {
  const Digest digest = sha256({bytesOf(text("weft job ", static_cast<int>(kind), ' ', name))});
  return ByteReader(digest).number<std::uint64_t>();
}

std::string shortHex(std::uint64_t nonce) {
  std::string hex;
  for (int shift = 60; shift >= 32; shift -= 4) hex += "0123456789abcdef"[(nonce >> shift) & 15];
  return hex;
}

}  // namespace

std::string jobName(JobKind kind) {
  switch (kind) {
    case JobKind::None:
      return {};
    case JobKind::Torchrun:
      return nameFrom("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT");
    case JobKind::Pmix:
      return nameFrom("PMIX_NAMESPACE");
    case JobKind::Slurm:
      return nameFrom("SLURM_JOB_ID", "SLURM_RESTART_COUNT");
    case JobKind::AwsBatch: {
      // The nodes of a multi-node job have ids that differ after a '#'.
      const std::string name = environment("AWS_BATCH_JOB_ID");
      return name.empty()
                 ? name
                 : text(name.substr(0, name.find('#')), '.', environment("AWS_BATCH_JOB_ATTEMPT"));
    }
  }
  return {};
}

JobMark currentJob() {
  for (JobKind kind : {JobKind::Torchrun, JobKind::Pmix, JobKind::Slurm, JobKind::AwsBatch}) {
    const std::string name = jobName(kind);
    if (!name.empty()) return {kind, nonceOf(kind, name)};
  }
  return {};
}

Status checkSameJob(const IdContent& id) {
  const std::string ours = jobName(id.job.kind);
  if (ours.empty() || nonceOf(id.job.kind, ours) == id.job.nonce) return {};
  return Status::error(
      Code::InvalidArgument,
      text("unique id belongs to job ", shortHex(id.job.nonce), ", created ",
           ageOf(id.createdUnixSeconds, std::time(nullptr)), "; this job is ",
           shortHex(nonceOf(id.job.kind, ours)),
           ". fix: make a new id in each job and do not keep it in a file between jobs"));
}

}  // namespace weft
