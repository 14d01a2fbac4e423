// SPDX-License-Identifier: Apache-2.0
// Threads that read variables while a library is being started, which writes some.
#include "base/environment.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "scoped_env.h"

namespace weft::inline base {
namespace {

TEST(Environment, NotSetIsEmpty) {
  const test::ScopedEnv none("WEFT_TEST_NOT_SET", nullptr);
  EXPECT_EQ(environment("WEFT_TEST_NOT_SET"), "");
  const test::ScopedEnv some("WEFT_TEST_SET", "7");
  EXPECT_EQ(environment("WEFT_TEST_SET"), "7");
}

TEST(Environment, IsNotReadWhileSomebodyWrites) {
  std::atomic<bool> hasRead = false;
  std::thread reader;
  {
    const WritingEnvironment writing;
    reader = std::thread([&] {
      (void)environment("WEFT_TEST_SET");
      hasRead = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(hasRead);
  }
  reader.join();
  EXPECT_TRUE(hasRead);
}

}  // namespace
}  // namespace weft::inline base
