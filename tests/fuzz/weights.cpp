// SPDX-License-Identifier: Apache-2.0
// Files of weights, of either kind.
#include "fuzz.h"
#include "tools/train/failure.h"
#include "tools/train/weights/file_formats.h"

namespace weft::fuzz {

void tryInput(Input input) {
  constexpr std::int64_t kMost = 1 << 16;  // a stride of 0 makes much of little
  std::vector<train::StoredTensor> tensors;
  try {
    tensors = train::tensorsOf(input, "weights");
  } catch (const train::Failure&) {
    return;
  }
  for (const train::StoredTensor& tensor : tensors) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape)
      elements = extent > kMost ? kMost + 1 : std::min(elements * extent, kMost + 1);
    if (tensor.type == train::StoredType::kNoFloat || elements > kMost) continue;
    require(train::floatsOf(tensor).size() == static_cast<std::size_t>(elements),
            "all of it is read");
  }
}

}  // namespace weft::fuzz
