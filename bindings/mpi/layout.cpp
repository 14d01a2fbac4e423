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

// Elements for MPI_Pack and MPI_Unpack, which MPICH refuses at MPI_BOTTOM, as that is null: these are seen from another
// address then.
class Place {
 public:
  Place(MPI_Datatype type, std::byte* buffer) : type_(type), buffer_(buffer) {
    if (buffer != nullptr) return;
    buffer_ = reinterpret_cast<std::byte*>(kAside);
    const int one = 1;
    const MPI_Aint back = -kAside;
    PMPI_Type_create_hindexed(1, &one, &back, type, &type_);
    PMPI_Type_commit(&type_);
    isMoved_ = true;
  }
  ~Place() {
    if (isMoved_) PMPI_Type_free(&type_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  MPI_Datatype type() const { return type_; }
  std::byte* buffer() const { return buffer_; }

 private:
  static constexpr MPI_Aint kAside = 64;  // aligned for all types
  MPI_Datatype type_;
  std::byte* buffer_;
  bool isMoved_ = false;
};

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
    const Place place(type, at(from, static_cast<std::ptrdiff_t>(done)));
    int position = 0;
    PMPI_Pack(place.buffer(), static_cast<int>(n), place.type(), to + done * size,
              static_cast<int>(n * size), &position, MPI_COMM_SELF);
    done += n;
  }
}

void Layout::unpack(const std::byte* from, void* to, std::size_t count) const {
  for (std::size_t done = 0; done < count;) {
    const std::size_t n = std::min(elementsAtOnce(*this), count - done);
    const Place place(type, at(to, static_cast<std::ptrdiff_t>(done)));
    int position = 0;
    PMPI_Unpack(from + done * size, static_cast<int>(n * size), &position, place.buffer(),
                static_cast<int>(n), place.type(), MPI_COMM_SELF);
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
