// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/knobs.h"
#include "base/mark.h"
#include "base/no_fork.h"

namespace weft::inline base {
namespace {

thread_local int threadRank = -1;

const char* nameOf(Level level) {
  static constexpr std::array names = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE"};
  return names[static_cast<std::size_t>(level)];
}

// What the environment asks for, and what was wrong with it.
struct Settings {
  Level level = Level::Warn;
  int fd = STDERR_FILENO;
  std::vector<std::string> complaints;
};

void readLevel(Settings* settings) {
  std::string name;
  const Status read = readText(Knob::Debug, &name);
  if (!read.ok()) settings->complaints.push_back(read.text());
  if (read.ok()) parseLevel(name, &settings->level);
}

void openFile(Settings* settings) {
  std::string pattern;
  if (!readText(Knob::DebugFile, &pattern).ok() || pattern.empty()) return;
  const std::string path = expandLogFile(pattern, hostName(), static_cast<int>(getpid()));
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
  if (fd >= 0) {
    settings->fd = fd;
  } else {
    settings->complaints.push_back(text("WEFT_DEBUG_FILE: cannot open ", path, ": ",
                                        std::strerror(errno), "; logging to stderr"));
  }
}

Log makeProcessLog() {
  Settings settings;
  readLevel(&settings);
  openFile(&settings);
  const Log log(settings.level, settings.fd);
  for (std::string& complaint : unknownKnobs()) settings.complaints.push_back(std::move(complaint));
  for (const std::string& complaint : settings.complaints)
    if (log.enabled(Level::Warn)) log.write(Level::Warn, complaint);
  return log;
}

}  // namespace

Log::Log(Level level, int fd) : level_(level), fd_(fd), host_(hostName()) {}

Log& Log::process() { return processWide<Log>(makeProcessLog); }

void Log::write(Level level, std::string_view message) const {
  (void)WEFT_MARK(message);
  const std::string rank = threadRank < 0 ? "-" : std::to_string(threadRank);
  std::string line = text(host_, ':', getpid(), " [", rank, "] WEFT ", nameOf(level), ' ', message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  ssize_t written;
  do {
    written = ::write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
}

SpeaksFor::SpeaksFor(std::uint32_t rank)
    : before_(std::exchange(threadRank, static_cast<int>(rank))) {}

SpeaksFor::~SpeaksFor() { threadRank = before_; }

bool parseLevel(std::string_view name, Level* level) {
  static constexpr std::array<std::pair<const char*, Level>, 7> names = {{
      {"NONE", Level::Error},
      {"ERROR", Level::Error},
      {"VERSION", Level::Warn},
      {"WARN", Level::Warn},
      {"INFO", Level::Info},
      {"DEBUG", Level::Debug},
      {"TRACE", Level::Trace},
  }};
  for (const auto& [known, value] : names) {
    if (equalIgnoringCase(name, known)) {
      *level = value;
      return true;
    }
  }
  return false;
}

std::string expandLogFile(std::string_view pattern, std::string_view host, int pid) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '%' || (next != 'h' && next != 'p' && next != '%')) {
      path += pattern[i];
      continue;
    }
    ++i;
    path += next == 'h' ? std::string(host) : next == 'p' ? std::to_string(pid) : "%";
  }
  return path;
}

std::string hostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

}  // namespace weft::inline base
