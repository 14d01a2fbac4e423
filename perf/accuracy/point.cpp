// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace weft::accuracy {
namespace {

// 0, 4, 2, 6, 1, 5, 3, 7: the bits of the numbers below `count` read backwards, so that each next
// one is far from those before.
std::vector<std::size_t> farApart(std::size_t count) {
  std::size_t end = 1;
  while (end < count) end *= 2;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < end; ++i) {
    std::size_t reversed = 0;
    for (std::size_t low = 1, high = end / 2; low < end; low *= 2, high /= 2)
      if ((i & low) != 0) reversed |= high;
    if (reversed < count) order.push_back(reversed);
  }
  return order;
}

constexpr std::size_t kQuick = 4 << 20;

// In each turn every collective, with another size than the one before it.
void addTurns(const Sweep& sweep, std::vector<Point>* points) {
  const std::vector<std::size_t> sizes = farApart(sweep.sizes.size());
  for (std::size_t turn = 0; turn < sizes.size(); ++turn)
    for (const Mode mode : sweep.modes)
      for (std::size_t c = 0; c < sweep.collectives.size(); ++c)
        for (const bool own : sweep.own)
          points->push_back(
              {sweep.collectives[c], sweep.sizes[sizes[(turn + c) % sizes.size()]], own, mode});
}

}  // namespace

const char* nameOf(Mode mode) { return mode == Mode::Steady ? "steady" : "fresh"; }

Mode parseMode(const std::string& name) {
  for (const Mode mode : {Mode::Steady, Mode::Fresh})
    if (name == nameOf(mode)) return mode;
  throw std::invalid_argument("unknown mode '" + name + "'; use steady or fresh");
}

std::string sizeText(std::size_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

std::string textOf(const Point& point) {
  return fmt::format("{} {} {} {}", point.collective->name, sizeText(point.bytes),
                     point.own ? "own" : "any", nameOf(point.mode));
}

perf::Problem problemOf(const Point& point, int rank, int ranks) {
  const perf::TypeInfo& type = perf::typeInfo(weftFloat32);
  const auto make = [&](std::size_t bytes) {
    return perf::makeProblem(*point.collective, type, perf::noOp(),
                             point.collective->rooted ? 0 : -1, rank, ranks, bytes, false);
  };
  const perf::Problem problem = make(point.bytes);
  return problem.count > 0 ? problem : make(type.bytes * static_cast<std::size_t>(ranks));
}

std::vector<Point> inOrder(const Sweep& sweep) {
  Sweep quick = sweep, slow = sweep;
  std::erase_if(quick.sizes, [](std::size_t bytes) { return bytes > kQuick; });
  std::erase_if(slow.sizes, [](std::size_t bytes) { return bytes <= kQuick; });
  std::vector<Point> points;
  addTurns(quick, &points);
  addTurns(slow, &points);
  return points;
}

}  // namespace weft::accuracy
