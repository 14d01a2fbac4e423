// SPDX-License-Identifier: Apache-2.0
#include "perf/common/local_ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "perf/common/exit_code.h"

namespace weft::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(4);    // to end alone, and again after SIGTERM
constexpr auto kSaving = std::chrono::seconds(25);  // the same where somebody interrupts

[[noreturn]] void throwErrno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string randomSecret() {
  unsigned char bytes[32];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    throwErrno("getrandom");
  }
  std::string hex;
  for (unsigned char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return hex;
}

// A free port of the loopback interface. It is bound, not listened on, for as long as this object
// lives, so that the system gives it to nobody else; rank 0 may still bind it, because both set
// SO_REUSEADDR.
class ReservedPort {
 public:
  ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (socket_ < 0) throwErrno("socket");
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0) throwErrno("bind");
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
    number_ = ntohs(address.sin_port);
  }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  ~ReservedPort() { close(socket_); }

  int number() const { return number_; }

 private:
  int socket_;
  int number_ = 0;
};

// Blocks the signals that the launcher waits for, and restores the mask at the end.
class SignalGuard {
 public:
  SignalGuard() {
    sigemptyset(&watched_);
    for (int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&watched_, signal);
    sigprocmask(SIG_BLOCK, &watched_, &previous_);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard() { restore(); }

  void restore() const { sigprocmask(SIG_SETMASK, &previous_, nullptr); }

  // The next signal, or 0 when the deadline (if any) passed.
  int wait(std::optional<Clock::time_point> deadline) const {
    if (!deadline) return std::max(sigwaitinfo(&watched_, nullptr), 0);
    const auto left = std::max(*deadline - Clock::now(), Clock::duration::zero());
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec limit{static_cast<time_t>(ns / 1'000'000'000),
                         static_cast<long>(ns % 1'000'000'000)};
    return std::max(sigtimedwait(&watched_, nullptr, &limit), 0);
  }

 private:
  sigset_t watched_;
  sigset_t previous_;
};

std::vector<char*> withoutRanks(char** argv) {
  std::vector<char*> kept;
  for (char** word = argv; *word != nullptr; ++word) {
    const std::string_view text = *word;
    if (text.starts_with("--ranks=")) continue;
    if (text == "--ranks") {
      if (word[1] != nullptr) ++word;
      continue;
    }
    kept.push_back(*word);
  }
  kept.push_back(nullptr);
  return kept;
}

struct Rank {
  pid_t pid = -1;
  bool running = false;
  int status = 0;  // of waitpid

  bool failed() const { return !running && status != 0; }
  int exitCode() const {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
};

class LocalRanks {
 public:
  LocalRanks(int n, char** argv, std::span<const EnvVar> extra, RankFunction function)
      : ranks_(static_cast<size_t>(n)),
        argv_(withoutRanks(argv)),
        extra_(extra.begin(), extra.end()),
        function_(std::move(function)) {
    extra_.push_back({"WEFT_SIZE", std::to_string(n)});
    extra_.push_back({"WEFT_LOCAL_SIZE", std::to_string(n)});
    extra_.push_back({"WEFT_ROOT", "127.0.0.1:" + std::to_string(port_.number())});
    extra_.push_back({"WEFT_SECRET", randomSecret()});
  }
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  ~LocalRanks() {
    signalAll(SIGKILL);  // only after a failed start are there ranks left
    for (const Rank& rank : ranks_) {
      if (rank.pid > 0) waitpid(rank.pid, nullptr, 0);
    }
  }

  int run() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) start(rank);
    while (anyRunning()) {
      handle(signals_.wait(deadline_));
      reap();
      if (deadline_ && Clock::now() >= *deadline_) escalate();
    }
    return outcome();
  }

 private:
  void start(size_t index) {
    std::fflush(nullptr);  // or a fork would print what is left, too
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throwErrno("fork");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(kExitCannotStart);  // it died before the line above
      become(index);
    }
    ranks_[index].pid = pid;
    ranks_[index].running = true;
  }

  // noexcept, as nothing of this launcher may end here for a second time.
  [[noreturn]] void become(size_t index) noexcept {
    extra_.push_back({"WEFT_RANK", std::to_string(index)});
    extra_.push_back({"WEFT_LOCAL_RANK", std::to_string(index)});
    for (const EnvVar& each : extra_) setenv(each.name.c_str(), each.value.c_str(), 1);
    signals_.restore();
    if (function_) std::exit(function_(static_cast<int>(argv_.size()) - 1, argv_.data()));
    execv("/proc/self/exe", argv_.data());
    std::perror("cannot start a rank: /proc/self/exe");
    _exit(kExitCannotStart);
  }

  void handle(int signal) {
    if (signal != SIGINT && signal != SIGTERM) return;
    interrupt_ = signal;
    signalAll(signal);
    deadline_ = Clock::now() + kSaving;
  }

  void reap() {
    for (size_t index = 0; index < ranks_.size(); ++index) {
      Rank& rank = ranks_[index];
      if (!rank.running || !hasEnded(rank)) continue;
      rank.running = false;
      if (rank.failed()) blame(index);
    }
  }

  // It is not collected before all have ended: so long the others can read how it did.
  static bool hasEnded(Rank& rank) {
    siginfo_t end{};
    if (waitid(P_PID, static_cast<id_t>(rank.pid), &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        end.si_pid != rank.pid)
      return false;
    rank.status = end.si_code == CLD_EXITED ? W_EXITCODE(end.si_status, 0) : end.si_status;
    return true;
  }

  // Those that we terminate ourselves are not to blame.
  void blame(size_t index) {
    startGrace();
    if (terminated_ || interrupt_ != 0) return;
    const bool replaces = culprit_ && ranks_[*culprit_].exitCode() == kExitLost &&
                          ranks_[index].exitCode() != kExitLost;
    if (!culprit_ || replaces) culprit_ = index;
  }

  void startGrace() {
    if (!deadline_) deadline_ = Clock::now() + kGrace;
  }

  void escalate() {
    signalAll(terminated_ ? SIGKILL : SIGTERM);
    terminated_ = true;
    deadline_ = Clock::now() + kGrace;
  }

  void signalAll(int signal) const {
    for (const Rank& rank : ranks_) {
      if (rank.running) kill(rank.pid, signal);
    }
  }

  bool anyRunning() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
  }

  bool allAgree() const {
    return !terminated_ && std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) {
      return WIFEXITED(rank.status) && rank.status == ranks_.front().status;
    });
  }

