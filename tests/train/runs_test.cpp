// SPDX-License-Identifier: Apache-2.0
// Whole runs of weft-train with a small model.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/train/temporary_folder.h"

namespace weft::train {
namespace {

// A text with something to learn.
std::string someText() {
  std::string text;
  for (int i = 0; text.size() < 20000; ++i) {
    text += fmt::format("The square of {} is {}, and its cube is {}.\n", i, i * i, i * i * i);
  }
  return text;
}

struct Outcome {
  int code;
  std::string output;  // stdout and stderr
};

Outcome shell(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string output;
  char chunk[4096];
  while (const size_t n = std::fread(chunk, 1, sizeof chunk, pipe)) output.append(chunk, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), output};
}

struct Curve {
  std::vector<double> losses, norms;
  std::string weights;  // fingerprint of the final ones
};

class Runs : public testing::Test {
 protected:
  Runs() { folder_.write("text", someText()); }

  std::string command(const std::string& flags) const {
    return fmt::format(
        "{} --data {} --layers 2 --hidden 32 --heads 2 --seq 32 --warmup 5 --threads 1 "
        "--bucket-mb 0.02 --quiet {}",
        WEFT_TRAIN, folder_.path("text"), flags);
  }

  Curve train(const std::string& flags) const {
    const Outcome outcome = shell(command(
        fmt::format("--csv {} --json {} {}", folder_.path("csv"), folder_.path("json"), flags)));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
    return readCurve();
  }

  Curve readCurve() const {
    Curve curve;
    std::ifstream csv(folder_.path("csv"));
    std::string line;
    std::getline(csv, line);
    EXPECT_EQ(line, "step,loss,grad_norm,lr,tokens_per_s,step_ms,exposed_ms");
    while (std::getline(csv, line)) {
      double step = 0, loss = 0, norm = 0;
      EXPECT_EQ(std::sscanf(line.c_str(), "%lf,%lf,%lf", &step, &loss, &norm), 3) << line;
      EXPECT_EQ(step, static_cast<double>(curve.losses.size()));
      curve.losses.push_back(loss);
      curve.norms.push_back(norm);
    }
    std::ifstream json(folder_.path("json"));
    if (json) curve.weights = nlohmann::json::parse(json).at("weights");
    return curve;
  }

  TemporaryFolder folder_;
};

// The largest relative difference of two curves.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(a[i]));
  }
  return largest;
}

TEST_F(Runs, TwoRanksLearnWhatOneDoesWithTwiceTheBatch) {
  const Curve one = train("--steps 40 --batch 8");
  const Curve two = train("--steps 40 --batch 4 --ranks 2");
  ASSERT_EQ(one.losses.size(), 40u);
  EXPECT_LT(one.losses.back(), one.losses.front() - 1.5);
  EXPECT_LT(distance(one.losses, two.losses), 1e-4);
  EXPECT_LT(distance(one.norms, two.norms), 2e-3);
  EXPECT_LT(std::abs(one.losses[0] - two.losses[0]), 2e-6);  // before rounding could add up
}

TEST_F(Runs, TheSameSeedGivesTheSameBits) {
  const std::string flags = "--steps 12 --batch 4 --ranks 2 --seed 5";
  const Curve first = train(flags), again = train(flags),
              notOverlapped = train(flags + " --no-overlap");
  EXPECT_EQ(first.losses, again.losses);
  EXPECT_EQ(first.norms, again.norms);
  EXPECT_EQ(first.weights, again.weights);
  EXPECT_EQ(first.weights, notOverlapped.weights);
  EXPECT_NE(first.weights, train("--steps 12 --batch 4 --ranks 2 --seed 6").weights);
}

TEST_F(Runs, AccumulatedBatchesAreOneBatch) {
  const Curve whole = train("--steps 10 --batch 4 --ranks 2");
  const Curve parts = train("--steps 10 --batch 2 --accumulate 2 --ranks 2");
  EXPECT_LT(distance(whole.losses, parts.losses), 1e-4);
  EXPECT_LT(distance(whole.norms, parts.norms), 2e-3);
}

