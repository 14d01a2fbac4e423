// SPDX-License-Identifier: Apache-2.0
#include "perf/weft-perf/recipe.h"

#include <algorithm>
#include <cstring>

#include "perf/weft-perf/draw.h"

namespace weft::perf {
namespace {

constexpr std::size_t kTile = 2048;  // elements drawn at once, because `out` may be unaligned

template <class T>
void drawTiles(const Draw<T>& draw, std::size_t begin, std::size_t count, void* out) {
  T tile[kTile];
  auto* bytes = static_cast<unsigned char*>(out);
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t length = std::min(kTile, count - done);
    draw.fill(begin + done, length, tile);
    std::memcpy(bytes + done * sizeof(T), tile, length * sizeof(T));
  }
}

}  // namespace

const char* nameOf(Fill fill) {
  constexpr const char* kNames[] = {"exact", "random", "ones"};
  return kNames[static_cast<std::size_t>(fill)];
}

bool Recipe::hasRandomForm() const {
  const bool floating = withType(type, [](auto zero) { return !kIsInteger<decltype(zero)>; });
  return floating && op != Op::None;
}

void drawInput(const Recipe& recipe, int rank, std::size_t begin, std::size_t count, void* out) {
  withType(recipe.type,
           [&](auto zero) { drawTiles(Draw<decltype(zero)>(recipe, rank), begin, count, out); });
}

Scalar preMultiplier(const Recipe& recipe, int rank) {
  Scalar scalar;
  withType(recipe.type, [&](auto zero) {
    using T = decltype(zero);
    const T weight = narrow<T>(static_cast<Wide<T>>(weightOf(rank)));
    std::memcpy(scalar.bytes, &weight, sizeof(T));
  });
  return scalar;
}

}  // namespace weft::perf
