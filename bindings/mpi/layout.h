// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

namespace weft::mpi {

// How elements of a type lie in memory. Data of any type goes on weft: as the ranks of a broadcast may
// pass other types for the same bytes, one of them alone cannot know that all pass a simple one.
struct Layout {
  explicit Layout(MPI_Datatype of);

  MPI_Datatype type;
  std::size_t size = 0;       // bytes of data
  std::ptrdiff_t extent = 0;  // from one element to the next
  bool isDense = false;  // data without gaps and in order, so that it can go from where it lies
  bool isGood = false;   // MPI knows the type

  std::byte* at(const void* buffer, std::ptrdiff_t element) const {
    return static_cast<std::byte*>(const_cast<void*>(buffer)) + element * extent;
  }
  // `count` elements to and from a run of bytes.
  void pack(const void* from, std::size_t count, std::byte* to) const;
  void unpack(const std::byte* from, void* to, std::size_t count) const;
};

// Memory of a call for `bytes`, uninitialized. Not for nothing: for 0, an address all the same.
std::unique_ptr<std::byte[]> scratch(std::size_t bytes);

// What is sent, as bytes: where it lies, or a packed copy.
class Sent {
 public:
  Sent(const Layout& layout, const void* buffer, std::size_t count);
  const std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> copy_;
  const std::byte* data_;
  std::size_t bytes_;
};

// Where it is received: in place, or in memory that deliver() unpacks.
class Received {
 public:
  // `holds`: it has data already, which must be there.
  Received(const Layout& layout, void* buffer, std::size_t count, bool holds = false);
  std::byte* data() { return data_; }
  std::size_t bytes() const { return bytes_; }
  void deliver() const;

 private:
  const Layout& layout_;
  void* buffer_;
  std::size_t count_;
  std::unique_ptr<std::byte[]> copy_;
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace weft::mpi