TEST_F(Runs, Bfloat16FollowsAtADistanceAndRepeatsItsBits) {
  const Curve fp32 = train("--steps 30 --batch 4 --ranks 2");
  const std::string flags = "--steps 30 --batch 4 --ranks 2 --dtype bf16 --wire bf16";
  const Curve bf16 = train(flags), again = train(flags);
  EXPECT_LT(distance(fp32.losses, bf16.losses), 0.02);
  EXPECT_EQ(bf16.losses, again.losses);
  EXPECT_EQ(bf16.weights, again.weights);
}

TEST_F(Runs, ALossThatIsNotFiniteNamesRankAndStep) {
  const Outcome outcome =
      shell(command("--steps 100 --batch 4 --ranks 2 --lr 1e30 --warmup 0 --clip 0"));
  EXPECT_EQ(outcome.code, 65);
  EXPECT_NE(outcome.output.find("the loss of rank 0 is "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(" at step "), std::string::npos) << outcome.output;
}

TEST_F(Runs, BadInputIsOneSentence) {
  const struct {
    std::string flags;
    int code;
    std::string text;
  } cases[] = {
      {"--ranks 2 --data /nowhere", 65,
       "weft-train: cannot read /nowhere: No such file or directory\n"},
      {"--ranks 2 --seq 30000", 65, "needs at least 30001\n"},
      {"--ranks 2 --heads 5", 64, "weft-train: --heads 5 does not divide --hidden 32\n"},
      {"--csv /nowhere/curve --steps 1", 78,
       "cannot write /nowhere/curve: No such file or directory\n"},
      {"--ranks 0", 64, ""},
  };
  for (const auto& [flags, code, text] : cases) {
    const Outcome outcome = shell(command(flags));
    EXPECT_EQ(outcome.code, code) << flags;
    EXPECT_NE(outcome.output.find(text), std::string::npos) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
}

TEST_F(Runs, ALostRankIsAnErrorWorthARetry) {
  // Rank 1 is killed once the curve shows that training goes on.
  const std::string csv = folder_.write("csv", "");
  const Outcome outcome = shell(fmt::format(
      "{{ {} & launcher=$!; while kill -0 $launcher && [ $(cat {} | wc -l) -lt 5 ]; do sleep 0.05; "
      "done; "
      "read rank0 rank1 < /proc/$launcher/task/$launcher/children; kill -9 $rank1; wait $launcher; "
      "}}",
      command(fmt::format("--steps 1000000 --batch 2 --ranks 2 --csv {}", csv)), csv));
  EXPECT_EQ(outcome.code, 128 + 9) << outcome.output;
  EXPECT_NE(outcome.output.find("weft-train: rank 0: "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 1 (pid "), std::string::npos) << outcome.output;
}

TEST_F(Runs, TheScalingTableHasARowForEachNumberOfRanks) {
  const Outcome outcome = shell(command("--scaling 1,2 --scaling-seconds 0.5 --batch 2"));
  EXPECT_EQ(outcome.code, 0);
  std::istringstream lines(outcome.output);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), 3u) << outcome.output;
  for (int row : {1, 2}) {
    int ranks = 0;
    double total = 0, perRank = 0, efficiency = 0, independent = 0, communication = 0, exposed = -1;
    ASSERT_EQ(
        std::sscanf(rows[static_cast<size_t>(row)].c_str(), "%d %lf %lf %lf %% %lf %lf %% %lf",
                    &ranks, &total, &perRank, &efficiency, &independent, &communication, &exposed),
        7)
        << rows[static_cast<size_t>(row)];
    EXPECT_EQ(ranks, row);
    EXPECT_NEAR(perRank * ranks, total, 0.02 * total);
    EXPECT_NEAR(communication, 100 * total / independent, 0.2);
    EXPECT_GE(exposed, 0);
  }
}

}  // namespace
}  // namespace weft::train
