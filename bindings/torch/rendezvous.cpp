// SPDX-License-Identifier: Apache-2.0
#include "rendezvous.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace weft::pytorch {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::uint8_t> bytesOf(const weftUniqueId& id) {
  return {std::begin(id.internal), std::end(id.internal)};
}

weftUniqueId idOf(const std::vector<std::uint8_t>& bytes) {
  weftUniqueId id{};
  if (bytes.size() != sizeof(id.internal))
    throw std::runtime_error("torch's store holds " + std::to_string(bytes.size()) +
                             " bytes where weft's id has " + std::to_string(sizeof(id.internal)) +
                             "; fix: use the same version of weft on all ranks");
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

weftConfig_t configOf(const Identity& who, const std::string& name) {
  weftConfig_t config = defaultConfig();
  config.timeoutMs = config.initTimeoutMs = who.timeoutMs();
  config.commName = name.c_str();
  return config;
}

// Often at first, as most are about to come, then less.
Milliseconds pauseAfter(Clock::duration waited) {
  return std::clamp(std::chrono::duration_cast<Milliseconds>(waited / 20), Milliseconds(1),
                    Milliseconds(20));
}

std::vector<std::uint8_t> await(const Identity& who, const std::string& key, Milliseconds patience,
                                const std::atomic<bool>& stop) try {
  const auto begin = Clock::now();
  while (!who.store->check({key})) {
    const auto waited = Clock::now() - begin;
    if (stop) throw std::runtime_error("the process group was destroyed meanwhile");
    if (waited > patience)
      throw std::runtime_error("nobody has left \"" + key + "\" there within " +
                               std::to_string(patience.count()) + " ms");
    std::this_thread::sleep_for(pauseAfter(waited));
  }
  return who.store->get(key);
} catch (const std::exception& error) {
  blameStore(who, "the id of the other rank", error);
}

void forget(const Identity& who, const std::string& key) {
  try {
    who.store->deleteKey(key);
  } catch (const std::exception&) {  // of the stores that cannot delete; all have met
  }
}

}  // namespace

int inWeft(Milliseconds timeout) {
  return static_cast<int>(std::clamp<std::int64_t>(timeout.count(), 1, INT_MAX));
}

void blameStore(const Identity& who, const std::string& doing, const std::exception& error) {
  const std::string said = error.what();
  throw std::runtime_error(
      "rank " + std::to_string(who.rank) + " of " + who.name + " did not get " + doing +
      " through torch's store: " + said.substr(0, said.find('\n')) +
      "; fix: see that rank 0, where the store lives, runs, and that all ranks make the group");
}

Communicator meetAsFirst(const Identity& who, int ranks, const std::string& key,
                         const std::string& name) {
  weftUniqueId id;
  check(weftGetUniqueId(&id));
  try {
    who.store->set(key, bytesOf(id));
  } catch (const std::exception& error) {
    blameStore(who, "its id to the others", error);
  }
  const weftConfig_t config = configOf(who, name);
  Communicator comm = Communicator::join(id, ranks, 0, &config);
  forget(who, key);
  return comm;
}

Communicator meetAsOther(const Identity& who, int ranks, int rank, const std::string& key,
                         const std::string& name, Milliseconds patience,
                         const std::atomic<bool>& stop) {
  const weftConfig_t config = configOf(who, name);
  return Communicator::join(idOf(await(who, key, patience, stop)), ranks, rank, &config);
}

Communicator joinGroup(const Identity& who) {
  static const std::atomic<bool> never = false;
  if (who.rank == 0) return meetAsFirst(who, who.size, "weft/id", who.name);
  return meetAsOther(who, who.size, who.rank, "weft/id", who.name, who.timeout, never);
}

}  // namespace weft::pytorch
