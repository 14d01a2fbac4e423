// SPDX-License-Identifier: Apache-2.0
// The index of a Megatron dataset.
#include "fuzz.h"
#include "tools/train/failure.h"
#include "tools/train/megatron_data.h"

namespace weft::fuzz {

void tryInput(Input input) {
  try {
    const train::MegatronIndex index = train::parseMegatronIndex(input, "index");
    require(12 * index.lengths.size() < input.size(), "a sequence is of twelve bytes in it");
    for (const std::int32_t length : index.lengths) require(length >= 0, "a length");
    train::checkTokensOf(index, "index", "tokens", 1 << 20);
  } catch (const train::Failure&) {
  }
}

}  // namespace weft::fuzz
