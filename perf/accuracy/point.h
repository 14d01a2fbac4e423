// SPDX-License-Identifier: Apache-2.0
// What is measured: one fp32 collective of one size, with one kind of buffers, called in one way.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "perf/weft-perf/collective.h"

namespace weft::accuracy {

// Steady: calls back to back. Fresh: one call, before which each rank has written its input anew
// and read its output, as applications do.
enum class Mode { Steady, Fresh };
const char* nameOf(Mode mode);
// Throws std::invalid_argument that lists the names.
Mode parseMode(const std::string& name);

struct Point {
  const perf::Collective* collective = nullptr;
  std::size_t bytes = 0;  // nccl-tests' size
  bool own = false;       // buffers of weftMemAlloc; else malloc'ed
  Mode mode = Mode::Steady;
  bool operator==(const Point&) const = default;
};

// "all_reduce 64K own steady"
std::string textOf(const Point& point);
// "64K"; other than powers of two to the byte.
std::string sizeText(std::size_t bytes);

// A rank's part of it: sums, root 0. Blocks have one element at least, so tiny sizes round up.
perf::Problem problemOf(const Point& point, int rank, int ranks);

// What a run is to visit.
struct Sweep {
  std::vector<const perf::Collective*> collectives;
  std::vector<std::size_t> sizes;
  std::vector<bool> own;
  std::vector<Mode> modes;
};

// All points of the sweep in such an order that whoever comes to half of them has seen each
// collective, and sizes of each that are far apart. Those over 4 MiB come last, as one takes as
// long as many others.
std::vector<Point> inOrder(const Sweep& sweep);

}  // namespace weft::accuracy
