// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "reference.h"
#include "world.h"

namespace weft::testing {

// Memory of any alignment between guard bytes; `shared`: of weftMemAlloc.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::size_t shift, bool shared);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::byte* data() { return all_.data() + at_; }
  bool isIntact() const;
  // From now on nobody may write to any of it.
  void close();

 private:
  std::size_t bytes_, at_;
  std::vector<std::byte> own_;
  std::span<std::byte> shared_;
  std::span<std::byte> all_;
};

// One rank's part of a Case: its buffers, apart or one within the other, the call, and what came of
// it. Lives until the call has ended.
class CheckedCall {
 public:
  CheckedCall(const Case& c, const Rank& r);

  // The input, which is there from the beginning; none of it as long as somebody is yet to make it.
  void fill();
  void empty();
  weftResult_t make(weftStream_t stream = nullptr, int timeoutMs = WEFT_UNDEF_INT);
  // After its success: every element and every byte around them. "" or what is wrong.
  std::string check();
  // After its failure, when the buffers are the caller's again.
  void takeBack();
  bool isUntouched() const { return send_.isIntact() && recv_.isIntact(); }

 private:
  weftResult_t call(weftRedOp_t op, weftStream_t stream, const weftOpts_t* opts);
  weftResult_t exchange(weftStream_t stream, const weftOpts_t* opts);
  weftResult_t shift(weftStream_t stream, const weftOpts_t* opts);
  std::string checkElement(std::size_t i) const;

  const Case& c_;
  const Rank r_;
  Guarded send_, recv_;
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  bool apart_ = true;
};

}  // namespace weft::testing
