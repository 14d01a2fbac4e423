// SPDX-License-Identifier: Apache-2.0
#include "tools/health/baseline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weft::health {
namespace {

Evidence job(double microseconds) {
  Evidence evidence;
  evidence.members = {{"a", 0, 0, 1}, {"b", 1, 0, 2}};
  evidence.ways.resize(4, "wire");
  evidence.pairs = Matrix(2);
  evidence.pairs.at(0, 1) = evidence.pairs.at(1, 0) = {50, 1, 0};
  evidence.collectives.rows = {{"all_reduce", 1 << 20, microseconds, 1, 0, 3}};
  return evidence;
}

class BaselineFile : public testing::Test {
 protected:
  std::string path = (std::filesystem::temp_directory_path() /
                      ("weft-baseline-" + std::to_string(::getpid()) + ".json"))
                         .string();
  void TearDown() override { std::filesystem::remove(path); }
};

TEST_F(BaselineFile, WarnsOfWhatIsSlowerThanEver) {
  for (const double time : {100.0, 110.0, 120.0}) {
    Baseline baseline = Baseline::read(path);
    EXPECT_TRUE(baseline.compare(job(1000)).empty()) << "too few runs to tell";
    baseline.add(job(time));
    baseline.write(path);
  }
  const Baseline baseline = Baseline::read(path);
  EXPECT_TRUE(baseline.compare(job(130)).empty());
  const auto findings = baseline.compare(job(200));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "slower-than-before");
  EXPECT_NE(findings[0].what.find("all_reduce of 1048576 bytes: 200, in 3 earlier runs 110"),
            std::string::npos)
      << findings[0].what;
  Evidence otherShape = job(1000);
  otherShape.members[1] = {"a", 0, 1, 2};
  EXPECT_TRUE(baseline.compare(otherShape).empty());
}

TEST_F(BaselineFile, ForeignAndDamagedFilesAreRefused) {
  for (const char* text :
       {"{}", "hello", "[1,2]", R"({"tool":1,"runs":[]})",
        R"({"tool":"weft-health","runs":[{"shape":1,"figures":{}}]})",
        R"({"tool":"weft-health","runs":[{"shape":"a","figures":{"x":"y"}}]})"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(Baseline::read(path), std::runtime_error) << text;
  }
  constexpr int kDeep = 1'000'000;  // what copies or prints it would end with the stack
  std::ofstream(path) << R"({"tool":"weft-health","runs":[{"shape":"a","figures":{},"x":)"
                      << std::string(kDeep, '[') << std::string(kDeep, ']') << "}]}";
  EXPECT_NO_THROW(Baseline::read(path).write(path));
  std::ofstream(path, std::ios::trunc).flush();
  EXPECT_NO_THROW(Baseline::read(path)) << "an empty file is an empty history";
}

}  // namespace
}  // namespace weft::health
