// SPDX-License-Identifier: Apache-2.0
// JSON that the tools read: reports of other hosts, and weft-health's own history.
#include <stdexcept>

#include "fuzz.h"
#include "tools/checks/json.h"
#include "tools/health/baseline.h"

namespace weft::fuzz {
namespace {

void tryReport(std::string_view content) {
  const auto json = nlohmann::json::parse(content, nullptr, false);
  (void)checks::findingFromJson(json);
  const auto report = checks::reportFromJson(json);
  if (!report) return;
  const auto written = checks::toJson(*report);
  const auto again = checks::reportFromJson(written);
  require(again && checks::toJson(*again) == written, "what is written reads as the same");
}

void tryHistory(std::string_view content) {
  try {
    const health::Baseline history = health::Baseline::read(fileWith(content));
    require(history.compare({}).empty(), "nothing measured is not worse");
  } catch (const std::runtime_error& error) {
    require(std::string_view(error.what()).find("fix:") != std::string_view::npos,
            "it says the fix");
  }
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const std::string_view rest = textOf(input.subspan(1));
  if (input[0] % 2 == 0)
    tryReport(rest);
  else
    tryHistory(rest);
}

}  // namespace weft::fuzz
