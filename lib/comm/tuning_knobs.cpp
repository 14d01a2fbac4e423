// SPDX-License-Identifier: Apache-2.0
#include "comm/tuning_knobs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/environment.h"
#include "base/hosts.h"
#include "formats/read.h"

namespace weft::comm {
namespace {

// A limit that is set only where the knob is.
Status limitKnob(Knob knob, std::optional<std::uint64_t>* limit) {
  std::int64_t value = 0;
  WEFT_TRY(readInteger(knob, &value));
  if (value != kKnobAuto) *limit = static_cast<std::uint64_t>(value);
  return {};
}

Status readAlgorithm(plan::Tuning* tuning) {
  const std::string file = scheduleFile();
  if (file.empty()) return {};
  schedule::Schedule schedule;
  WEFT_TRY(formats::readSchedule(file, &schedule));
  tuning->imported = plan::importSchedule(file, std::move(schedule));
  return {};
}

}  // namespace

Status numberKnob(Knob knob, std::int64_t fallback, std::int64_t* value) {
  WEFT_TRY(readInteger(knob, value));
  if (*value == kKnobAuto) *value = fallback;
  return {};
}

std::string scheduleFile() {
  std::string name(environment(knobInfo(Knob::Algo).name));
  name.resize(std::min(name.size(), name.find(':')));
  return formats::isScheduleFile(name) ? name : "";
}

Status readTuning(const std::vector<std::uint32_t>& hosts, plan::Tuning* tuning) {
  WEFT_TRY(limitKnob(Knob::OneShotMax, &tuning->oneShotMax));
  WEFT_TRY(limitKnob(Knob::DirectMin, &tuning->directMin));
  WEFT_TRY(readText(Knob::Algo, &tuning->algorithm));
  tuning->tries = tuning->algorithm == "auto";
  if (tuning->tries || tuning->algorithm == "model") tuning->algorithm.clear();
  WEFT_TRY(readAlgorithm(tuning));
  tuning->ranks = static_cast<std::uint32_t>(hosts.size());
  tuning->nodes = hosts;
  // On one host two-level algorithms see pairs of ranks as nodes: of use for tests only.
  for (std::uint32_t r = 0; isOneHost(hosts) && r < tuning->ranks; ++r) tuning->nodes[r] = r / 2;
  return {};
}

}  // namespace weft::comm
