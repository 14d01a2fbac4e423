// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/trace.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace weft::perf {
namespace {

constexpr std::uint32_t kMeasuredProcesses = 1'000'000;  // beyond those that are predicted

std::uint32_t processOf(TraceKind kind, std::uint32_t rank) {
  return rank + (kind == TraceKind::Measured ? kMeasuredProcesses : 0);
}

// Messages overlap each other, so they are asynchronous events, which may.
std::string eventOf(TraceKind kind, const TraceSpan& span, std::size_t number) {
  const std::uint32_t process = processOf(kind, span.rank);
  const std::string about = fmt::format(R"("args":{{"op":{},"segment":{},"bytes":{},"peer":{}}})",
                                        span.op, span.segment, span.bytes, span.peer);
  if (!span.isMessage)
    return fmt::format(
        R"({{"ph":"X","name":"{}","cat":"op","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f},{}}})",
        span.name, process, span.lane, span.beginUs, span.endUs - span.beginUs, about);
  const std::string name = fmt::format("{} to {}", span.name, span.peer);
  return fmt::format(
      R"({{"ph":"b","name":"{0}","cat":"message","id":{1},"pid":{2},"tid":{3},"ts":{4:.6f},{6}}},
{{"ph":"e","name":"{0}","cat":"message","id":{1},"pid":{2},"tid":{3},"ts":{5:.6f}}})",
      name, number, process, span.lane, span.beginUs, span.endUs, about);
}

// Of a process: its name, and where it stands.
std::string headOf(TraceKind kind, std::uint32_t rank) {
  const bool measured = kind == TraceKind::Measured;
  return fmt::format(
      R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {1} {2}"}}}},
{{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{3}}}}},)"
      "\n",
      processOf(kind, rank), rank, measured ? "measured" : "predicted", 2 * rank + measured);
}

}  // namespace

std::string traceOf(TraceKind kind, const std::vector<TraceSpan>& spans,
                    const std::string& others) {
  std::string trace = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  std::set<std::uint32_t> ranks;
  std::set<std::pair<std::uint32_t, std::uint32_t>> lanes;
  for (const TraceSpan& span : spans) {
    ranks.insert(span.rank);
    lanes.insert({span.rank, span.lane});
  }
  for (const std::uint32_t rank : ranks) trace += headOf(kind, rank);
  for (const auto& [rank, lane] : lanes)
    trace += fmt::format(
        R"({{"ph":"M","name":"thread_name","pid":{0},"tid":{1},"args":{{"name":"lane {1}"}}}},)"
        "\n",
        processOf(kind, rank), lane);
  if (!others.empty()) trace += others + (spans.empty() ? "\n" : ",\n");
  for (std::size_t i = 0; i < spans.size(); ++i)
    trace += eventOf(kind, spans[i], i) + (i + 1 < spans.size() ? ",\n" : "\n");
  return trace + "]}\n";
}

std::string eventsOf(const std::string& file) {
  using nlohmann::json;
  const json trace = json::parse(std::ifstream(file), nullptr, /*allow_exceptions=*/false);
  if (!trace.is_object() || !trace.contains("traceEvents")) return {};
  std::string events;
  for (const json& event : trace["traceEvents"])
    events += (events.empty() ? "" : ",\n") + event.dump();
  return events;
}

std::vector<TraceSpan> spansOf(std::uint32_t rank, const std::vector<weftOpSpan_t>& spans,
                               std::uint64_t originNs) {
  const auto us = [originNs](std::uint64_t ns) { return static_cast<double>(ns - originNs) / 1e3; };
  std::vector<TraceSpan> all;
  for (const weftOpSpan_t& span : spans)
    all.push_back({.rank = rank,
                   .lane = span.lane,
                   .op = span.op,
                   .segment = span.segment,
                   .bytes = span.bytes,
                   .peer = static_cast<std::uint32_t>(span.peer),
                   .beginUs = us(span.beginNs),
                   .endUs = us(span.endNs),
                   .name = weftOpName(span.kind)});
  return all;
}

}  // namespace weft::perf
