// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/trial.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>

#include "base/no_fork.h"
#include "base/text.h"
#include "transports/mapped/direct.h"

namespace weft::shm {
namespace {

struct OwnProbe {
  ForkSafeMutex mutex;
  pid_t owner = 0;
  Probe probe;
};

std::uint64_t inodeOf(const char* path) {
  struct stat info {};
  return ::stat(path, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

// A child of the process that made it needs another name.
Status ownProbe(Probe** probe) {
  OwnProbe& own = processWide<OwnProbe>();
  const std::lock_guard lock(own.mutex);
  if (own.owner != ::getpid()) {
    WEFT_TRY(randomToken(&own.probe.process));
    own.owner = ::getpid();
  }
  *probe = &own.probe;
  return {};
}

std::uint64_t namespaces() {
  return inodeOf("/proc/self/ns/pid") << 32 ^ inodeOf("/proc/self/ns/user");
}

// The kernel knows the pid of a pidfd in the namespace of /proc.
pid_t pidHere(const PeerInfo& peer, const PeerInfo& mine, const Fd& process) {
  if (peer.namespaces == mine.namespaces) return peer.pid;
  std::ifstream info(text("/proc/self/fdinfo/", process.get()));
  pid_t pid = 0;
  for (std::string word; info >> word;)
    if (word == "Pid:" && info >> pid) return std::max(pid, 0);
  return 0;
}

std::vector<std::uint32_t> triedBy(std::uint32_t rank, const std::vector<PeerInfo>& infos) {
  const auto ranks = static_cast<std::uint32_t>(infos.size());
  const bool alike = std::ranges::all_of(
      infos, [&](const PeerInfo& info) { return info.namespaces == infos[0].namespaces; });
  std::vector<std::uint32_t> tried;
  for (std::uint32_t step = 1; step < ranks; step = alike ? 2 * step : step + 1)
    tried.push_back((rank + step) % ranks);
  return tried;
}

// Reads the token first: the pid may be another process's in this namespace, and is written to.
Status tryDirect(const PeerInfo& peer, const mapped::PeerProcess& process) {
  if (process.pid == 0 || !process.death)
    return Status::error(Code::SystemError, "the pid of ", nameOf(peer), " is not visible");
  const mapped::Process there{process.pid, process.death.get()};
  Token name{};
  WEFT_TRY(mapped::readMemory(there, peer.probe + offsetof(Probe, process), &name, sizeof(name)));
  if (name != peer.process)
    return Status::error(Code::SystemError, nameOf(peer), " is not pid ", process.pid, " here");
  const std::uint64_t word = peer.probe + offsetof(Probe, word), sent = kWindowMagic;
  std::uint64_t kept = 0;
  WEFT_TRY(mapped::writeMemory(there, word, &sent, sizeof(sent)));
  WEFT_TRY(mapped::readMemory(there, word, &kept, sizeof(kept)));
  if (kept == sent) return {};
  return Status::error(Code::SystemError, "a trial write to ", nameOf(peer), " got lost");
}

}  // namespace weft::shm
