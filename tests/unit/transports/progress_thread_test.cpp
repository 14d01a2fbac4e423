// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/progress_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <thread>

#include "base/deadline.h"

namespace weft::transport {
namespace {

using std::chrono::milliseconds;

// What progress and the application both use, in turn: not atomic, so that the sanitizer sees it
// if they ever do so at once.
struct Shared {
  bool inCall = false;
  int looks = 0;

  bool look() {
    EXPECT_FALSE(inCall);
    ++looks;
    return looks % 3 == 0;
  }
};

TEST(ProgressThread, LooksOnlyWhileTheApplicationIsAway) {
  Shared shared;
  wire::ProgressThread progressThread([&] { return shared.look(); });
  const Deadline deadline = Deadline::in(20000);
  for (int call = 0; (call < 100 || shared.looks == 0) && !deadline.expired(); ++call) {
    progressThread.acquireProgress();
    shared.inCall = true;
    std::this_thread::sleep_for(milliseconds(call % 3));
    shared.inCall = false;
    progressThread.releaseProgress();
    std::this_thread::sleep_for(milliseconds(call % 11));
    progressThread.acquireProgress();
  }
  EXPECT_GT(shared.looks, 0);
}

TEST(ProgressThread, EndsWhenAsked) {
  Shared shared;
  wire::ProgressThread progressThread([&] { return shared.look(); });
  progressThread.releaseProgress();
  std::this_thread::sleep_for(milliseconds(5));
  progressThread.stop();
  shared.inCall = true;
  const int looks = shared.looks;
  std::this_thread::sleep_for(milliseconds(40));
  EXPECT_EQ(shared.looks, looks);
}

TEST(ProgressThread, OfATransportThatWasNeverLeftHasNoThread) {
  Shared shared;
  wire::ProgressThread progressThread([&] { return shared.look(); });
  progressThread.acquireProgress();
  shared.inCall = true;
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(shared.looks, 0);
}

// As where the limit of memory or of threads is reached: no stack is so long.
TEST(ProgressThread, WithoutOneTheApplicationIsWarnedAndGoesOn) {
  pthread_attr_t usual, endless;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&endless), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&endless, std::size_t{1} << 50), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&endless), 0);
  Shared shared;
  testing::internal::CaptureStderr();
  wire::ProgressThread progressThread([&] { return shared.look(); });
  progressThread.acquireProgress();
  progressThread.releaseProgress();
  const std::string warned = testing::internal::GetCapturedStderr();
  EXPECT_EQ(::pthread_setattr_default_np(&usual), 0);
  EXPECT_NE(warned.find("no thread for progress between calls ("), std::string::npos) << warned;
  EXPECT_NE(warned.find("fix: raise the limit of threads"), std::string::npos) << warned;
  progressThread.acquireProgress();
  EXPECT_EQ(shared.looks, 0);
  progressThread.releaseProgress();
}

}  // namespace
}  // namespace weft::transport
