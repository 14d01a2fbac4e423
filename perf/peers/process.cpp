// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace weft::peers {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

[[noreturn]] void becomeProgram(std::vector<std::string> line,
                                std::vector<std::string> environment) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);  // Ctrl-C is for weft-peers, which then ends its contenders in order
  dup2(STDERR_FILENO, STDOUT_FILENO);
  for (std::string& entry : environment) putenv(entry.data());
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::perror(arguments[0]);
  _exit(127);
}

}  // namespace

pid_t spawn(const std::vector<std::string>& line, const std::vector<std::string>& environment) {
  const pid_t child = fork();
  if (child < 0) fail("cannot start a process");
  if (child == 0) becomeProgram(line, environment);
  return child;
}

bool hasExited(pid_t process) {
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid == process;
}

bool exitsWithin(pid_t process, int seconds) {
  constexpr int kStepUs = 10000;
  for (int step = 0; step <= seconds * 100; ++step) {
    if (waitpid(process, nullptr, WNOHANG) != 0) return true;  // collected, now or before
    usleep(kStepUs);
  }
  return false;
}

std::string besideMe(const std::string& program) {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename(program).string();
}

int freePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("cannot make a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool known = bind(fd, generic, length) == 0 && getsockname(fd, generic, &length) == 0;
  close(fd);
  if (!known) fail("cannot find a free port");
  return ntohs(address.sin_port);
}

std::string randomSecret() {
  std::array<std::uint8_t, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) < 0) fail("cannot draw a secret");
  std::string text;
  for (const unsigned byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace weft::peers
