// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "layout.h"

namespace weft::mpi {

// A buffer of blocks, one a rank, as the v-forms have it, in weft's terms: bytes from a start. Blocks of
// types that are not dense, and what must not lie where it does, are packed into a copy.
class Blocks {
 public:
  enum class Where { InPlace, Copy };

  // displs may be null: packed. `holds`: the buffer has data that is read.
  Blocks(const Layout& layout, const void* buffer, const int* counts, const int* displs, int ranks,
         bool holds, Where where = Where::InPlace);

  std::byte* start() { return start_; }
  const std::size_t* counts() const { return counts_.data(); }
  const std::size_t* displs() const { return displs_.data(); }
  std::byte* block(int rank) { return start_ + displs_[static_cast<std::size_t>(rank)]; }
  std::size_t bytes(int rank) const { return counts_[static_cast<std::size_t>(rank)]; }
  // All of them, from the first byte of one to the last of one.
  const std::byte* begin() const { return start_ + begin_; }
  const std::byte* end() const { return start_ + end_; }
  bool isPacked() const;
  void deliver() const;  // from the copy, if there is one

 private:
  void placeInBuffer();
  void placeInCopy(bool holds);
  std::ptrdiff_t displacement(std::size_t rank) const;

  const Layout& layout_;
  const void* buffer_;
  const int* elements_;
  const int* places_;
  std::unique_ptr<std::byte[]> copy_;
  std::byte* start_ = nullptr;
  std::size_t begin_ = 0, end_ = 0;
  std::vector<std::size_t> counts_, displs_;
  std::vector<std::ptrdiff_t> packed_;  // where places_ is null
};

}  // namespace weft::mpi
