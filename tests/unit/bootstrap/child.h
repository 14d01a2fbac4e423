// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "helpers.h"

namespace weft::test {

// Ends a forked process without the sanitizers' reports, which would be about threads of its
// parent.
inline void endAtOnce() { syscall(SYS_exit_group, 0); }

// A forked process that runs `body` and hands back its result as text.
class Child {
 public:
  explicit Child(const std::function<std::string()>& body) {
    int fds[2];
    if (pipe(fds) != 0) std::abort();
    std::fflush(stdout);
    pid_ = fork();
    if (pid_ == 0) {
      ::close(fds[0]);
      const std::string result = body();
      if (write(fds[1], result.data(), result.size()) < 0) _exit(1);
      endAtOnce();
    }
    ::close(fds[1]);
    fd_ = fds[0];
  }
  ~Child() {
    kill();
    waitpid(pid_, nullptr, 0);
    ::close(fd_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() const { ::kill(pid_, SIGKILL); }
  // All of its threads.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void goOn() const { ::kill(pid_, SIGCONT); }
  pid_t pid() const { return pid_; }
  // All that it says, once it has ended.
  std::string result() const {
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = read(fd_, buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<std::size_t>(n));
    return all;
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

// ThreadSanitizer lets a forked process start threads only if its parent had none.
inline void awaitSingleThread() {
  ASSERT_TRUE(
      eventually(10000, [] { return threadsNamed("weft-root") + threadsNamed("weft-hub") == 0; }));
}

}  // namespace weft::test
