// SPDX-License-Identifier: Apache-2.0
// weft-bench-kernels: what the kernels of sums move, by instruction set, type and cache, beside
// memcpy.
//
// GB/s of all bytes loaded and stored, of one core, on arrays that fill the footprint together:
// half of a cache each, and four times the last one. The best of several loops of about 2 ms.
#include "reduce/targets.h"

#include <hwy/highway.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "perf/common/command_line.h"
#include "perf/common/exit_code.h"
#include "perf/common/program.h"
#include "reduce/reduce.h"
#include "tune/processor.h"

namespace {

using weft::reduce::DType;
using weft::reduce::RedOp;
using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

constexpr size_t kLoopBytes = 4 << 20, kLoops = 7;
constexpr DType kTypes[] = {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32, DType::I8};

struct Kernel {
  size_t sources, targets;
  bool streams;
};
constexpr Kernel kKernels[] = {{2, 1, false}, {4, 1, false}, {8, 1, false}, {1, 1, false},
                               {1, 1, true},  {1, 2, true},  {2, 1, true},  {2, 2, true}};

// One after the other from a page border on, written once, so that their pages are there.
class Arrays {
 public:
  explicit Arrays(size_t most) : memory_(most + kPage) {}

  void lay(const Kernel& kernel, size_t footprint) {
    const size_t arrays = kernel.sources + kernel.targets;
    bytes = footprint / arrays / kLine * kLine;
    moved = bytes * arrays;
    std::byte* at = memory_.data() + (0 - reinterpret_cast<uintptr_t>(memory_.data())) % kPage;
    for (size_t a = 0; a < arrays; ++a, at += bytes)
      (a < kernel.sources ? src[a] : dst[a - kernel.sources]) = at;
  }

  size_t bytes = 0, moved = 0;
  std::array<void*, 8> src{};
  std::array<void*, 2> dst{};

 private:
  static constexpr size_t kPage = 4096, kLine = 64;
  std::vector<std::byte> memory_;
};

double rate(const Arrays& arrays, const Work& work) {
  const size_t calls = std::max<size_t>(1, kLoopBytes / arrays.moved);
  double best = 0;
  work();
  for (size_t loop = 0; loop < kLoops; ++loop) {
    const Clock::time_point start = Clock::now();
    for (size_t call = 0; call < calls; ++call) work();
    const std::chrono::duration<double, std::nano> time = Clock::now() - start;
    best = std::max(best, static_cast<double>(arrays.moved * calls) / time.count());
  }
  return best;
}

// Empty if there is no such kernel.
Work workOf(const Kernel& kernel, DType type, const Arrays& a) {
  const size_t count = a.bytes / weft::reduce::sizeOf(type), n = kernel.sources;
  const auto* const* src = a.src.data();
  if (!kernel.streams) {
    const auto fold = weft::reduce::foldKernel(type, RedOp::Sum);
    return [=, &a] { fold(a.dst[0], src, n, count, 1); };
  }
  const auto spread = weft::reduce::spreadKernel(type, RedOp::Sum);
  if (spread == nullptr) return {};
  return [=, &a] { spread(a.dst.data(), kernel.targets, src, n, count, 1); };
}

std::string nameOf(const Kernel& kernel) {
  const std::string n = std::to_string(kernel.sources), targets = std::to_string(kernel.targets);
  const std::string what = kernel.sources == 1 ? "copy" : "sum of " + n;
  return kernel.streams ? what + " past the caches, to " + targets : what;
}

std::string sizeName(size_t bytes) {
  return bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB"
                         : std::to_string(bytes >> 20) + " MiB";
}

void printRow(const char* target, const Kernel& kernel, size_t footprint, Arrays& arrays) {
  std::printf("| %s | %s | %s |", target, nameOf(kernel).c_str(), sizeName(footprint).c_str());
  arrays.lay({1, 1, false}, footprint);
  std::printf(" %.0f |",
              rate(arrays, [&] { std::memcpy(arrays.dst[0], arrays.src[0], arrays.bytes); }));
  arrays.lay(kernel, footprint);
  for (DType type : kTypes) {
    const Work work = workOf(kernel, type, arrays);
    if (work == nullptr)
      std::printf(" |");
    else
      std::printf(" %.0f |", rate(arrays, work));
  }
  std::printf("\n");
}

void printTable(const std::vector<size_t>& footprints) {
  Arrays arrays(footprints.back());
  std::printf("%s, GB/s\n\n| instructions | kernel | footprint | memcpy |",
              weft::tune::processorName().c_str());
  for (DType type : kTypes) std::printf(" %s |", weft::reduce::name(type));
  std::printf("\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (const Kernel& kernel : kKernels)
      for (size_t f = kernel.streams ? footprints.size() - 2 : 0; f < footprints.size(); ++f)
        printRow(hwy::TargetName(target), kernel, footprints[f], arrays);
  }
}

// Half of each cache, and memory.
std::vector<size_t> footprintsHere() {
  std::vector<size_t> footprints;
  for (int level : {1, 2, 3})
    if (const size_t cache = weft::tune::cacheBytes(level); cache != 0)
      footprints.push_back(cache / 2);
  footprints.push_back(std::max<size_t>(64 << 20, 8 * footprints.back()));
  return footprints;
}

int run(int argc, char** argv) {
  CLI::App app("GB/s of the kernels of sums beside memcpy, by instruction set, type and cache");
  weft::tools::addVersion(app, "weft-bench-kernels");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? weft::tools::kExitHealthy : weft::tools::kExitUsage;
  }
  printTable(footprintsHere());
  return weft::tools::kExitHealthy;
}

}  // namespace

int main(int argc, char** argv) {
  return weft::tools::runProgram("weft-bench-kernels", [&] { return run(argc, argv); });
}
