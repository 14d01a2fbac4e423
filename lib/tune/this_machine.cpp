// SPDX-License-Identifier: Apache-2.0
#include "tune/this_machine.h"

#include <mutex>

#include "base/knobs.h"
#include "base/log.h"
#include "tune/calibrate.h"
#include "tune/machine_file.h"

namespace weft {
namespace {

std::mutex mutex;
KnownMachine current;

KnownMachine measured(const std::string& file, const std::string& key) {
  const Calibration found = calibrate();
  logInfo("calibrated", found.steady ? "" : " on a busy machine, so not kept", ": ",
          describe(found.machine));
  if (found.steady && !file.empty() && !saveMachine(file, key, found.machine))
    logDebug("the calibration cannot be kept in ", file);
  return {found.machine, Origin::Measured};
}

}  // namespace

Status thisMachine(KnownMachine* known) {
  const std::lock_guard lock(mutex);
  if (current.origin == Origin::Nowhere) {
    std::string file;
    WEFT_TRY(readText(Knob::TuneFile, &file));
    if (file == "auto") file = machineFilePath();
    if (file == "off") file.clear();
    const std::string key = machineKey();
    if (!file.empty() && loadMachine(file, key, &current.machine))
      current.origin = Origin::File;
    else
      current = measured(file, key);
  }
  *known = current;
  return {};
}

void rememberMachine(const Machine& machine) {
  const std::lock_guard lock(mutex);
  if (current.origin == Origin::Nowhere && isSane(machine)) current = {machine, Origin::Peer};
}

const char* originName(Origin origin) {
  switch (origin) {
    case Origin::Nowhere:
      return "unknown";
    case Origin::Measured:
      return "a measurement";
    case Origin::File:
      return "its file";
    case Origin::Peer:
      return "an earlier communicator";
  }
  return "unknown";
}

}  // namespace weft
