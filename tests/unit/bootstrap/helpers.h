// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "net/bytes.h"
#include "net/socket.h"

namespace weft::test {
using namespace bootstrap;

// Sanitizers slow everything down by about ten times.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowdown = 10;
#else
inline constexpr int kSlowdown = 1;
#endif

// Promised is a second, on a machine that is not busy. However busy it is, what comes sooner than this is not the work of
// a deadline, which is three times as long where a test sets none.
inline constexpr std::chrono::seconds kSoon{20};
inline constexpr std::int64_t kDeadlineMs = 60000;

// Times that keep the tests of failures short, and are long for ranks that wait for a core.
inline RootOptions quickRoot() {
  RootOptions options;
  options.handshakeMs = 1000;
  options.lingerMs = 1000;
  options.unusedMs = 5000;
  return options;
}

inline UniqueId newId(const RootOptions& options = quickRoot()) {
  UniqueId id;
  const Status status = createUniqueId(&id, IdScope::ThisProcess, options);
  EXPECT_TRUE(status.ok()) << status.text();
  return id;
}

inline IdContent contentOf(const UniqueId& id) {
  IdContent content;
  EXPECT_TRUE(decodeId(id, &content).ok());
  return content;
}

inline net::Address loopbackV4() {
  net::Address address;
  address.ip = {127, 0, 0, 1};
  return address;
}

// A port that was free a moment ago, and that the kernel gives to nobody who asks for any: other tests run beside.
inline std::uint16_t freePort() {
  static int next = ::getpid() * 16;
  net::Address address = loopbackV4(), bound;
  for (int tries = 0; tries < 1000; ++tries) {
    net::Socket socket;
    int error = 0;
    address.port = static_cast<std::uint16_t>(10000 + next++ % 10000);
    if (net::listenAt(address, &socket, &bound, &error).ok()) return bound.port;
  }
  ADD_FAILURE() << "no port is free";
  return 0;
}

// Bound but not listening: it refuses, and nobody else can take it meanwhile.
class RefusingPort {
 public:
  RefusingPort() {
    sockaddr_storage storage;
    socklen_t size = loopbackV4().toSockaddr(&storage);
    EXPECT_EQ(bind(socket_.fd(), reinterpret_cast<sockaddr*>(&storage), size), 0);
    size = sizeof storage;
    EXPECT_EQ(getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&storage), &size), 0);
    address_ = net::Address::from(reinterpret_cast<sockaddr*>(&storage));
  }
  const net::Address& address() const { return address_; }

 private:
  net::Socket socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  net::Address address_;
};

struct Joined {
  Status status;
  std::unique_ptr<Bootstrap> bootstrap;
};

// How one rank of a test joins; the defaults are a healthy one.
struct Part {
  int rank = 0;
  int size = 1;
  std::string config = {};
  std::int64_t timeoutMs = kDeadlineMs;
  std::int64_t delayMs = 0;
  JoinOptions options = {};
};

inline Joined join(const UniqueId& id, const Part& part) {
  Joined result;
  std::this_thread::sleep_for(std::chrono::milliseconds(part.delayMs));
  result.status = Bootstrap::join(id, part.size, part.rank, part.config,
                                  Deadline::in(part.timeoutMs), &result.bootstrap, part.options);
  return result;
}

// Joins all parts at once, each on its own thread.
inline std::vector<Joined> joinAll(const UniqueId& id, const std::vector<Part>& parts) {
  std::vector<Joined> results(parts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = join(id, parts[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

inline std::vector<Part> healthyParts(int size) {
  std::vector<Part> parts(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    parts[static_cast<std::size_t>(rank)].rank = rank;
    parts[static_cast<std::size_t>(rank)].size = size;
  }
  return parts;
}

inline void expectAllJoined(const std::vector<Joined>& results) {
  for (const Joined& result : results) EXPECT_TRUE(result.status.ok()) << result.status.text();
}

// Everybody failed with this code and one and the same text, which is returned.
inline std::string expectSameFailure(const std::vector<Joined>& results, Code code) {
  for (const Joined& result : results) {
    EXPECT_EQ(result.status.code(), code) << result.status.text();
    EXPECT_EQ(result.status.text(), results.front().status.text());
  }
  return results.front().status.text();
}

inline void expectHas(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << '"' << part << "\" is not in: " << text;
}

inline std::size_t openFds() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

// Threads of services that are still there.
inline int threadsNamed(const std::string& wanted) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    count += std::getline(file, name) && name == wanted;
  }
  return count;
}
inline int rootThreads() { return threadsNamed("weft-root"); }

// How many connections the root of that id has, whose process is on this host.
inline int connectionsAt(const UniqueId& id) {
  std::ifstream table("/proc/self/net/tcp");
  std::ostringstream port;
  port << ':' << std::uppercase << std::hex << contentOf(id).addresses.front().port;
  int count = 0;
  for (std::string line, number, local, remote, state; std::getline(table, line);)
    if (std::istringstream(line) >> number >> local >> remote >> state)
      count += local.ends_with(port.str()) && state == "01";
  return count;
}

// ThreadSanitizer's own thread of a process, which wakes ten times a second: the first that is made there. 0: none.
inline pid_t sanitizersThreadOf([[maybe_unused]] pid_t pid) {
  pid_t first = 0;
#if defined(__SANITIZE_THREAD__)
  std::error_code gone;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    const pid_t thread = std::stoi(task.path().filename());
    if (thread > pid && (first == 0 || thread < first)) first = thread;
  }
#endif
  return first;
}

// The threads of these processes, but the one that asks: how often each has been woken. Empty if one of them is not asleep.
inline std::map<std::string, std::string> sleepersOf(const std::vector<pid_t>& pids) {
  std::map<std::string, std::string> sleepers;
  for (const pid_t pid : pids) {
    const pid_t sanitizers = sanitizersThreadOf(pid);
    std::error_code gone;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
      const pid_t thread = std::stoi(task.path().filename());
      if (thread == ::gettid() || thread == sanitizers) continue;
      std::ifstream file(task.path() / "status");
      const std::string status(std::istreambuf_iterator<char>(file), {});
      if (status.find("State:\tS") == std::string::npos) return {};
      sleepers[task.path()] = status.substr(std::min(status.find("voluntary_ctxt"), status.size()));
    }
  }
  return sleepers;
}

// Do all threads of these processes wait for something that has not come? However busy the machine is.
inline bool areStill(const std::vector<pid_t>& pids) {
  const auto before = sleepersOf(pids);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return !before.empty() && sleepersOf(pids) == before;
}

// True once `condition` holds, within `ms`.
inline bool eventually(std::int64_t ms, const std::function<bool()>& condition) {
  for (const Deadline deadline = Deadline::in(ms); !deadline.expired();) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

// As joinAll, but part `last` comes when the others wait for it, and has a second then.
inline std::vector<Joined> joinWithALastOne(std::vector<Part> parts, std::size_t last) {
  const UniqueId id = newId();
  parts[last].timeoutMs = 1000;
  std::vector<Part> early = parts;
  early.erase(early.begin() + static_cast<std::ptrdiff_t>(last));
  std::vector<Joined> results;
  std::thread others([&] { results = joinAll(id, early); });
  EXPECT_TRUE(
      eventually(kDeadlineMs / 2, [&] { return connectionsAt(id) > 0 && areStill({::getpid()}); }));
  Joined late = join(id, parts[last]);
  others.join();
  results.push_back(std::move(late));
  return results;
}

}  // namespace weft::test
