// SPDX-License-Identifier: Apache-2.0
#include "tune/this_machine.h"

#include <ctime>
#include <iterator>
#include <mutex>

#include "base/knobs.h"
#include "base/log.h"
#include "base/no_fork.h"
#include "base/text.h"
#include "tune/calibrate.h"
#include "tune/machine_file.h"
#include "tune/stopwatch.h"

namespace weft::tune {
namespace {

ForkSafeMutex mutex;
KnownMachine current;

// Creating a communicator waits so long for rounds that agree.
constexpr double kBudgetNs = 30e6;

Status fileFromKnob(std::string* file) {
  WEFT_TRY(readText(Knob::TuneFile, file));
  if (*file == "auto") *file = machineFilePath();
  if (*file == "off") file->clear();
  return {};
}

void measure(Calibration* calibration) {
  const double until = nowNs() + kBudgetNs;
  Calibrator calibrator;
  do {
    *calibration = with(*calibration, calibrator.round(), std::time(nullptr));
  } while (calibration->provisional() && nowNs() < until);
  logInfo("calibrated: ", historyOf(*calibration), ": ", describe(calibration->machine()));
}

const char* nameOf(Origin origin) {
  constexpr const char* kNames[] = {"nowhere", "a measurement", "its file",
                                    "an earlier communicator",
                                    "the recorded machine of WEFT_TUNE_FILE"};
  const auto number = static_cast<std::size_t>(origin);  // a peer may have told any
  return kNames[number < std::size(kNames) ? number : 0];
}

}  // namespace

Status thisMachine(KnownMachine* known) {
  const std::lock_guard lock(mutex);
  std::string file;
  WEFT_TRY(fileFromKnob(&file));
  if (isRecorded(file)) {
    known->origin = Origin::Recorded;
    known->calibration = {.rounds = 1};
    return loadRecorded(file, &known->calibration.kept[0]);
  }
  const std::string key = machineKey();
  if (current.origin == Origin::Nowhere && loadCalibration(file, key, &current.calibration))
    current.origin = Origin::File;
  current.calibration = at(std::time(nullptr), current.calibration);
  if (current.origin == Origin::Nowhere || current.calibration.provisional()) {
    measure(&current.calibration);
    current.origin = Origin::Measured;
    if (!file.empty() && !saveCalibration(file, key, current.calibration))
      logDebug("the calibration cannot be kept in ", file);
  }
  *known = current;
  return {};
}

void rememberMachine(const KnownMachine& told) {
  const std::lock_guard lock(mutex);
  if (current.origin == Origin::Nowhere && told.origin != Origin::Recorded)
    current = {told.calibration, Origin::Peer};
}

void doubt(const KnownMachine& told) {
  const std::lock_guard lock(mutex);
  std::string file;
  if (told.origin == Origin::Recorded || told.calibration.doubts >= Calibration::kMostDoubts ||
      told.calibration != current.calibration || !fileFromKnob(&file).ok())
    return;
  logInfo("calls do not take what the calibration says; the next communicator measures anew");
  current = {doubted(told.calibration), Origin::Measured};
  if (!file.empty()) (void)saveCalibration(file, machineKey(), current.calibration);
}

std::string describe(const KnownMachine& known) {
  const std::string history =
      known.origin == Origin::Recorded ? "as it stands" : historyOf(known.calibration);
  return text(nameOf(known.origin), ": ", history);
}

}  // namespace weft::tune
