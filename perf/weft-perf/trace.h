// SPDX-License-Identifier: Apache-2.0
// A timeline of ops, predicted or measured, in Chrome's trace format, which ui.perfetto.dev reads: a
// process for each rank, with a track for each lane. A rank's predicted and measured processes stand
// side by side, as ops of the same numbers.
#pragma once

#include <weft/weft.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::perf {

struct TraceSpan {
  std::uint32_t rank = 0, lane = 0, op = 0;
  std::uint64_t segment = 0, bytes = 0;
  std::uint32_t peer = 0;
  double beginUs = 0, endUs = 0;
  bool isMessage = false;  // on its way, which overlaps with what the rank does
  const char* name = "";
};

enum class TraceKind { Predicted, Measured };

// The file. `others`: events of another one, from eventsOf(), or nothing.
std::string traceOf(TraceKind kind, const std::vector<TraceSpan>& spans,
                    const std::string& others = "");

// What such a file holds; nothing if it is none.
std::string eventsOf(const std::string& file);

// What a rank has traced; times count from `originNs`.
std::vector<TraceSpan> spansOf(std::uint32_t rank, const std::vector<weftOpSpan_t>& spans,
                               std::uint64_t originNs);

}  // namespace weft::perf
