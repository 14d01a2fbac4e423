// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "base/no_fork.h"
#include "base/status.h"
#include "net/socket.h"

namespace weft::net {

// Tells a service's thread to end. raise() may be called by any thread, the rest by the service's
// own.
class StopSignal {
 public:
  StopSignal();
  void raise();
  bool raised() const { return raised_; }
  int fd() const { return event_.fd(); }  // becomes readable, for poll(2)
  void close();

 private:
  std::mutex mutex_;  // event_ between raise() and close()
  Socket event_;
  std::atomic<bool> raised_{false};
};

// Threads that serve until their work is done and that nobody waits for, except the end of the
// process (or the unloading of the library): they are stopped and joined then, before the libraries
// that they use are taken down. A forked child has none of them.
class ServiceThreads {
 public:
  static ServiceThreads& get();

  // Runs body on a new thread with all signals blocked. An exception in it ends that service with a
  // log line. Thread-safe.
  Status start(const char* name, std::function<void(const StopSignal&)> body);

  ~ServiceThreads();
  ServiceThreads(const ServiceThreads&) = delete;
  ServiceThreads& operator=(const ServiceThreads&) = delete;

 private:
  struct Service {
    StopSignal stop;
    std::function<void(const StopSignal&)> body;
    std::atomic<bool> finished{false};
    std::thread thread;
    void serve(const char* name);
  };
  using Services = std::list<std::shared_ptr<Service>>;
  ServiceThreads();
  void reap();
  static void inChild();
  void forgetInChild();

  static std::atomic<ServiceThreads*> existing_;
  static const int forkHandler_;
  ForkSafeMutex mutex_;
  Services* services_ = new Services();  // never freed: see forgetInChild()
};

}  // namespace weft::net
