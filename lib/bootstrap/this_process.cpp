// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/this_process.h"

#include <unistd.h>

#include <array>

#include "base/folder.h"
#include "base/log.h"
#include "base/text.h"
#include "weft/weft.h"

namespace weft::bootstrap {
namespace {

std::string networkNamespace() {
  std::array<char, 64> name{};
  return readlink("/proc/self/ns/net", name.data(), name.size() - 1) > 0 ? name.data() : "net";
}

}  // namespace

std::string libraryVersion() { return text(WEFT_MAJOR, '.', WEFT_MINOR, '.', WEFT_PATCH); }

PeerName nameOfThisProcess(int rank) {
  const std::string boot = firstLine("/proc/sys/kernel/random/boot_id");
  const std::string host = hostName();
  return {rank, host, getpid(), text(boot.empty() ? host : boot, ' ', networkNamespace())};
}

}  // namespace weft::bootstrap
