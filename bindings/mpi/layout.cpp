// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

#include <algorithm>
#include <climits>

#include "types.h"

namespace weft::mpi {
namespace {

// MPI packs so many bytes at once, as it counts them in an int.
std::size_t elementsAtOnce(const Layout& layout) {
  return std::max<std::size_t>(1, INT_MAX / std::max<std::size_t>(1, layout.size));
}

}  // namespace

Layout::Layout(MPI_Datatype of) : type(of) {
  int bytes = 0;
  MPI_Aint lower = 0, span = 0;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &bytes) != MPI_SUCCESS || bytes < 0 ||
      PMPI_Type_get_extent(type, &lower, &span) != MPI_SUCCESS)
    return;
  size = static_cast<std::size_t>(bytes);
  extent = span;
  isDense = isDensePredefined(type);
  isGood = true;
}

void Layout::pack(const void* from, std::size_t count, std::byte* to) const {
  for (std::size_t done = 0; done < count;) {
    const std::size_t n = std::min(elementsAtOnce(*this), count - done);
    int position = 0;
    PMPI_Pack(at(from, static_cast<std::ptrdiff_t>(done)), static_cast<int>(n), type,
              to + done * size, static_cast<int>(n * size), &position, MPI_COMM_SELF);
    done += n;
  }
}

void Layout::unpack(const std::byte* from, void* to, std::size_t count) const {
  for (std::size_t done = 0; done < count;) {
    const std::size_t n = std::min(elementsAtOnce(*this), count - done);
    int position = 0;
    PMPI_Unpack(from + done * size, static_cast<int>(n * size), &position,
                at(to, static_cast<std::ptrdiff_t>(done)), static_cast<int>(n), type,
                MPI_COMM_SELF);
    done += n;
  }
}

std::unique_ptr<std::byte[]> scratch(std::size_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(1, bytes));
}

Sent::Sent(const Layout& layout, const void* buffer, std::size_t count)
    : data_(static_cast<const std::byte*>(buffer)), bytes_(count * layout.size) {
  if (layout.isDense || bytes_ == 0) return;
  copy_ = scratch(bytes_);
  layout.pack(buffer, count, copy_.get());
  data_ = copy_.get();
}

Received::Received(const Layout& layout, void* buffer, std::size_t count, bool holds)
    : layout_(layout),
      buffer_(buffer),
      count_(count),
      data_(static_cast<std::byte*>(buffer)),
      bytes_(count * layout.size) {
  if (layout.isDense || bytes_ == 0) return;
  copy_ = scratch(bytes_);
  if (holds) layout.pack(buffer, count, copy_.get());
  data_ = copy_.get();
}

void Received::deliver() const {
  if (copy_) layout_.unpack(copy_.get(), buffer_, count_);
}

}  // namespace weft::mpi
