// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "tests/simulation/descriptors.h"

namespace weft::simulation {

// One end of a TCP connection between two simulated processes.
struct Endpoint final : Descriptor {
  short events() const override;

  std::uint32_t process = 0;
  std::weak_ptr<Endpoint> peer;
  std::deque<std::byte> inbox;  // received, not yet read
  std::size_t inFlight = 0;     // sent, not yet received
  Time lastArrival = 0;
  bool connected = false;
  bool ended = false;  // the peer sends nothing more
  bool closed = false;
  int error = 0;
};

// eventfd(2).
struct EventCounter final : Descriptor {
  short events() const override { return count != 0 ? POLLIN : short{0}; }
  std::uint64_t count = 0;
};

// epoll(7), level-triggered.
struct Epoll final : Descriptor {
  struct Member {
    short events = 0;
    std::uint64_t data = 0;
  };
  short events() const override { return ready().empty() ? short{0} : POLLIN; }
  std::map<int, short> ready() const;
  std::map<int, Member> members;
};

// Connections that nobody has accepted yet.
struct Listener final : Descriptor {
  short events() const override { return waiting.empty() ? short{0} : POLLIN; }
  std::uint32_t process = 0;
  std::uint16_t port = 0;
  std::deque<std::shared_ptr<Endpoint>> waiting;
};

// TCP between simulated processes: what is sent arrives in order on one connection, in pieces that
// the seed decides, and with delays that differ between connections.
class Sockets {
 public:
  static constexpr int kSilenceMs = 3000;  // as control/link_socket.cpp asks for

  explicit Sockets(Scheduler& scheduler, std::uint32_t processes);
  ~Sockets();
  static Sockets* running();  // null: there is no simulation that has some

  // ---- system calls, of the process whose fiber runs; -1 and errno ----
  int socket();
  int listen(std::uint16_t port);
  int connect(int fd, std::uint16_t port);
  int accept(int fd);
  ssize_t send(int fd, std::span<const std::byte> bytes);
  ssize_t receive(int fd, std::span<std::byte> bytes);
  void close(int fd);

  // ---- what is done to them ----
  // From now on nothing comes from one to the other, which both notice after seconds.
  void cut(std::uint32_t from, std::uint32_t to);
  // The process has ended; the kernel closes what it had.
  void endProcess(std::uint32_t process);
  // After the end of a simulation: all that it still does fails, so that it ends.
  void dismiss(std::uint32_t process);
  // How long nothing has come from there, or 0.
  Time silenceOf(int fd) const;

 private:
  Endpoint* find(int fd) const;
  Time delay();
  bool isCut(std::uint32_t from, std::uint32_t to) const {
    return cutSince_[from * processes_ + to] != 0;
  }
  void deliver(const std::shared_ptr<Endpoint>& to, std::size_t bytes,
               const std::shared_ptr<std::vector<std::byte>>& data);
  void shut(const std::shared_ptr<Endpoint>& end);
  void fail(const std::shared_ptr<Endpoint>& end, int error);
  void noteChange() { scheduler_.wake(&descriptors()); }

  Scheduler& scheduler_;
  const std::uint32_t processes_;
  std::vector<std::shared_ptr<Endpoint>> ends_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::vector<Time> cutSince_;
};

}  // namespace weft::simulation
