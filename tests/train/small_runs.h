// SPDX-License-Identifier: Apache-2.0
// Whole runs of weft-train with a small model, on a text of their own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/command.h"
#include "tests/temporary_folder.h"
#include "tests/train/curve.h"

namespace weft::train {

// A text with something to learn.
inline std::string someText() {
  std::string text;
  for (int i = 0; text.size() < 20000; ++i) {
    text += fmt::format("The square of {} is {}, and its cube is {}.\n", i, i * i, i * i * i);
  }
  return text;
}

using test::Outcome;
using test::TemporaryFolder;

// Standard output and error.
inline Outcome shell(const std::string& command) { return test::runCommand(command + " 2>&1"); }

// Without an option and its value, which is not the last of the line.
inline std::string without(const std::string& option, std::string line) {
  const size_t at = line.find(" --" + option + " ");
  return line.erase(at, line.find(" --", at + 1) - at);
}

class SmallRuns : public testing::Test {
 protected:
  SmallRuns() { folder_.write("text", someText()); }

  std::string command(const std::string& flags) const {
    const std::string line = fmt::format(
        "{} --data {} --layers 2 --hidden 32 --heads 2 --seq 32 --warmup 5 --threads 1 "
        "--bucket-mb 0.02 --quiet {}",
        WEFT_TRAIN, folder_ / "text", flags);
    return flags.find("--megatron ") == std::string::npos ? line : without("data", line);
  }

  Curve train(const std::string& flags) const {
    const Outcome outcome = shell(
        command(fmt::format("--csv {} --json {} {}", folder_ / "csv", folder_ / "json", flags)));
    EXPECT_EQ(outcome.exitCode, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
    return readCurve();
  }

  Curve readCurve() const {
    Curve curve;
    std::ifstream csv(folder_ / "csv");
    std::string line;
    std::getline(csv, line);
    EXPECT_EQ(line.rfind("step,loss,grad_norm,lr,tokens_per_s,step_ms,exposed_ms,wire_bytes", 0), 0)
        << line;
    while (std::getline(csv, line)) {
      double step = 0, loss = 0, norm = 0;
      EXPECT_EQ(std::sscanf(line.c_str(), "%lf,%lf,%lf", &step, &loss, &norm), 3) << line;
      EXPECT_EQ(step, static_cast<double>(curve.losses.size()));
      curve.losses.push_back(loss);
      curve.norms.push_back(norm);
    }
    std::ifstream json(folder_ / "json");
    if (json) curve.weights = nlohmann::json::parse(json).at("weights");
    return curve;
  }

  TemporaryFolder folder_;
};

}  // namespace weft::train
