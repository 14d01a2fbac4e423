// SPDX-License-Identifier: Apache-2.0
#include "shard/levels.h"

#include "base/invalid.h"

namespace weft::shard {

Status checkDegrees(const Degrees& d, std::uint32_t ranks) {
  const auto divides = [](std::uint32_t a, std::uint32_t b) { return a != 0 && b % a == 0; };
  if (divides(d.param, d.grad) && divides(d.grad, d.state) && divides(d.state, ranks)) return {};
  return invalid("degrees {", d.param, ", ", d.grad, ", ", d.state, "} on ", ranks,
                 " ranks: each must divide the next, and the last the number of ranks; fix: "
                 "ZeRO-1 is {1, 1, ",
                 ranks, "}, ZeRO-2 {1, ", ranks, ", ", ranks, "}, MiCS {p, p, p} with p a divisor");
}

Levels::Levels(const Degrees& degrees, std::uint32_t ranks)
    : ranks_(ranks),
      sizes_{degrees.param, degrees.grad / degrees.param, degrees.state / degrees.grad,
             ranks / degrees.state} {
  for (std::size_t level = 1; level < kLevels; ++level)
    strides_[level] = strides_[level - 1] * sizes_[level - 1];
}

Levels::Part Levels::partOf(std::uint32_t rank, std::uint64_t bucketElements, Level level) const {
  Part part{0, bucketElements};
  for (const Level l : {Level::Param, Level::Grad, Level::State}) {
    if (l > level) break;
    part.elements /= size(l);
    part.offset += positionOf(rank, l) * part.elements;
  }
  return part;
}

}  // namespace weft::shard
