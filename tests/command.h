// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>

namespace weft::test {

struct Outcome {
  int exitCode = -1;   // 128 and the signal's number if there was one, -1 if there is no shell
  std::string output;  // what went to standard output
};

// Runs a line of the shell to its end.
inline Outcome runCommand(const std::string& line) {
  Outcome outcome;
  std::FILE* const pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char piece[4096];
  while (const std::size_t n = std::fread(piece, 1, sizeof piece, pipe))
    outcome.output.append(piece, n);
  const int status = ::pclose(pipe);
  outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// The path of a tool that was built beside this test.
inline std::string toolBeside(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

}  // namespace weft::test
