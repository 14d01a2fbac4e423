// SPDX-License-Identifier: Apache-2.0
// The system calls with which the library waits and asks for the time: inside a simulation they ask
// the scheduler, outside of it the system. The linker takes these before libc's, also for libstdc++.
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "tests/simulation/descriptors.h"
#include "tests/simulation/scheduler.h"

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

}  // extern "C"
#pragma GCC visibility pop
