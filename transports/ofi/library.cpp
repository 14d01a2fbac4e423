// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/library.h"

#include <rdma/fi_errno.h>
#include <signal.h>

#include <array>
#include <cstdlib>

#include "base/environment.h"
#include "base/no_fork.h"
#include "base/text.h"
#include "transports/setup.h"

namespace weft::ofi {
namespace {

constexpr const char* kFile = "libfabric.so.1";
constexpr std::uint32_t kOldest = FI_VERSION(1, 14);

std::string versionText(std::uint32_t version) {
  return text(FI_MAJOR(version), ".", FI_MINOR(version));
}

// Puts the process's signal handlers back: libraries of providers for other hardware (psm2) take
// SIGINT, SIGTERM, SIGSEGV and others for themselves as soon as they are loaded.
class KeepSignals {
 public:
  KeepSignals() {
    for (int i = 1; i < kEnd; ++i) ::sigaction(i, nullptr, &kept_[static_cast<std::size_t>(i)]);
  }
  ~KeepSignals() {
    for (int i = 1; i < kEnd; ++i) ::sigaction(i, &kept_[static_cast<std::size_t>(i)], nullptr);
  }

 private:
  static constexpr int kEnd = 32;  // those before the real-time signals
  std::array<struct sigaction, kEnd> kept_ = {};
};

void* openFile() {
  const WritingEnvironment writing;
  // Read by the efa provider once, before its first call of libibverbs. A child of fork never
  // touches our endpoints, but its parent's registered pages must stay where they are.
  ::setenv("FI_EFA_FORK_SAFE", "1", 0);
  const KeepSignals keep;
  return ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
}

Status check(const Library& library) {
  if (!library.symbol.opened())
    return Status::error(Code::SystemError, "ofi: libfabric is not installed (", ::dlerror(),
                         "); fix: apt install libfabric1");
  if (library.version != nullptr && library.version() < kOldest)
    return Status::error(Code::SystemError, "ofi: libfabric ", versionText(library.version()),
                         " is too old; fix: install ", versionText(kOldest), " or later");
  if (library.symbol.missing().empty()) return {};
  return Status::error(Code::SystemError, "ofi: ", kFile, " lacks symbols of ", kInfoAbi,
                       ": it is older than the headers that weft was built with (",
                       versionText(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)),
                       "); fix: install a newer libfabric");
}

}  // namespace

Status openLibrary(const Library** out) {
  const NoFork noFork;
  static const Library library(openFile());
  static const Status status = check(library);
  *out = &library;
  return status;
}

void setDefaults(bool messages) {
  const WritingEnvironment writing;
  // Receives that ofi_rxm keeps for every connection, or for all: nothing is faster with more.
  ::setenv("FI_OFI_RXM_MSG_RX_SIZE", "16", 0);
  // It has room for the completions of so many messages to each of 1,024 peers, and fills it in turn.
  ::setenv("FI_OFI_RXM_MSG_TX_SIZE", "8", 0);
  // Microseconds until it sees to somebody who connects, also where that has woken it.
  ::setenv("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "1000", 0);
  // Of each of its 2,048 buffers: 34 MiB by default, in which remote writes do not travel.
  if (!messages) ::setenv("FI_OFI_RXM_BUFFER_SIZE", "128", 0);
}

std::string reason(const Library& library, const std::string& provider, std::int64_t result) {
  const int code = static_cast<int>(result < 0 ? -result : result);
  std::string line = text(library.strerror(code), " (", -code, ")");
  if (code == FI_ENOMEM)
    line += text("; fix: raise the limit of locked memory (ulimit -l, now ",
                 transport::lockableMemory(), ") or lower WEFT_SEGMENT_KB");
  else if (code == FI_EHOSTUNREACH && provider.starts_with("efa"))
    line +=
        "; fix: the security group must allow all traffic from and to itself, and all instances "
        "must be in one subnet";
  else if (code == FI_ECONNREFUSED || code == FI_EHOSTUNREACH || code == FI_ETIMEDOUT)
    line += "; fix: check the firewall, or choose another interface with WEFT_NET_DEVICES";
  return line;
}

}  // namespace weft::ofi
