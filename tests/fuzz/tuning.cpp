// SPDX-License-Identifier: Apache-2.0
// Files of measured and of recorded machines.
#include <unistd.h>
#include <cstdio>
#include <fstream>

#include "base/hash.h"
#include "base/text.h"
#include "fuzz.h"
#include "tune/machine_file.h"

namespace weft::fuzz {
namespace {

constexpr const char* kKey = "key";

// A calibration is believed only of a file with a name of its own, of this user's.
std::string namedFileWith(const std::string& content) {
  static const std::string path = text("/tmp/weft-fuzz-tuning-", ::getpid());
  static const struct Remover {
    ~Remover() { std::remove(path.c_str()); }
  } remover;
  std::ofstream(path, std::ios::trunc) << content;
  return path;
}

// With the head and the sum that saveCalibration() gives it.
std::string sealed(std::string_view body) {
  char sum[32];
  const std::string content = text("weft machine 6\n", kKey, "\n", body);
  std::snprintf(sum, sizeof(sum), "sum %016llx\n",
                static_cast<unsigned long long>(Hash().add(content).value()));
  return content + sum;
}

void tryFigures(std::string_view figures) {
  tune::Machine first, second;
  if (!tune::parse(figures, &first)) return;
  require(tune::isSane(tune::estimated(first)), "a machine that was read is sane");
  require(tune::parse(tune::toText(first), &second) && first == second, "it is written as read");
  require(!tune::describe(first).empty(), "it can be described");
}

void tryCalibration(const std::string& content) {
  tune::Calibration calibration;
  if (!tune::loadCalibration(namedFileWith(content), kKey, &calibration)) return;
  const bool measured = !calibration.measured().empty();
  require(!measured || tune::isSane(tune::estimated(calibration.machine())), "it is sane");
  require(!tune::historyOf(calibration).empty(), "it has a history");
}

void tryRecorded(std::string_view lines) {
  const std::string path = fileWith(text("weft recorded machine 2\n", lines));
  tune::Machine machine;
  require(tune::isRecorded(path), "the first line says so");
  if (isGood(tune::loadRecorded(path, &machine)))
    require(tune::isSane(tune::estimated(machine)), "a recorded machine is sane");
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const std::string_view rest = textOf(input.subspan(1));
  switch (input[0] % 8) {
    case 0:
      return tryCalibration(std::string(rest));
    case 1:
    case 2:
      return tryCalibration(sealed(rest));
    case 3:
    case 4:
      return tryRecorded(rest);
    default:
      return tryFigures(rest);
  }
}

}  // namespace weft::fuzz
