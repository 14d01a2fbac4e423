// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>

namespace weft::inline base {

// While a thread has one, no other thread of the process forks: fork() waits. For short sections
// that a child, which has none of its parent's other threads, would find locked or half made.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

// A mutex that no child inherits locked.
class ForkSafeMutex {
 public:
  void lock();
  void unlock();

 private:
  std::mutex mutex_;
};

// The T of this process, by `make` when it is first asked for. Never destroyed: other threads and
// atexit handlers may use it until the very end.
template <class T, class Make>
[[gnu::noinline]] T& makeProcessWide(std::atomic<T*>& known, Make& make) {
  const NoFork noFork;
  static T& one = *new T(make());
  known.store(&one, std::memory_order_release);
  return one;
}
template <class T, class Make>
T& processWide(Make make) {
  static constinit std::atomic<T*> known{nullptr};
  if (T* const one = known.load(std::memory_order_acquire)) return *one;
  return makeProcessWide(known, make);
}
template <class T>
T& processWide() {
  return processWide<T>([] { return T(); });
}

}  // namespace weft::inline base
