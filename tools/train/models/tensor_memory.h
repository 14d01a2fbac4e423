// SPDX-License-Identifier: Apache-2.0
// Where libtorch's tensors get their memory. Each step frees and allocates the same sizes anew, among small things that stay
// for longer: malloc cuts those out of what large tensors have left, and the next large one finds no place there. So large
// ones have memory of their own, which stays for the next of about the same size.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <map>
#include <mutex>

namespace weft::train {

class TensorMemory final : public at::Allocator {
 public:
  // What is smaller is malloc's.
  static constexpr std::size_t kLarge = std::size_t{64} << 10;

  TensorMemory() = default;
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;
  ~TensorMemory() override;  // nothing of it is in use any more

  // Throws c10::Error if there is none, when what is kept has been given back to the system.
  at::DataPtr allocate(std::size_t bytes) const override;
  // For what libtorch allocates without a DataPtr.
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  // In no use, large ones.
  std::size_t keptBytes() const;

 private:
  // Before the data, which so is aligned as libtorch wants it.
  struct alignas(64) Block {
    std::size_t bytes;          // of data
    const TensorMemory* owner;  // of small ones null
    void* data() { return this + 1; }
  };
  static void release(void* data);
  Block* small(std::size_t bytes) const;
  Block* large(std::size_t bytes) const;
  Block* kept(std::size_t bytes) const;
  bool giveBack() const;

  mutable std::mutex mutex_;
  mutable std::multimap<std::size_t, Block*> kept_;  // by size
};

// From now on, and for good, all tensors of this process on its processors.
void keepMemoryOfTensors();

}  // namespace weft::train
