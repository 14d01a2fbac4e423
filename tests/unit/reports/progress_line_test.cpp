// SPDX-License-Identifier: Apache-2.0
#include "tools/train/reports/progress_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/train/reports/model_flops.h"
#include "tools/train/reports/words.h"

namespace weft::train {
namespace {

const Progress kHalf{50, 200, 3723, 2.5, 12.25, 15680, 0.01234, 0.1239};

TEST(ProgressLine, SaysMoreWhereThereIsRoom) {
  EXPECT_EQ(progressText(kHalf, 200),
            "50 of 200 steps (25 %), 1:02:03 left, loss 2.5000, 15.68k tokens/s, 12.25 samples/s, "
            "0.0123 TFLOP/s, MFU 12.4 %");
  Progress noPeak = kHalf;
  noPeak.utilization.reset();
  EXPECT_TRUE(progressText(noPeak, 200).ends_with("0.0123 TFLOP/s"));
  Progress fp16 = kHalf;
  fp16.scaling = {65536, 3};
  EXPECT_EQ(progressText(fp16, 75),
            "50 of 200 steps (25 %), 1:02:03 left, loss 2.5000, scale 65536, 3 skipped");
  EXPECT_EQ(progressText(kHalf, 50), "50 of 200 steps (25 %), 1:02:03 left, loss 2.5000");
  EXPECT_EQ(progressText(kHalf, 49), "50 of 200 steps (25 %), 1:02:03 left")
      << "the last column stays free";
  EXPECT_EQ(progressText(kHalf, 3), "");
}

// What is written to a terminal of so many columns, and what to a pipe.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::grantpt(master_);
    ::unlockpt(master_);
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    const winsize size{24, columns, 0, 0};
    ::ioctl(slave_, TIOCSWINSZ, &size);
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(slave_);
    ::close(master_);
  }

  int descriptor() const { return slave_; }
  std::string written() const {
    char text[1024];
    const ssize_t size = ::read(master_, text, sizeof text);
    return {text, static_cast<size_t>(size > 0 ? size : 0)};
  }

 private:
  int master_, slave_ = -1;
};

TEST(ProgressLine, IsRedrawnInPlaceAndLeavesNothing) {
  const Terminal terminal(40);
  {
    ProgressLine line(true, terminal.descriptor());
    line.show(kHalf);
    EXPECT_EQ(terminal.written(), "\r\x1b[K50 of 200 steps (25 %), 1:02:03 left");
    line.show(kHalf);
    EXPECT_EQ(terminal.written(), "") << "not again at once";
    line.clear();
    EXPECT_EQ(terminal.written(), "\r\x1b[K");
    line.clear();
    EXPECT_EQ(terminal.written(), "");
    line.show(kHalf);
    EXPECT_NE(terminal.written(), "") << "at once after something else was printed";
  }
  EXPECT_EQ(terminal.written(), "\r\x1b[K");
  ProgressLine(false, terminal.descriptor()).show(kHalf);
  EXPECT_EQ(terminal.written(), "");
}

TEST(ProgressLine, APipeGetsNothing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  ProgressLine(true, ends[1]).show(kHalf);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), -1);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ProgressLine, ExpectsWhatTheStepsTookSoFar) {
  RunRecord run;
  run.sequencesPerStep = 8;
  run.tokensPerStep = 256;
  run.flopsPerToken = 1e9;
  run.steps = {{100, 5, 1, 1e-3, 9, 0, 9}};
  EXPECT_EQ(progressOf(run, 200, 0).secondsLeft, 99 * 9) << "there is nothing else to go by";
  for (int i = 1; i <= 20; ++i)
    run.steps.push_back({100 + i, 4, 1, 1e-3, i < 11 ? 1.0 : 0.5, 0, 9 + 2.0 * i});
  const Progress progress = progressOf(run, 200, 0);
  EXPECT_EQ(progress.done, 121);
  EXPECT_EQ(progress.secondsLeft, 79 * 2) << "with evaluations, without the first step";
  EXPECT_EQ(progress.samplesPerSecond, 16) << "of the last ten";
  EXPECT_EQ(progress.tokensPerSecond, 512);
  EXPECT_EQ(progress.teraflops, 0.512);
  EXPECT_FALSE(progress.utilization);
  run.peakTeraflops = 0.64;
  EXPECT_DOUBLE_EQ(*progressOf(run, 200, 0).utilization, 0.8);
  EXPECT_EQ(progressOf(run, 200, 60).secondsLeft, 11) << "--seconds comes first";
}

TEST(Words, DurationsAndQuantities) {
  EXPECT_EQ(durationText(0.4), "0:00");
  EXPECT_EQ(durationText(59.6), "1:00");
  EXPECT_EQ(durationText(754), "12:34");
  EXPECT_EQ(durationText(25 * 3600), "1 d 01:00 h");
  EXPECT_EQ(quantityText(9999), "9999");
  EXPECT_EQ(quantityText(10102387), "10.1M");
  EXPECT_EQ(quantityText(-15680), "-15.68k");
  EXPECT_EQ(quantityText(1.5e-5), "1.5e-05");
  EXPECT_EQ(quantityText(0), "0");
  EXPECT_EQ(nowText().size(), 16u);
}

// The published jobs at 6 for each parameter, and with attention: TFLOP/s of each of 128 workers.
TEST(ModelFlops, AreThoseOfThePublishedJobs) {
  const ModelShape neox = namedShape("neox-20b"), pythia = namedShape("pythia-6.9b");
  EXPECT_EQ(flopsPerToken(neox, 2048), 6.0 * 20554567680 + 12.0 * 44 * 6144 * 2048);
  EXPECT_EQ(flopsPerToken(neox, 0), 6.0 * 20554567680);
  EXPECT_NEAR(13.60 * 2048 * flopsPerToken(neox, 0) / 128 / 1e12, 26.8, 0.05);
  EXPECT_NEAR(13.60 * 2048 * flopsPerToken(neox, 2048) / 128 / 1e12, 28.3, 0.05);
  EXPECT_NEAR(10.4 * 2048 * flopsPerToken(pythia, 0) / 32 / 1e12, 27.4, 0.05);
  RunRecord run;
  run.ranks = 128;
  run.flopsPerToken = flopsPerToken(neox, 0);
  run.peakTeraflops = 95;
  EXPECT_NEAR(run.utilization(13.60 * 2048), 0.28, 0.005);
}

}  // namespace
}  // namespace weft::train
