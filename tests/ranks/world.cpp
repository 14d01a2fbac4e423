// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "../has_libfabric.h"

namespace weft::testing {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (::pipe(ends) != 0) std::abort();
  }
};

void writeAll(int fd, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, at, bytes);
    if (n <= 0) return;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

std::string readToEnd(int fd) {
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof(buffer))) > 0;)
    all.append(buffer, static_cast<std::size_t>(n));
  return all;
}

std::string endOf(pid_t pid, std::string text) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0 && text.empty())
    return "exit " + std::to_string(WEXITSTATUS(status));
  return text;
}

std::vector<std::string> runThreads(const World& world, const Body& body) {
  const std::size_t n = static_cast<std::size_t>(world.ranks);
  std::vector<std::string> texts(n);
  std::vector<weftComm_t> comms(n);
  const weftConfig_t config = configOf(world);
  const weftResult_t made = weftCommInitAllConfig(comms.data(), world.ranks, nullptr, &config);
  if (made != weftSuccess) return {outcome(made, nullptr)};
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      texts[r] = body({static_cast<int>(r), world.ranks, comms[r]});
      // Peers may still be reading this rank's first error; destroy is local, so nobody waits for
      // it.
    });
  }
  for (std::thread& t : threads) t.join();
  for (const weftComm_t comm : comms) weftCommDestroy(comm);
  return texts;
}

std::string runProcess(const World& world, const IdCourier& courier, int rank, const Body& body) {
  weftUniqueId id;
  if (std::string failed = courier.exchange(rank, &id); !failed.empty()) return failed;
  weftComm_t comm = nullptr;
  const weftConfig_t config = configOf(world);
  const weftResult_t made = weftCommInitRankConfig(&comm, world.ranks, id, rank, &config);
  if (made != weftSuccess) return outcome(made, nullptr);
  std::string text = body({rank, world.ranks, comm});
  weftCommDestroy(comm);
  return text;
}

// Of this process; or it has just ended.
bool sleeps(const std::filesystem::path& thread) {
  std::ifstream file(thread / "stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name = stat.rfind(')');
  return name == std::string::npos || stat.compare(name, 3, ") S") == 0;
}

void awaitOtherThreadsAsleep() {
  const std::string self = std::to_string(::gettid());
  const auto isBusy = [&](const std::filesystem::directory_entry& thread) {
    return thread.path().filename() != self && !sleeps(thread.path());
  };
  for (int waits = 0; waits < 1000; ++waits) {
    std::error_code none;
    const std::filesystem::directory_iterator threads("/proc/self/task", none);
    if (std::none_of(begin(threads), end(threads), isBusy)) return;
    sleepMs(1);
  }
}

const World& prepared(const World& world) {
  if (std::string(world.transport).find("ofi") != std::string::npos) test::warmLibfabric();
  return world;
}

}  // namespace

std::string nameOf(Kind kind) { return kind == Kind::Threads ? "threads" : "processes"; }

weftConfig_t configOf(const World& world) {
  weftConfig_t config = WEFT_CONFIG_INITIALIZER;
  config.timeoutMs = world.timeoutMs;
  config.initTimeoutMs = 30000;
  config.transport = world.transport;
  return config;
}

std::string outcome(weftResult_t result, weftComm_t comm) {
  if (result == weftSuccess) return "";
  return std::string(weftGetErrorString(result)) + ": " + weftGetLastError(comm);
}

pid_t forkAtRest() {
  awaitOtherThreadsAsleep();
  return ::fork();
}

Processes::Processes(int n, const std::function<std::string(int)>& body) {
  for (int r = 0; r < n; ++r) {
    const Pipe report;
    std::fflush(nullptr);
    const pid_t pid = forkAtRest();
    if (pid == 0) {
      for (const int fd : reports_) ::close(fd);
      ::close(report.ends[0]);
      const std::string text = body(r);
      writeAll(report.ends[1], text.data(), text.size());
      std::exit(text.empty() ? 0 : 1);
    }
    ::close(report.ends[1]);
    reports_.push_back(report.ends[0]);
    pids_.push_back(pid);
  }
}

Processes::Processes(const World& world, const Body& body)
    : Processes(prepared(world).ranks, [&world, &body, courier = IdCourier(world.ranks)](int rank) {
        return runProcess(world, courier, rank, body);
      }) {}

Processes::~Processes() {
  for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
  join();
}

void Processes::signal(int rank, int number) const { ::kill(pid(rank), number); }

std::vector<std::string> Processes::join() {
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < pids_.size(); ++r) {
    std::string text = readToEnd(reports_[r]);
    ::close(reports_[r]);
    texts.push_back(endOf(pids_[r], std::move(text)));
  }
  pids_.clear();
  reports_.clear();
  return texts;
}

std::vector<std::string> forkRanks(int n, const std::function<std::string(int)>& body) {
  return Processes(n, body).join();
}

struct IdCourier::Pipes {
  std::vector<Pipe> all;
  explicit Pipes(int ranks) : all(static_cast<std::size_t>(ranks)) {}
  ~Pipes() {
    for (const Pipe& p : all) {
      ::close(p.ends[0]);
      ::close(p.ends[1]);
    }
  }
};

IdCourier::IdCourier(int ranks) : pipes_(std::make_shared<Pipes>(ranks)) {}

std::string IdCourier::exchange(int rank, weftUniqueId* id) const {
  if (rank != 0) {
    // Should rank 0 die before it sends, this rank reads the end of the pipe.
    for (Pipe& p : pipes_->all) ::close(std::exchange(p.ends[1], -1));
    const int from = pipes_->all[static_cast<std::size_t>(rank)].ends[0];
    return ::read(from, id, sizeof(*id)) == sizeof(*id) ? "" : "no id";
  }
  if (const weftResult_t made = weftGetUniqueId(id); made != weftSuccess)
    return outcome(made, nullptr);
  for (const Pipe& p : pipes_->all) writeAll(p.ends[1], id, sizeof(*id));
  return "";
}

std::vector<std::string> run(const World& world, const Body& body) {
  return world.kind == Kind::Threads ? runThreads(world, body) : Processes(world, body).join();
}

std::string failuresIn(const std::vector<std::string>& texts) {
  std::string all;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (!texts[r].empty()) all += "rank " + std::to_string(r) + ": " + texts[r] + "\n";
  }
  return all;
}

std::string failures(const World& world, const Body& body) { return failuresIn(run(world, body)); }

void* mapShared(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return memory;
}
void unmapShared(void* memory, std::size_t bytes) { ::munmap(memory, bytes); }

double nowMs() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
void sleepMs(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

bool Arrivals::await(int ranks) const {
  for (const double until = nowMs() + 60000; arrived_.load() < ranks; sleepMs(0.2))
    if (nowMs() > until) return false;
  return true;
}

}  // namespace weft::testing
