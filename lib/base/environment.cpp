// SPDX-License-Identifier: Apache-2.0
#include "base/environment.h"

#include <cstdlib>

namespace weft::inline base {
namespace {

std::shared_mutex& guard() {
  static std::shared_mutex mutex;
  return mutex;
}

}  // namespace

std::string environment(const char* name) {
  const NoFork noFork;
  const std::shared_lock reading(guard());
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

WritingEnvironment::WritingEnvironment() : alone_(guard()) {}

}  // namespace weft::inline base
