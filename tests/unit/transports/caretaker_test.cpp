// SPDX-License-Identifier: Apache-2.0
#include "transports/wire/caretaker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/deadline.h"

namespace weft {
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

TEST(Caretaker, LooksOnlyWhileTheApplicationIsAway) {
  Shared shared;
  Caretaker caretaker([&] { return shared.look(); });
  const Deadline deadline = Deadline::in(20000);
  for (int call = 0; (call < 100 || shared.looks == 0) && !deadline.expired(); ++call) {
    caretaker.attend();
    shared.inCall = true;
    std::this_thread::sleep_for(milliseconds(call % 3));
    shared.inCall = false;
    caretaker.leave();
    std::this_thread::sleep_for(milliseconds(call % 11));
    caretaker.attend();
  }
  EXPECT_GT(shared.looks, 0);
}

TEST(Caretaker, EndsWhenAsked) {
  Shared shared;
  Caretaker caretaker([&] { return shared.look(); });
  caretaker.leave();
  std::this_thread::sleep_for(milliseconds(5));
  caretaker.stop();
  shared.inCall = true;
  const int looks = shared.looks;
  std::this_thread::sleep_for(milliseconds(40));
  EXPECT_EQ(shared.looks, looks);
}

TEST(Caretaker, OfATransportThatWasNeverLeftHasNoThread) {
  Shared shared;
  Caretaker caretaker([&] { return shared.look(); });
  caretaker.attend();
  shared.inCall = true;
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(shared.looks, 0);
}

}  // namespace
}  // namespace weft
