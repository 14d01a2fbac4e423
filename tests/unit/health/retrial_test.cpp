// SPDX-License-Identifier: Apache-2.0
// What trials must show before a suspect is named, on hosts with idle cores and without.
#include "tools/health/retrial.h"

#include <gtest/gtest.h>

namespace weft::health {
namespace {

Retrial lateLink() {
  Suspect suspect;
  suspect.measure = Measure::Latency;
  suspect.value = 3000;
  suspect.usual = 40;
  return Retrial(suspect);
}

TEST(Retrial, ConfirmsALinkThatIsAlwaysLate) {
  for (const Tolerance& tolerance : {Tolerance(), Tolerance::onBusyHosts()}) {
    Retrial retrial = lateLink();
    EXPECT_FALSE(retrial.isConfirmed());
    for (int trial = 0; trial < tolerance.trials; ++trial)
      EXPECT_TRUE(retrial.isStillSlow(tolerance, 2500, 45));
    EXPECT_TRUE(retrial.isConfirmed());
  }
}

TEST(Retrial, OneGoodTrialAcquits) {
  Retrial retrial = lateLink();
  for (int trial = 0; trial < 20; ++trial) EXPECT_TRUE(retrial.isStillSlow({}, 2500, 45));
  EXPECT_FALSE(retrial.isStillSlow({}, 60, 45));
  EXPECT_FALSE(retrial.isStillSlow({}, 2500, 45));  // and remains so
}

TEST(Retrial, ATrialInWhichTheUsualLinkIsAsLateTellsNothing) {
  Retrial retrial = lateLink();
  for (int trial = 0; trial < 20; ++trial) retrial.isStillSlow({}, 2500, 2000);
  EXPECT_FALSE(retrial.isConfirmed());
}

TEST(Retrial, ComparesBandwidthTheOtherWay) {
  Suspect suspect;
  suspect.value = 0.01;
  suspect.usual = 0.05;
  Retrial retrial(suspect);
  EXPECT_TRUE(retrial.isStillSlow({}, 0.012, 0.048));
  EXPECT_TRUE(retrial.isStillSlow({}, 0.012, 0.014));  // the host is busy, but the best counts
  EXPECT_TRUE(retrial.isConfirmed());
  EXPECT_FALSE(retrial.isStillSlow({}, 0.045, 0.048));
}

}  // namespace
}  // namespace weft::health
