// SPDX-License-Identifier: Apache-2.0
#include "net/service_threads.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "base/threads.h"
#include "net/crypto.h"

namespace weft::net {
StopSignal::StopSignal() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void StopSignal::raise() {
  raised_ = true;
  const std::lock_guard lock(mutex_);
  if (!event_) return;
  const std::uint64_t one = 1;
  (void)!write(event_.fd(), &one, sizeof one);
}

void StopSignal::close() {
  const std::lock_guard lock(mutex_);
  event_.close();
}

ServiceThreads& ServiceThreads::get() {
  const NoFork noFork;
  static ServiceThreads threads;
  return threads;
}

// libcrypto and the log register what they do at exit when they are first used: that has to be
// before us, so that it happens after us.
ServiceThreads::ServiceThreads() {
  (void)sha256({});
  (void)Log::process();
  existing_ = this;
}

constinit std::atomic<ServiceThreads*> ServiceThreads::existing_{nullptr};
const int ServiceThreads::forkHandler_ = pthread_atfork(nullptr, nullptr, inChild);

void ServiceThreads::inChild() {
  if (ServiceThreads* const threads = existing_) threads->forgetInChild();
}

ServiceThreads::~ServiceThreads() {
  existing_ = nullptr;
  for (const std::shared_ptr<Service>& service : *services_) {
    service->stop.raise();
    service->thread.join();
  }
  services_->clear();
}

// The threads run in the parent only, and were doing anything when the memory was copied: what they
// left here can be neither used nor freed.
void ServiceThreads::forgetInChild() {
  static auto& forgotten = *new std::vector<Services*>();
  forgotten.push_back(services_);
  services_ = new Services();
}

void ServiceThreads::reap() {
  std::erase_if(*services_, [](const std::shared_ptr<Service>& service) {
    if (!service->finished) return false;
    service->thread.join();
    return true;
  });
}

void ServiceThreads::Service::serve(const char* name) {
  pthread_setname_np(pthread_self(), name);
  const Status served = withoutExceptions([&]() -> Status {
    body(stop);
    return {};
  });
  if (!served.ok())
    (void)withoutExceptions([&]() -> Status {
      logError(name, " failed: ", served.text());
      return {};
    });
  // What it holds is given back now, not when the thread is joined.
  body = nullptr;
  stop.close();
  finished = true;
}

Status ServiceThreads::start(const char* name, std::function<void(const StopSignal&)> body) {
  const std::lock_guard lock(mutex_);
  reap();
  const auto service = std::make_shared<Service>();
  service->body = std::move(body);
  services_->push_back(service);  // before there is a thread, which must be kept
  const SignalsBlocked blocked;
  try {
    service->thread = std::thread(&Service::serve, service.get(), name);
  } catch (const std::exception& problem) {
    services_->pop_back();
    return Status::error(Code::SystemError, "cannot start the thread ", name, ": ", problem.what(),
                         ". fix: raise the limit of threads (ulimit -u)");
  }
  return {};
}

}  // namespace weft::net
