// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/peer_processes.h"

#include <map>
#include <mutex>
#include <utility>

#include "base/no_fork.h"

namespace weft::shm {
namespace {

using mapped::PeerProcess;

struct KnownProcesses {
  ForkSafeMutex mutex;
  std::map<Token, std::weak_ptr<const PeerProcess>> byName;

  void forget(const Token& name) {
    const std::lock_guard lock(mutex);
    const auto found = byName.find(name);
    if (found != byName.end() && found->second.expired()) byName.erase(found);
  }
};

}  // namespace

std::shared_ptr<const PeerProcess> knownProcess(const Token& name, PeerProcess found) {
  auto& known = processWide<KnownProcesses>();
  const auto forget = [&known, name](const PeerProcess* process) {
    delete process;
    known.forget(name);
  };
  // Before the lock, which it takes to be forgotten, as it is without memory for its count.
  const std::shared_ptr<const PeerProcess> made(new PeerProcess(std::move(found)), forget);
  const std::lock_guard lock(known.mutex);
  std::weak_ptr<const PeerProcess>& place = known.byName[name];
  if (auto process = place.lock()) return process;
  place = made;
  return made;
}

}  // namespace weft::shm