  int outcome() const {
    if (interrupt_ != 0) {
      if (allAgree()) return ranks_.front().exitCode();
      std::fprintf(stderr, "ranks ended by %s\n", strsignal(interrupt_));
      return 128 + interrupt_;
    }
    if (!culprit_) return 0;
    const Rank& rank = ranks_[*culprit_];
    if (ranks_.size() > 1 && allAgree()) return rank.exitCode();  // on what one of them has said
    if (WIFSIGNALED(rank.status)) {
      std::fprintf(stderr, "rank %zu (pid %d) was killed by signal %d (%s)\n", *culprit_, rank.pid,
                   WTERMSIG(rank.status), strsignal(WTERMSIG(rank.status)));
    } else {
      std::fprintf(stderr, "rank %zu (pid %d) failed first, with exit code %d\n", *culprit_,
                   rank.pid, rank.exitCode());
    }
    return rank.exitCode();
  }

  ReservedPort port_;
  SignalGuard signals_;
  std::vector<Rank> ranks_;
  std::vector<char*> argv_;
  std::vector<EnvVar> extra_;
  RankFunction function_;                      // or this program anew
  std::optional<Clock::time_point> deadline_;  // of the running grace period
  std::optional<size_t> culprit_;
  bool terminated_ = false;
  int interrupt_ = 0;
};

int run(int n, char** argv, std::span<const EnvVar> extra, const RankFunction& function) {
  try {
    return LocalRanks(n, argv, extra, function).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cannot start %d local ranks: %s\n", n, error.what());
    return kExitCannotStart;
  }
}

}  // namespace

int runLocalRanks(int n, char** argv, std::span<const EnvVar> extra) {
  return run(n, argv, extra, nullptr);
}

int forkLocalRanks(int n, char** argv, const RankFunction& rank) { return run(n, argv, {}, rank); }

}  // namespace weft::tools
