// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/buffer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <weft/weft.hpp>

namespace weft::perf {
namespace {

constexpr unsigned char kPoison = 0xa5;
constexpr std::size_t kMargin = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t roundUp(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

Buffer::Buffer(std::size_t bytes, std::size_t mostUnalign, weftComm_t registeredWith)
    : comm_(registeredWith) {
  const std::size_t alignment = comm_ != nullptr ? kPage : kHugePage;
  const std::size_t size = roundUp(alignment + mostUnalign + bytes + kMargin, alignment);
  if (comm_ != nullptr) {
    check(weftMemAlloc(&base_, size));
  } else {
    base_ = std::aligned_alloc(alignment, size);
    if (base_ == nullptr) {
      throw Error(weftOutOfMemory,
                  fmt::format("no memory for a buffer of {} bytes; lower -e", size));
    }
  }
  data_ = aligned_ = static_cast<unsigned char*>(base_) + alignment;
  if (comm_ != nullptr && bytes > 0) {
    check(weftCommRegister(comm_, data_, mostUnalign + bytes, &registration_), comm_);
  }
}

Buffer::~Buffer() {
  if (comm_ == nullptr) {
    std::free(base_);
  } else {
    if (registration_ != nullptr) static_cast<void>(weftCommDeregister(comm_, registration_));
    static_cast<void>(weftMemFree(base_));
  }
}

void Buffer::poison(std::size_t bytes) {
  std::memset(data_ - kMargin, kPoison, bytes + 2 * kMargin);
}

CheckResult Buffer::verifyPoisoned(std::size_t at, std::size_t length) const {
  return verifyUntouched(data_ + at, length, kPoison, "of a part that is not received");
}

CheckResult Buffer::verifyMargins(std::size_t bytes) const {
  CheckResult found = verifyUntouched(data_ - kMargin, kMargin, kPoison, "before the buffer");
  found.add(verifyUntouched(data_ + bytes, kMargin, kPoison, "after the buffer"));
  return found;
}

}  // namespace weft::perf
