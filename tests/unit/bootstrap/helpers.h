// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
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

// Promised is a second, on a machine that is not busy; deadlines of tests are much later.
inline constexpr std::chrono::seconds kSoon{3};

// Times that keep the tests of failures short.
inline RootOptions quickRoot() {
  RootOptions options;
  options.handshakeMs = 300;
  options.lingerMs = 300;
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

// A port that was free a moment ago.
inline std::uint16_t freePort() {
  net::Socket socket;
  net::Address bound;
  int error = 0;
  EXPECT_TRUE(net::listenAt(loopbackV4(), &socket, &bound, &error).ok());
  return bound.port;
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
  std::int64_t timeoutMs = 10000;
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

// True once `condition` holds, within `ms`.
inline bool eventually(std::int64_t ms, const std::function<bool()>& condition) {
  for (const Deadline deadline = Deadline::in(ms); !deadline.expired();) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

}  // namespace weft::test
