// SPDX-License-Identifier: Apache-2.0
// AWS Batch multi-node parallel jobs. It starts one process on each node, so nodes are ranks; the
// main node is rank 0 whatever its index.
#include "base/environment.h"
#include "base/invalid.h"
#include "base/text.h"
#include "bootstrap/job.h"
#include "launch/launcher_source.h"
#include "net/interfaces.h"

namespace weft::launch {
namespace {

bool hasVariablesOfBatch() {
  return allSet({"AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"});
}

Status identifyByBatch(Identity* identity) {
  WEFT_TRY(readIdentity({"AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"}, identity));
  int mainIndex = 0;
  WEFT_TRY(optionalNumber("AWS_BATCH_JOB_MAIN_NODE_INDEX", 0, identity->size - 1, &mainIndex));
  identity->rank = (identity->rank - mainIndex + identity->size) % identity->size;
  identity->localRank = 0;
  identity->localSize = 1;
  return {};
}

constexpr const char* kMainAddress = "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";

// The child nodes are told the main node's address; the main node itself is not.
Status mainNodeAddress(const Identity& identity, std::string* host) {
  *host = environment(kMainAddress);
  if (!host->empty()) return {};
  if (identity.rank != 0)
    return invalidVariable(kMainAddress, kMainAddress,
                           " is not set on a child node. fix: run this as a multi-node parallel "
                           "job, or set WEFT_RANK, WEFT_SIZE and WEFT_ROOT");
  std::vector<net::Interface> interfaces;
  std::vector<net::Address> addresses;
  WEFT_TRY(net::listInterfaces(&interfaces));
  WEFT_TRY(net::chooseAddresses(interfaces, "", net::defaultRouteInterface(), &addresses));
  const std::string withPort = addresses.front().text();
  *host = withPort.substr(0, withPort.rfind(':'));
  return {};
}

Status meetByBatch(const Identity& identity, Deadline deadline, bootstrap::UniqueId* id) {
  std::string host;
  WEFT_TRY(mainNodeAddress(identity, &host));
  const std::string job = text("aws batch ", bootstrap::jobName(bootstrap::JobKind::AwsBatch));
  const std::string root = text(host, ':', portForJob(job));
  return ofVariable(kMainAddress, idForJob(identity, root, job, deadline, id));
}

}  // namespace

const LauncherSource kAwsBatchSource{"AWS Batch", hasVariablesOfBatch, identifyByBatch,
                                     meetByBatch};

}  // namespace weft::launch
