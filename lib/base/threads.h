// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/mark.h"
#include "base/status.h"
#include "base/text.h"

namespace weft::inline base {

// The application's signals are the application's: threads that start meanwhile take none.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Made while there is memory, and never destroyed.
inline const Status& outOfMemory = *new Status(Status::error(
    Code::OutOfMemory, "out of memory; fix: raise the limit of memory (ulimit -v, cgroup)"));

// The exception that is being handled. Its sentence may find no memory, either.
inline Status statusOfException() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return outOfMemory;
    } catch (const std::system_error& e) {
      return Status::error(Code::SystemError, e.what(),
                           "; fix: raise the limits of threads (ulimit -u) and memory (ulimit -v)");
    } catch (const std::exception& e) {
      return Status::error(Code::InternalError, "unexpected: ", e.what());
    }
  } catch (const std::bad_alloc&) {
    return outOfMemory;
  } catch (...) {
    return Status::error(Code::InternalError, "unexpected: an exception of no known type");
  }
}

// What `body` returns, or its exception as a status.
template <class Body>
Status withoutExceptions(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return statusOfException();
  }
}

// For a step before which nothing can tell other ranks of an error, while they wait for this one:
// without memory, or a file or thread, it is tried again, once.
template <class Body>
Status tryingTwice(Body&& body) {
  const Status first = withoutExceptions(body);
  const bool lacking = first.code() == Code::OutOfMemory || first.code() == Code::SystemError;
  return lacking && WEFT_MARK("tried again") ? body() : first;
}

// Runs body(0) ... body(n - 1) side by side, each on a thread of its own, and waits for them; the
// first error in that order. Bodies may wait for each other, so none starts unless all threads can
// be had.
inline Status onThreads(std::size_t n, const std::function<Status(std::size_t)>& body) {
  std::vector<Status> results(n);
  std::promise<bool> complete;
  const std::shared_future<bool> start = complete.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(n);
  const Status made = withoutExceptions([&]() -> Status {
    for (std::size_t i = 0; i < n; ++i) {
      threads.emplace_back([&, i] {
        if (start.get()) results[i] = withoutExceptions([&] { return body(i); });
      });
    }
    return {};
  });
  complete.set_value(made.ok());
  for (std::thread& t : threads) t.join();
  WEFT_TRY(made);
  for (const Status& s : results) WEFT_TRY(s);
  return {};
}

}  // namespace weft::inline base
