// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/job.h"

#include <array>
#include <cstdio>
#include <ctime>

#include "base/environment.h"
#include "base/invalid.h"
#include "base/text.h"
#include "net/bytes.h"

namespace weft::bootstrap {
namespace {

// A job's id with the count of its restarts; empty unless the id is set.
std::string restarted(const std::string& id, const char* count) {
  return id.empty() ? id : text(id, '.', environment(count));
}

std::uint64_t nonceOf(JobKind kind, const std::string& name) {
  const net::Digest digest =
      net::sha256({net::bytesOf(text("weft job ", static_cast<int>(kind), ' ', name))});
  return net::ByteReader(digest).number<std::uint64_t>();
}

std::string shortHex(std::uint64_t nonce) {
  std::array<char, 16> hex;
  std::snprintf(hex.data(), hex.size(), "%08x", static_cast<unsigned>(nonce >> 32));
  return hex.data();
}

}  // namespace

std::string jobName(JobKind kind) {
  switch (kind) {
    case JobKind::None:
      return {};
    case JobKind::Torchrun:
      return restarted(environment("TORCHELASTIC_RUN_ID"), "TORCHELASTIC_RESTART_COUNT");
    case JobKind::Pmix:
      return environment("PMIX_NAMESPACE");
    case JobKind::Slurm:
      return restarted(environment("SLURM_JOB_ID"), "SLURM_RESTART_COUNT");
    case JobKind::AwsBatch: {
      // The nodes of a multi-node job have ids that differ after a '#'.
      const std::string id = environment("AWS_BATCH_JOB_ID");
      return restarted(id.substr(0, id.find('#')), "AWS_BATCH_JOB_ATTEMPT");
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
  return invalid("unique id belongs to job ", shortHex(id.job.nonce), ", created ",
                 ageOf(id.createdUnixSeconds, std::time(nullptr)), "; this job is ",
                 shortHex(nonceOf(id.job.kind, ours)),
                 ". fix: make a new id in each job and do not keep it in a file between jobs");
}

}  // namespace weft::bootstrap
