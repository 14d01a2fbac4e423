// SPDX-License-Identifier: Apache-2.0
// The system calls with which the library waits, asks for the time and talks to other hosts: inside
// a simulation they ask that, outside of it the system. The linker takes these before libc's, also
// for libstdc++.
#include <dlfcn.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "tests/simulation/descriptors.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/sockets.h"

namespace weft::simulation {
namespace {

constexpr Time kSecond = 1000 * kMillisecond;

template <class Function>
Function systems(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

Time nanoseconds(const timespec& span) { return span.tv_sec * kSecond + span.tv_nsec; }

long futex(Scheduler& scheduler, const std::uint32_t* word, int operation, std::uint32_t value,
           const timespec* timeout) {
  if (operation == FUTEX_WAKE) {
    scheduler.wake(word);
    return 0;
  }
  if (*word != value) {
    errno = EAGAIN;
    return -1;
  }
  const Time until = timeout ? scheduler.now() + nanoseconds(*timeout) : kNever - kSecond;
  if (scheduler.waitFor(word, until)) return 0;
  errno = ETIMEDOUT;
  return -1;
}

// The sockets of the simulation that runs; null outside of it, and for descriptors of the system.
Sockets* socketsOf(int fd) {
  return Scheduler::running() && fd >= Descriptors::kFirst ? Sockets::running() : nullptr;
}

Epoll* epollOf(int fd) {
  return Scheduler::running() && fd >= Descriptors::kFirst
             ? dynamic_cast<Epoll*>(descriptors().find(fd))
             : nullptr;
}

// Threads are fibers, of which these are the handles.
constexpr pthread_t kFirstThread = 0x77656674;

}  // namespace
}  // namespace weft::simulation

using namespace weft::simulation;

#pragma GCC visibility push(default)
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (Scheduler* const scheduler = Scheduler::running()) {
    *time = {scheduler->now() / kSecond, scheduler->now() % kSecond};
    return 0;
  }
  static const auto real = systems<int (*)(clockid_t, timespec*)>("clock_gettime");
  return real(clock, time);
}

int sched_yield() noexcept {
  if (Scheduler* const scheduler = Scheduler::running()) {
    scheduler->spin();
    return 0;
  }
  static const auto real = systems<int (*)()>("sched_yield");
  return real();
}

// Nobody else wants the cores of a simulation.
int getloadavg(double* load, int samples) noexcept {
  if (Scheduler::running()) {
    *load = 0;
    return 1;
  }
  static const auto real = systems<int (*)(double*, int)>("getloadavg");
  return real(load, samples);
}

int sched_getcpu() noexcept {
  if (Scheduler* const scheduler = Scheduler::running())
    return static_cast<int>(scheduler->random().below(2));
  static const auto real = systems<int (*)()>("sched_getcpu");
  return real();
}

int nanosleep(const timespec* span, timespec* left) {
  if (Scheduler* const scheduler = Scheduler::running()) {
    scheduler->sleepUntil(scheduler->now() + nanoseconds(*span));
    return 0;
  }
  static const auto real = systems<int (*)(const timespec*, timespec*)>("nanosleep");
  return real(span, left);
}

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  Scheduler* const scheduler = Scheduler::running();
  if (scheduler != nullptr && number == SYS_membarrier) return 0;
  if (scheduler != nullptr && number == SYS_futex)
    return futex(*scheduler, reinterpret_cast<const std::uint32_t*>(a[0]), static_cast<int>(a[1]),
                 static_cast<std::uint32_t>(a[2]), reinterpret_cast<const timespec*>(a[3]));
  static const auto real = systems<long (*)(long, ...)>("syscall");
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int poll(pollfd* entries, nfds_t count, int timeoutMs) {
  if (Scheduler* const scheduler = Scheduler::running())
    return descriptors().poll(*scheduler, {entries, count}, timeoutMs);
  static const auto real = systems<int (*)(pollfd*, nfds_t, int)>("poll");
  return real(entries, count, timeoutMs);
}

int epoll_create1(int flags) noexcept {
  if (Scheduler::running()) return descriptors().add(std::make_shared<Epoll>());
  static const auto real = systems<int (*)(int)>("epoll_create1");
  return real(flags);
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (auto* const set = epollOf(epoll)) {
    if (operation == EPOLL_CTL_DEL)
      set->members.erase(fd);
    else
      set->members[fd] = {static_cast<short>(event->events), event->data.u64};
    Scheduler::running()->wake(&descriptors());
    return 0;
  }
  static const auto real = systems<int (*)(int, int, int, epoll_event*)>("epoll_ctl");
  return real(epoll, operation, fd, event);
}

// Only those that do not wait.
int epoll_wait(int epoll, epoll_event* events, int most, int timeoutMs) {
  if (auto* const set = epollOf(epoll)) {
    int count = 0;
    for (const auto& [fd, ready] : set->ready()) {
      if (count == most) break;
      events[count++] = {static_cast<std::uint32_t>(ready), {.u64 = set->members[fd].data}};
    }
    return count;
  }
  static const auto real = systems<int (*)(int, epoll_event*, int, int)>("epoll_wait");
  return real(epoll, events, most, timeoutMs);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  if (Scheduler* const scheduler = Scheduler::running()) {
    *thread = kFirstThread + scheduler->spawn([run, argument] { run(argument); });
    return 0;
  }
  static const auto real =
      systems<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          "pthread_create");
  return real(thread, attributes, run, argument);
}

