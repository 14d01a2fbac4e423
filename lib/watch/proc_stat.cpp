// SPDX-License-Identifier: Apache-2.0
#include "watch/proc_stat.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/text.h"

namespace weft::watch {
namespace {

constexpr std::uint64_t kExiting = 0x4;  // PF_EXITING

// Cuts the next blank-separated word off `rest`.
std::string_view nextWord(std::string_view* rest) {
  const std::size_t begin = rest->find_first_not_of(' ');
  if (begin == std::string_view::npos) return *rest = {};
  rest->remove_prefix(begin);
  const std::string_view word = rest->substr(0, rest->find_first_of(" \n"));
  rest->remove_prefix(word.size());
  return word;
}

bool isStopSignal(std::int64_t code) {
  return code == SIGSTOP || code == SIGTSTP || code == SIGTTIN || code == SIGTTOU;
}

}  // namespace

bool parseProcStat(std::string_view line, ProcStat* stat) {
  // The name, field 2, stands in parentheses and may itself hold blanks and parentheses.
  const std::size_t name = line.rfind(')');
  if (name == std::string_view::npos) return false;
  std::string_view rest = line.substr(name + 1);
  for (int field = 3; field <= 52; ++field) {
    const std::string_view word = nextWord(&rest);
    if (word.empty()) return false;
    if (field == 3) stat->state = word[0];
    if (field == 9 && !parseNumber(word, &stat->flags)) return false;
    if (field == 20 && !parseNumber(word, &stat->threads)) return false;
    if (field == 52 && !parseNumber(word, &stat->exitCode)) return false;
  }
  return true;
}

bool readProcStat(int fd, ProcStat* stat) {
  char line[1024];
  const ssize_t bytes = ::pread(fd, line, sizeof(line), 0);
  return bytes > 0 && parseProcStat({line, static_cast<std::size_t>(bytes)}, stat);
}

bool ProcStat::dying() const {
  const bool ending = exitCode != 0 && !isStopSignal(exitCode);
  return (flags & kExiting) != 0 && (threads <= 1 || ending);
}

std::string ProcStat::cause() const {
  const int signal = static_cast<int>(exitCode & 0x7f);
  if (signal != 0 && !isStopSignal(exitCode)) {
    const char* const name = ::sigabbrev_np(signal);
    return name ? text("was killed by SIG", name) : text("was killed by signal ", signal);
  }
  if (exitCode >> 8 != 0) return text("exited with code ", exitCode >> 8);
  return "has ended";
}

}  // namespace weft::watch
