// SPDX-License-Identifier: Apache-2.0
// tests/train/report_test.py reads whole pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tools/train/reports/html.h"
#include "tools/train/reports/run_charts.h"
#include "tools/train/reports/run_page.h"
#include "tools/train/reports/scaling_page.h"

namespace weft::train {
namespace {

const std::string kWrong = "\xef\xbf\xbd";

TEST(Html, TextsAreEscapedWhateverTheyHold) {
  EXPECT_EQ(escaped("<a href=\"x\" b='y'>&</a>"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;&lt;/a&gt;");
  EXPECT_EQ(escaped("tab\tline\n"), "tab\tline\n");
  EXPECT_EQ(escaped(std::string("\0\x1b[31m\x7f", 7)), kWrong + kWrong + "[31m\x7f");
  for (const char* good : {"\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x8c\x8d", "\xef\xbf\xbd"})
    EXPECT_EQ(escaped(good), good);
  EXPECT_EQ(escaped("\xc0\xaf"), kWrong + kWrong) << "too long a form";
  EXPECT_EQ(escaped("\xe0\x80\x80"), kWrong + kWrong + kWrong);
  EXPECT_EQ(escaped("\xed\xa0\x80"), kWrong + kWrong + kWrong) << "half of a pair";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), kWrong + kWrong + kWrong + kWrong) << "past the end";
  EXPECT_EQ(escaped("\xef\xbf\xbf"), kWrong + kWrong + kWrong) << "no character of XML";
  EXPECT_EQ(escaped("\xe6\x97"), kWrong + kWrong) << "cut off";
  EXPECT_EQ(escaped("\xff<"), kWrong + "&lt;");
}

RunRecord someRun(int steps) {
  RunRecord run;
  run.tokensPerStep = 1024;
  for (int i = 0; i < steps; ++i) run.steps.push_back({i + 5, 3, 1, 1e-3, 0.5, 0.01, 0.5 * i});
  return run;
}

size_t pointsOf(const std::string& html) {
  const size_t first = html.find(" points=\""), last = html.find("\"/>", first);
  return static_cast<size_t>(std::count(html.begin() + static_cast<std::ptrdiff_t>(first),
                                        html.begin() + static_cast<std::ptrdiff_t>(last), ','));
}

TEST(RunCharts, ManyStepsAreMeansOfSeveral) {
  EXPECT_EQ(pointsOf(chartsOfLearning(someRun(100), {}, 100)), 100u);
  const std::string means = chartsOfLearning(someRun(101), {}, 100);
  EXPECT_EQ(pointsOf(means), 51u);
  EXPECT_NE(means.find("Loss, means of 2 steps"), std::string::npos);
}

TEST(Summary, SaysWhatOfLoadingIsHidden) {
  EXPECT_EQ(loadingInWords({0.4, 0.1, 51}),
            "0.400 ms a step, 75.0 % of it beside the steps, which waited 0.100 ms; 51 ms for the "
            "first one");
  EXPECT_EQ(LoadSummary{}.hidden(), 1);
  EXPECT_EQ((LoadSummary{1, 2, 0}).hidden(), 0) << "steps that wait longer than loading took";
}

TEST(RunPage, HasWhatIsKnownAndNothingElse) {
  const RunRecord run = someRun(1);
  Summary summary;
  summary.stepMs = 500;
  const std::vector<Setting> settings{{"--data", "<script>", true}, {"--lr", "1", false}};
  const RunPage plain{"run", "", run, summary, settings};
  for (const char* absent : {"nan", "inf", "<script>", "Price", "published", "target", "MFU"})
    EXPECT_EQ(htmlOf(plain).find(absent), std::string::npos) << absent;
  RunPage full{
      "run", "", run, summary, settings, priceOf("7.59"), 3.5, publishedJob("pythia-6.9b-trn1")};
  for (const char* there : {"10,102,387", "86.1 %", "not reached by this run", "&lt;script&gt;"})
    EXPECT_NE(htmlOf(full).find(there), std::string::npos) << there;
}

TEST(ScalingPage, HasThePublishedColumn) {
  const std::vector<ScalingRounds> rows{{1, {10, 11}, {10, 11}, {0, 0}},
                                        {2, {18, 19}, {19, 20}, {3, 4}}};
  const std::vector<Setting> settings;
  const std::string html =
      htmlOf(ScalingPage{"scaling", "", "what", rows, settings, publishedJob("bert-large-phase1")});
  EXPECT_NE(html.find("<td>98.0 %</td>"), std::string::npos) << html;
  EXPECT_EQ(htmlOf(ScalingPage{"scaling", "", "what", rows, settings}).find("<td>98.0 %"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::train
