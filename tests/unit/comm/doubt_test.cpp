// SPDX-License-Identifier: Apache-2.0
// A calibration that calls contradict is measured anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/threads.h"
#include "comm/create.h"
#include "topology/cores.h"
#include "tune/expectation.h"
#include "tune/machine_file.h"

namespace weft::comm {
namespace {

// No machine is that fast.
tune::Calibration tooGood() {
  tune::Calibration calibration{
      .rounds = 1, .complete = true, .settled = true, .when = std::time(nullptr)};
  calibration.kept[0] = {.cacheBytes = 2 << 20,
                         .sharers = 2,
                         .exchangeNs = 1,
                         .messageNs = 0.1,
                         .handOverNs = 1,
                         .foldNear = 9e4,
                         .load = tune::flat(9e4),
                         .copy = tune::flat(9e4),
                         .put = tune::flat(9e4),
                         .take = tune::flat(9e4),
                         .stream = tune::flat(9e4),
                         .cmaPut = {},
                         .cmaTake = {}};
  return calibration;
}

// Two ranks make so many all-reduces; how rank 0 knows its machine.
std::string explainedAfter(std::uint32_t calls) {
  std::vector<std::shared_ptr<Communicator>> comms;
  const Status made = createAll(2, CommConfig(), &comms);
  if (!made.ok()) return made.text();
  plan::Call call;
  call.type = reduce::DType::F32;
  call.count = 1;
  const Status status = onThreads(2, [&](std::size_t r) -> Status {
    const float mine = 1;
    float sum = 0;
    for (std::uint32_t i = 0; i < calls; ++i)
      WEFT_TRY(comms[r]->run(call, &mine, &sum, nullptr, 60000, nullptr));
    return {};
  });
  return status.ok() ? comms[0]->explainMachine() : status.text();
}

[[noreturn]] void callAndExplainTwice(const std::string& file) {
  setenv("WEFT_TUNE_FILE", file.c_str(), 1);
  const std::string before =
      explainedAfter(2 * tune::Expectation::kEvery * tune::Expectation::kTimed);
  std::cerr << before << "\nthen " << explainedAfter(0) << '\n';
  std::exit(0);
}

// In a process of its own, which knows nothing of this machine yet.
TEST(Doubt, OfAMachineThatIsSlowerThanItsFileSays) {
  if (topology::usableCores(topology::allowedCores()) < 2)
    GTEST_SKIP() << "the model expects nothing of ranks that share a core";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string folder = testing::TempDir() + "weft-doubt", file = folder + "/machine";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(tune::saveCalibration(file, tune::machineKey(), tooGood()));
  EXPECT_EXIT(callAndExplainTwice(file), testing::ExitedWithCode(0),
              "its file: measured .* UTC, one round, settled(.|\n)*then (.|\n)*anew "
              "because calls did not take what it said");
  tune::Calibration kept;
  ASSERT_TRUE(tune::loadCalibration(file, tune::machineKey(), &kept));
  EXPECT_EQ(kept.doubts, 1u);
  EXPECT_GT(kept.rounds, 0u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft::comm
