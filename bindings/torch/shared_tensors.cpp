// SPDX-License-Identifier: Apache-2.0
#include "shared_tensors.h"

#include <c10/core/CPUAllocator.h>
#include <weft/weft.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "base.h"

namespace weft::pytorch {
namespace {

class SharedAllocator final : public Allocator {
 public:
  explicit SharedAllocator(c10::Allocator* otherwise) : otherwise_(otherwise) {}

  c10::DeleterFnPtr raw_deleter() const override { return &SharedAllocator::free; }

  std::atomic<std::size_t> leastBytes{0};

 private:
  c10::DataPtr make(std::size_t bytes) const override;
  static void free(void* memory);

  c10::Allocator* const otherwise_;
};

// Never destroyed: tensors outlive the interpreter.
SharedAllocator* installed = nullptr;

c10::DataPtr SharedAllocator::make(std::size_t bytes) const {
  void* memory = nullptr;
  if (bytes < leastBytes.load(std::memory_order_relaxed) ||
      weftPoolAlloc(&memory, bytes) != weftSuccess || memory == nullptr)
    return otherwise_->allocate(bytes);
  c10::profiledCPUMemoryReporter().New(memory, bytes);
  return {memory, memory, &SharedAllocator::free, c10::Device(c10::kCPU)};
}

// What the other allocator made has its deleter, but for who frees by raw_deallocate().
void SharedAllocator::free(void* memory) {
  if (weftPoolFree(memory) == weftSuccess)
    c10::profiledCPUMemoryReporter().Delete(memory);
  else
    installed->otherwise_->raw_deallocate(memory);
}

}  // namespace

void useSharedTensors(std::size_t leastBytes) {
  constexpr std::uint8_t kPriority = 100;  // PyTorch's own have 0
  if (installed == nullptr) installed = new SharedAllocator(c10::GetCPUAllocator());
  installed->leastBytes = leastBytes;
  c10::SetCPUAllocator(installed, kPriority);
  if (c10::GetCPUAllocator() != installed)
    throw std::runtime_error(
        "weft.use_shared_tensors: another library has given PyTorch a CPU allocator of a higher "
        "priority; fix: leave that out");
}

}  // namespace weft::pytorch