// Only those that have ended are joined.
int pthread_join(pthread_t thread, void** result) {
  if (thread >= kFirstThread && thread < kFirstThread + 1000) return 0;
  static const auto real = systems<int (*)(pthread_t, void**)>("pthread_join");
  return real(thread, result);
}

int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  if (Scheduler::running()) return 0;
  static const auto real = systems<int (*)(pthread_t, const char*)>("pthread_setname_np");
  return real(thread, name);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (Scheduler* const scheduler = Scheduler::running()) {
    pthread_mutex_unlock(mutex);
    const bool woken = scheduler->waitFor(condition, nanoseconds(*until));
    pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
  }
  static const auto real =
      systems<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>(
          "pthread_cond_clockwait");
  return real(condition, mutex, clock, until);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (Scheduler* const scheduler = Scheduler::running()) {
    scheduler->wake(condition);
    return 0;
  }
  static const auto real = systems<int (*)(pthread_cond_t*)>("pthread_cond_broadcast");
  return real(condition);
}

int eventfd(unsigned count, int flags) noexcept {
  if (Scheduler::running()) {
    return descriptors().add(std::make_shared<EventCounter>());
  }
  static const auto real = systems<int (*)(unsigned, int)>("eventfd");
  return real(count, flags);
}

ssize_t write(int fd, const void* bytes, std::size_t size) {
  if (Scheduler::running() && fd >= Descriptors::kFirst) {
    if (auto* const counter = dynamic_cast<EventCounter*>(descriptors().find(fd))) ++counter->count;
    Scheduler::running()->wake(&descriptors());
    return static_cast<ssize_t>(size);
  }
  static const auto real = systems<ssize_t (*)(int, const void*, std::size_t)>("write");
  return real(fd, bytes, size);
}

ssize_t read(int fd, void* bytes, std::size_t size) {
  if (Scheduler::running() && fd >= Descriptors::kFirst) {
    auto* const counter = dynamic_cast<EventCounter*>(descriptors().find(fd));
    if (counter != nullptr) counter->count = 0;
    return static_cast<ssize_t>(size);
  }
  static const auto real = systems<ssize_t (*)(int, void*, std::size_t)>("read");
  return real(fd, bytes, size);
}

int close(int fd) {
  if (fd >= Descriptors::kFirst) {
    if (Sockets* const sockets = socketsOf(fd)) sockets->close(fd);
    return 0;
  }
  static const auto real = systems<int (*)(int)>("close");
  return real(fd);
}

int socket(int domain, int type, int protocol) noexcept {
  if (Scheduler::running()) return Sockets::running()->socket();
  static const auto real = systems<int (*)(int, int, int)>("socket");
  return real(domain, type, protocol);
}

int connect(int fd, const sockaddr* address, socklen_t size) {
  if (Sockets* const sockets = socketsOf(fd))
    return sockets->connect(fd, ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port));
  static const auto real = systems<int (*)(int, const sockaddr*, socklen_t)>("connect");
  return real(fd, address, size);
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (Sockets* const sockets = socketsOf(fd)) {
    address->sa_family = AF_INET;
    return sockets->accept(fd);
  }
  static const auto real = systems<int (*)(int, sockaddr*, socklen_t*, int)>("accept4");
  return real(fd, address, size, flags);
}

ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
  if (Sockets* const sockets = socketsOf(fd))
    return sockets->send(fd, {static_cast<const std::byte*>(bytes), size});
  static const auto real = systems<ssize_t (*)(int, const void*, std::size_t, int)>("send");
  return real(fd, bytes, size, flags);
}

ssize_t recv(int fd, void* bytes, std::size_t size, int flags) {
  if (Sockets* const sockets = socketsOf(fd))
    return sockets->receive(fd, {static_cast<std::byte*>(bytes), size});
  static const auto real = systems<ssize_t (*)(int, void*, std::size_t, int)>("recv");
  return real(fd, bytes, size, flags);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  if (socketsOf(fd)) return 0;
  static const auto real = systems<int (*)(int, int, int, const void*, socklen_t)>("setsockopt");
  return real(fd, level, name, value, size);
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  if (Sockets* const sockets = socketsOf(fd)) {
    std::memset(value, 0, *size);  // SO_ERROR: none
    if (level == IPPROTO_TCP && name == TCP_INFO)
      static_cast<tcp_info*>(value)->tcpi_last_ack_recv =
          static_cast<std::uint32_t>(sockets->silenceOf(fd) / kMillisecond);
    return 0;
  }
  static const auto real = systems<int (*)(int, int, int, void*, socklen_t*)>("getsockopt");
  return real(fd, level, name, value, size);
}

}  // extern "C"
#pragma GCC visibility pop
