// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <bit>
#include <new>

namespace weft::train {
namespace {

// Sizes that vary from step to step, as a batch has more or fewer masked words, find each other's blocks: eight of them
// are distinct from one power of two to the next. What a block has too much is never touched.
std::size_t roundedUp(std::size_t bytes) {
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

TensorMemory::~TensorMemory() { giveBack(); }

at::DataPtr TensorMemory::allocate(std::size_t bytes) const {
  Block* const block = bytes < kLarge ? small(bytes) : large(roundedUp(bytes));
  return {block->data(), block->data(), &release, at::Device(at::DeviceType::CPU)};
}

std::size_t TensorMemory::keptBytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const auto& [bytes, block] : kept_) all += bytes;
  return all;
}

// On any thread.
void TensorMemory::release(void* data) {
  if (data == nullptr) return;
  Block* const block = static_cast<Block*>(data) - 1;
  if (block->owner == nullptr) return c10::free_cpu(block);
  const std::lock_guard lock(block->owner->mutex_);
  block->owner->kept_.emplace(block->bytes, block);
}

TensorMemory::Block* TensorMemory::small(std::size_t bytes) const {
  return new (c10::alloc_cpu(sizeof(Block) + bytes)) Block{bytes, nullptr};
}

TensorMemory::Block* TensorMemory::large(std::size_t bytes) const {
  if (Block* const block = kept(bytes)) return block;
  const auto map = [all = sizeof(Block) + bytes] {
    return ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  void* memory = map();
  if (memory == MAP_FAILED && giveBack()) memory = map();
  TORCH_CHECK(memory != MAP_FAILED, "TensorMemory: can't allocate memory: you tried to allocate ",
              bytes, " bytes.");
  return new (memory) Block{bytes, this};
}

TensorMemory::Block* TensorMemory::kept(std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(bytes);
  if (found == kept_.end()) return nullptr;
  return kept_.extract(found).mapped();
}

// Whether there was anything.
bool TensorMemory::giveBack() const {
  const std::lock_guard lock(mutex_);
  const bool hadAny = !kept_.empty();
  for (const auto& [bytes, block] : kept_) ::munmap(block, sizeof(Block) + bytes);
  kept_.clear();
  return hadAny;
}

void keepMemoryOfTensors() {
  constexpr uint8_t kAboveOthers = 100;
  static TensorMemory& memory = *new TensorMemory;  // tensors may outlive all else
  c10::SetCPUAllocator(&memory, kAboveOthers);
}

}  // namespace weft::train
