// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/trace.h"

#include <fmt/format.h>

#include <set>

namespace weft::simulator {
namespace {

// Messages overlap each other, so they are asynchronous events, which may.
std::string eventsOf(const sim::Span& span, std::size_t number) {
  const std::string about = fmt::format(R"("args":{{"op":{},"segment":{},"bytes":{},"peer":{}}})",
                                        span.op, span.segment, span.bytes, span.peer);
  const double begin = static_cast<double>(span.begin) / 1e6,
               end = static_cast<double>(span.end) / 1e6;
  if (!span.isMessage)
    return fmt::format(
        R"({{"ph":"X","name":"{}","cat":"op","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f},{}}})",
        span.name, span.rank, span.lane, begin, end - begin, about);
  const std::string name = fmt::format("{} to {}", span.name, span.peer);
  return fmt::format(
      R"({{"ph":"b","name":"{0}","cat":"message","id":{1},"pid":{2},"tid":{3},"ts":{4:.6f},{6}}},
{{"ph":"e","name":"{0}","cat":"message","id":{1},"pid":{2},"tid":{3},"ts":{5:.6f}}})",
      name, number, span.rank, span.lane, begin, end, about);
}

}  // namespace

std::string traceOf(const std::vector<sim::Span>& spans) {
  std::string trace = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  std::set<std::uint32_t> ranks;
  std::set<std::pair<std::uint32_t, std::uint32_t>> lanes;
  for (const sim::Span& span : spans) {
    ranks.insert(span.rank);
    lanes.insert({span.rank, span.lane});
  }
  for (const std::uint32_t rank : ranks)
    trace += fmt::format(
        R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0} predicted"}}}},)"
        "\n",
        rank);
  for (const auto& [rank, lane] : lanes)
    trace += fmt::format(
        R"({{"ph":"M","name":"thread_name","pid":{0},"tid":{1},"args":{{"name":"lane {1}"}}}},)"
        "\n",
        rank, lane);
  for (std::size_t i = 0; i < spans.size(); ++i)
    trace += eventsOf(spans[i], i) + (i + 1 < spans.size() ? ",\n" : "\n");
  return trace + "]}\n";
}

}  // namespace weft::simulator
