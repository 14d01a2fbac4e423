// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <string>

#include "fake.h"

namespace fake {
namespace {

std::uint64_t number(const char* name, std::uint64_t fallback) {
  const char* value = std::getenv((std::string("FAKE_EFA_") + name).c_str());
  return value == nullptr || *value == '\0' ? fallback : std::strtoull(value, nullptr, 10);
}

Knobs readKnobs() {
  const Knobs usual;
  const char* tally = std::getenv("FAKE_EFA_TALLY");
  const char* wire = std::getenv("FAKE_EFA_WIRE");
  return {.seed = number("SEED", usual.seed),
          .devices = number("DEVICES", usual.devices),
          .shuffle = number("SHUFFLE", usual.shuffle) != 0,
          .delayUs = number("DELAY_US", usual.delayUs),
          .notReady = number("NOT_READY", usual.notReady),
          .reads = number("READS", usual.reads) != 0,
          .dieAfter = number("DIE_AFTER", usual.dieAfter),
          .muteAfter = number("MUTE_AFTER", usual.muteAfter),
          .timeoutMs = number("TIMEOUT_MS", usual.timeoutMs),
          .tally = tally != nullptr ? tally : "",
          .memoryKb = number("MEMORY_KB", usual.memoryKb),
          .wire = wire != nullptr ? wire : usual.wire};
}

}  // namespace

const Knobs& knobs() {
  static const Knobs all = readKnobs();
  return all;
}

std::recursive_mutex& lock() {
  static std::recursive_mutex mutex;
  return mutex;
}

// Each process draws its own numbers, the same in each run if the processes' ids differ by the
// same; under the lock.
std::uint64_t draw(std::uint64_t below) {
  static std::mt19937_64 random(knobs().seed * 1000003 +
                                static_cast<std::uint64_t>(::getpid() - ::getppid()));
  return below == 0 ? 0 : random() % below;
}

bool chance(std::uint64_t percent) { return draw(100) < percent; }

Clock::time_point soon() {
  return Clock::now() + std::chrono::microseconds(draw(knobs().delayUs + 1));
}

}  // namespace fake
