// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/mark.h"
#include "base/text.h"

namespace weft::inline base {

// Log lines for people: `host:pid [rank] WEFT INFO text`, one write(2) a line, so lines of several
// threads and processes never mix. Silent by default except for errors and warnings. WEFT_DEBUG
// sets the level, WEFT_DEBUG_FILE the file (%h is the host name, %p the process id). Any thread may
// log.
enum class Level { Error, Warn, Info, Debug, Trace };

class Log {
 public:
  // Lines up to `level` go to `fd`, which the caller owns.
  Log(Level level, int fd);

  // The process's log, configured from the environment when it is first used. Its creation also
  // warns about bad values and unknown WEFT_* names, once.
  static Log& process();

  bool enabled(Level level) const { return level <= level_; }
  // Writes the line whatever the level; a line break in `line` becomes a blank. Never fails: a line
  // that cannot be written is lost.
  void write(Level level, std::string_view line) const;

 private:
  Level level_;
  int fd_;
  std::string host_;
};

// While it lives, the lines of this thread tell of `rank`; those of nobody in particular show `-`.
class SpeaksFor {
 public:
  explicit SpeaksFor(std::uint32_t rank);
  ~SpeaksFor();
  SpeaksFor(const SpeaksFor&) = delete;
  SpeaksFor& operator=(const SpeaksFor&) = delete;

 private:
  const int before_;
};

// "warn", "INFO", ...: NCCL_DEBUG's names (NONE VERSION WARN INFO TRACE) besides ours, case
// ignored. False if unknown. NONE and VERSION still let errors through.
bool parseLevel(std::string_view name, Level* level);
// Replaces %h, %p and %% in a file name.
std::string expandLogFile(std::string_view pattern, std::string_view host, int pid);
// gethostname(2), or "unknown".
std::string hostName();

template <class... Parts>
void logAt(Level level, const Parts&... parts) {
  (void)WEFT_MARK(text(parts...));
  if (const Log& log = Log::process(); log.enabled(level)) log.write(level, text(parts...));
}
template <class... Parts>
void logError(const Parts&... parts) {
  logAt(Level::Error, parts...);
}
template <class... Parts>
void logWarn(const Parts&... parts) {
  logAt(Level::Warn, parts...);
}
template <class... Parts>
void logInfo(const Parts&... parts) {
  logAt(Level::Info, parts...);
}
template <class... Parts>
void logDebug(const Parts&... parts) {
  logAt(Level::Debug, parts...);
}

}  // namespace weft::inline base
