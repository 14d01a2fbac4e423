// SPDX-License-Identifier: Apache-2.0
// weft-bench-kernels: the fold kernels against memcpy, by type, number of sources, size and
// threads.
//
// bytes_per_second counts the bytes of the result, of all threads together: a fold of n sources
// moves n+1 times as much. Each thread has arrays of its own. Select with --benchmark_filter, e.g.
// 'fold/float/n:2', or 'threads:2' for all cores of a small machine at once.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "perf/common/benchmarks.h"
#include "reduce/reduce.h"

namespace {

using weft::reduce::DType;
using weft::reduce::RedOp;

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kSizes[] = {4 * kKiB, 64 * kKiB, 1 * kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};
constexpr size_t kBigSizes[] = {1 * kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};
constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::F16, DType::I32, DType::F64};

// Memory on page borders, written once, so that its pages are there.
class Buffer {
 public:
  explicit Buffer(size_t bytes)
      : data_(static_cast<std::byte*>(::operator new(bytes, kAlignment))) {
    std::memset(data_.get(), 0, bytes);
  }
  void* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  struct Delete {
    void operator()(std::byte* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<std::byte, Delete> data_;
};

struct Arrays {
  Buffer dst;
  std::vector<Buffer> sources;
  std::vector<const void*> src;

  Arrays(size_t n, size_t bytes) : dst(bytes) {
    for (size_t s = 0; s < n; ++s) {
      sources.emplace_back(bytes);
      src.push_back(sources.back().data());
    }
  }
};

template <class Work>
void measure(benchmark::State& state, size_t n, size_t bytes, const Work& work) {
  const Arrays arrays(n, bytes);
  for (auto _ : state) {
    work(arrays);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

std::string sizeName(size_t bytes) {
  return bytes < kMiB ? std::to_string(bytes / kKiB) + "KiB" : std::to_string(bytes / kMiB) + "MiB";
}

template <class Work>
void add(const std::string& name, size_t n, size_t bytes, const Work& work) {
  const auto run = [=](benchmark::State& state) { measure(state, n, bytes, work); };
  for (int threads : {1, 2}) {
    benchmark::RegisterBenchmark((name + '/' + sizeName(bytes)).c_str(), run)
        ->Threads(threads)
        ->UseRealTime();
  }
}

void addFold(const std::string& kind, weft::reduce::FoldFn fold, DType type, size_t n,
             size_t bytes) {
  const size_t count = bytes / weft::reduce::sizeOf(type);
  add(kind + '/' + weft::reduce::name(type) + "/n:" + std::to_string(n), n, bytes,
      [=](const Arrays& arrays) { fold(arrays.dst.data(), arrays.src.data(), n, count, 1); });
}

void addCopies() {
  for (size_t bytes : kSizes) {
    add("memcpy", 1, bytes,
        [bytes](const Arrays& arrays) { std::memcpy(arrays.dst.data(), arrays.src[0], bytes); });
  }
  for (size_t bytes : kBigSizes) {
    add("copyStream", 1, bytes, [bytes](const Arrays& arrays) {
      void* dst = arrays.dst.data();
      weft::reduce::copyStream(&dst, 1, arrays.src[0], bytes);
    });
  }
}

void addFolds() {
  for (DType type : kTypes) {
    for (size_t n : {size_t{2}, size_t{4}, size_t{8}}) {
      for (size_t bytes : kSizes) {
        addFold("fold", weft::reduce::foldKernel(type, RedOp::Sum), type, n, bytes);
      }
    }
  }
}

void addSpread(DType type, size_t bytes) {
  const weft::reduce::SpreadFn spread = weft::reduce::spreadKernel(type, RedOp::Sum);
  const size_t count = bytes / weft::reduce::sizeOf(type);
  add(std::string("spread/") + weft::reduce::name(type) + "/n:2", 2, bytes,
      [=](const Arrays& arrays) {
        void* dst = arrays.dst.data();
        spread(&dst, 1, arrays.src.data(), 2, count, 1);
      });
}

void addSpreads() {
  for (DType type : {DType::F32, DType::BF16, DType::F16}) {
    for (size_t bytes : kBigSizes) addSpread(type, bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  addCopies();
  addFolds();
  addSpreads();
  return weft::tools::runBenchmarks("weft-bench-kernels", argc, argv);
}
