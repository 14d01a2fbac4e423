// SPDX-License-Identifier: Apache-2.0
#include "base/no_fork.h"

#include <pthread.h>

namespace weft::inline base {
namespace {

// Whoever has a NoFork reads, and fork() writes. No thread reads twice, so a fork may come before
// readers that come later.
constexpr pthread_rwlock_t kFree = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
constinit pthread_rwlock_t forkLock = kFree;
constinit thread_local int depth [[gnu::tls_model("initial-exec")]] = 0;

void enter() {
  if (depth++ == 0) ::pthread_rwlock_rdlock(&forkLock);
}

void leave() {
  if (--depth == 0) ::pthread_rwlock_unlock(&forkLock);
}

void beforeFork() {
  if (depth++ == 0) ::pthread_rwlock_wrlock(&forkLock);
}

// The lock knows its writer by a number that the child's thread does not have.
void inChild() {
  ::pthread_rwlock_unlock(&forkLock);
  forkLock = kFree;
  if (--depth != 0) ::pthread_rwlock_rdlock(&forkLock);
}

[[maybe_unused]] const int registered = ::pthread_atfork(beforeFork, leave, inChild);

}  // namespace

NoFork::NoFork() { enter(); }

NoFork::~NoFork() { leave(); }

void ForkSafeMutex::lock() {
  enter();
  mutex_.lock();
}

void ForkSafeMutex::unlock() {
  mutex_.unlock();
  leave();
}

}  // namespace weft::inline base
