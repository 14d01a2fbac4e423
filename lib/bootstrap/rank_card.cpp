// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/rank_card.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/text.h"
#include "weft/weft.h"

namespace weft {
namespace {

std::string firstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string networkNamespace() {
  std::array<char, 64> name{};
  return readlink("/proc/self/ns/net", name.data(), name.size() - 1) > 0 ? name.data() : "net";
}

// The second field is the program's name in parentheses and may hold anything, so fields are
// counted from its end.
std::uint64_t startTimeOfThisProcess() {
  const std::string stat = firstLine("/proc/self/stat");
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

}  // namespace

std::string libraryVersion() { return text(WEFT_MAJOR, '.', WEFT_MINOR, '.', WEFT_PATCH); }

RankCard cardOfThisProcess() {
  RankCard card;
  card.host = hostName();
  const std::string boot = firstLine("/proc/sys/kernel/random/boot_id");
  card.hostId = text(boot.empty() ? card.host : boot, ' ', networkNamespace());
  card.pid = static_cast<int>(getpid());
  card.startTime = startTimeOfThisProcess();
  card.version = libraryVersion();
  return card;
}

std::string describe(const RankCard& card) {
  return text("rank ", card.rank, " (host ", card.host, ", pid ", card.pid, ')');
}

}  // namespace weft
