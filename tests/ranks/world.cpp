// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

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
      // Peers may still be reading this rank's verdict; destroy is local, so nobody waits for it.
    });
  }
  for (std::thread& t : threads) t.join();
  for (const weftComm_t comm : comms) weftCommDestroy(comm);
  return texts;
}

// Rank 0 makes the id and hands it to the others through pipes.
std::vector<std::string> runProcesses(const World& world, const Body& body) {
  const std::size_t n = static_cast<std::size_t>(world.ranks);
  std::vector<Pipe> ids(n);
  std::vector<std::string> texts = forkRanks(world.ranks, [&](int rank) -> std::string {
    weftUniqueId id;
    if (rank == 0) {
      const weftResult_t result = weftGetUniqueId(&id);
      if (result != weftSuccess) return outcome(result, nullptr);
      for (std::size_t r = 1; r < n; ++r) writeAll(ids[r].ends[1], &id, sizeof(id));
    } else if (::read(ids[static_cast<std::size_t>(rank)].ends[0], &id, sizeof(id)) != sizeof(id)) {
      return "no id";
    }
    weftComm_t comm = nullptr;
    const weftConfig_t config = configOf(world);
    const weftResult_t made = weftCommInitRankConfig(&comm, world.ranks, id, rank, &config);
    if (made != weftSuccess) return outcome(made, nullptr);
    std::string text = body({rank, world.ranks, comm});
    weftCommDestroy(comm);
    return text;
  });
  for (const Pipe& p : ids) {
    ::close(p.ends[0]);
    ::close(p.ends[1]);
  }
  return texts;
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

std::vector<std::string> forkRanks(int n, const std::function<std::string(int)>& body) {
  std::vector<Pipe> reports(static_cast<std::size_t>(n));
  std::vector<pid_t> pids;
  for (int r = 0; r < n; ++r) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const Pipe& p : reports) ::close(p.ends[0]);
      const std::string text = body(r);
      writeAll(reports[static_cast<std::size_t>(r)].ends[1], text.data(), text.size());
      ::_exit(text.empty() ? 0 : 1);
    }
    pids.push_back(pid);
  }
  for (const Pipe& p : reports) ::close(p.ends[1]);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < pids.size(); ++r) {
    std::string text = readToEnd(reports[r].ends[0]);
    ::close(reports[r].ends[0]);
    texts.push_back(endOf(pids[r], std::move(text)));
  }
  return texts;
}

std::vector<std::string> run(const World& world, const Body& body) {
  return world.kind == Kind::Threads ? runThreads(world, body) : runProcesses(world, body);
}

std::string failures(const World& world, const Body& body) {
  std::string all;
  const std::vector<std::string> texts = run(world, body);
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (!texts[r].empty()) all += "rank " + std::to_string(r) + ": " + texts[r] + "\n";
  }
  return all;
}

}  // namespace weft::testing
