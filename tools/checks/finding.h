// SPDX-License-Identifier: Apache-2.0
// What a check has to say: one sentence about one culprit, and what to do.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>
#include <weft/weft.hpp>

namespace weft::checks {

enum class Severity {
  Note,     // worth knowing; the job may run
  Warning,  // the job runs, but slower or with less warning than it should
  Fault,    // do not run a job here
};
const char* nameOf(Severity severity);  // "note", "warning", "fault"

struct Finding {
  Severity severity = Severity::Note;
  std::string kind;     // its heading in docs/operating.md, such as "memlock-low"
  std::string culprit;  // "host node2", "rank 3 (host node2, pid 71)", "link node1 - node2"
  std::string what;     // what is wrong with it, with figures and units; no full stop
  std::string fix;      // what to do; no full stop
  double weight = 0;    // how bad; orders findings of one severity, larger first
  std::optional<ErrorInfo> error = {};  // of weft, if that is what was found
};

// "fault: link node1 - node2: 0.11 GB/s, a quarter of ..." and "  fix: ...".
std::string toText(const Finding& finding);

// Worst first; findings that are equally bad keep their order.
void sortByWeight(std::vector<Finding>& findings);

}  // namespace weft::checks
