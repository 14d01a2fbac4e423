// SPDX-License-Identifier: Apache-2.0
#include "blocks.h"

#include <algorithm>

namespace weft::mpi {

Blocks::Blocks(const Layout& layout, const void* buffer, const int* counts, const int* displs,
               int ranks, bool holds, Where where)
    : layout_(layout), buffer_(buffer), elements_(counts), places_(displs) {
  std::ptrdiff_t at = 0;
  for (int r = 0; r < ranks; ++r) {
    counts_.push_back(static_cast<std::size_t>(counts[r]) * layout.size);
    packed_.push_back(at);
    at += counts[r];
  }
  displs_.assign(counts_.size(), 0);
  if (layout.isDense && where == Where::InPlace)
    placeInBuffer();
  else
    placeInCopy(holds);
}

std::ptrdiff_t Blocks::displacement(std::size_t rank) const {
  return places_ == nullptr ? packed_[rank] : places_[rank];
}

// MPI's displacements may be negative: the first block's is the start.
void Blocks::placeInBuffer() {
  std::ptrdiff_t first = 0;
  bool isFirst = true;
  for (std::size_t r = 0; r < counts_.size(); ++r) {
    if (counts_[r] == 0) continue;
    first = isFirst ? displacement(r) : std::min(first, displacement(r));
    isFirst = false;
  }
  start_ = layout_.at(buffer_, first);
  for (std::size_t r = 0; r < counts_.size(); ++r) {
    if (counts_[r] == 0) continue;
    displs_[r] = static_cast<std::size_t>((displacement(r) - first) * layout_.extent);
    end_ = std::max(end_, displs_[r] + counts_[r]);
  }
}

void Blocks::placeInCopy(bool holds) {
  for (std::size_t r = 0; r < counts_.size(); ++r) {
    displs_[r] = end_;
    end_ += counts_[r];
  }
  copy_ = scratch(end_);
  start_ = copy_.get();
  for (std::size_t r = 0; r < counts_.size() && holds; ++r)
    if (counts_[r] != 0)
      layout_.pack(layout_.at(buffer_, displacement(r)), static_cast<std::size_t>(elements_[r]),
                   start_ + displs_[r]);
}

bool Blocks::isPacked() const {
  std::size_t at = 0;
  for (std::size_t r = 0; r < counts_.size(); at += counts_[r++])
    if (counts_[r] != 0 && displs_[r] != at) return false;
  return true;
}

void Blocks::deliver() const {
  if (!copy_) return;
  for (std::size_t r = 0; r < counts_.size(); ++r)
    if (counts_[r] != 0)
      layout_.unpack(copy_.get() + displs_[r], layout_.at(buffer_, displacement(r)),
                     static_cast<std::size_t>(elements_[r]));
}

}  // namespace weft::mpi
