// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "perf/weft-perf/collective.h"

namespace weft::accuracy {

// Room for the input and the output of a rank's calls, malloc'ed or of weftMemAlloc, whose pages
// all are there. Throws std::runtime_error.
class Buffers {
 public:
  Buffers(std::size_t bytes, bool own);

  const float* in() const { return in_.get(); }
  float* out() const { return out_.get(); }
  // Between fresh calls: writes the whole input anew and reads the whole output.
  void use(const perf::Problem& problem);

 private:
  using Memory = std::unique_ptr<float, void (*)(float*)>;
  static Memory allocate(std::size_t bytes, bool own);

  Memory in_, out_;
  float turn_ = 0;
  volatile float sink_ = 0;
};

}  // namespace weft::accuracy
