// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::watch {

// What /proc/PID/stat says about life and death; proc(5) numbers the fields.
struct ProcStat {
  char state = '?';           // 3
  std::uint64_t flags = 0;    // 9
  std::int64_t threads = 0;   // 20, those that are not yet reaped
  std::int64_t exitCode = 0;  // 52, as for wait(2); also of a signal that is just ending it

  // The whole process is on its way out. A main thread that has left by itself (pthread_exit) has
  // the exiting flag as well, but company and no exit code.
  bool dying() const;
  bool stopped() const { return state == 'T' || state == 't'; }
  // "was killed by SIGKILL", "exited with code 3" or "has ended".
  std::string cause() const;
};

// False if the line is cut or no such line.
bool parseProcStat(std::string_view line, ProcStat* stat);
// Reads an open /proc/PID/stat, again and again. False once the process has been reaped.
bool readProcStat(int fd, ProcStat* stat);

}  // namespace weft::watch
