// SPDX-License-Identifier: Apache-2.0
#include "tools/test/columns.h"

#include <cstdlib>

#include "perf/weft-perf/stats.h"

namespace weft::test {
namespace {

double statistic(const std::string& name, const perf::Measurement& measurement) {
  const std::vector<double> times = measurement.microseconds();
  if (name == "avg") return perf::meanOf(times);
  return perf::percentileOf(times, std::atof(name.c_str() + 1));
}

// "all_reduce: all-reduce ring, 4 segment(s) of ..." names it; sends and receives have none.
std::string algorithmOf(const perf::Row& row) {
  if (!row.problem.collective->plans) return "p2p";
  const std::size_t colon = row.explanation.find(": ");
  if (colon == std::string::npos) return "unknown";
  const std::size_t comma = row.explanation.find(',', colon);
  const std::string name = row.explanation.substr(colon + 2, comma - colon - 2);
  return name.substr(name.rfind(' ') + 1);
}

}  // namespace

double inGibi(double decimalGigabytes) { return decimalGigabytes * 1e9 / 0x1p30; }

std::vector<Column> columnsOf(const TestOptions& options, const perf::Row& row) {
  const perf::Problem& problem = row.problem;
  const perf::Figures figures = perf::figuresOf(problem, *row.outOfPlace);
  const std::size_t element = problem.type.bytes;
  std::vector<Column> columns;
  columns.push_back({"size(B)", 12, problem.bytes()});
  columns.push_back({"count(elems)", 12, problem.total});
  if (options.showSizes) {
    columns.push_back({"total_input_size(B)", 19, problem.sendCount * element});
    columns.push_back({"total_output_size(B)", 20, problem.recvCount * element});
  }
  columns.push_back({"type", 6, nameOf(problem.type.type)});
  for (const std::string& name : options.stats) {
    columns.push_back({"time:" + name + "(us)", 12, statistic(name, *row.outOfPlace)});
  }
  columns.push_back({"algbw(GB/s)", 11, inGibi(figures.algBw)});
  columns.push_back({"busbw(GB/s)", 11, inGibi(figures.busBw)});
  if (options.showAlgorithm) columns.push_back({"algorithm", 12, algorithmOf(row)});
  return columns;
}

}  // namespace weft::test
