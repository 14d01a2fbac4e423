// SPDX-License-Identifier: Apache-2.0
// The pickles of torch.save: as they come, or between the beginning and the end that every state
// dict has.
#include "tools/train/weights/unpickler.h"

#include <set>

#include "fuzz.h"
#include "tools/train/failure.h"

namespace weft::fuzz {
namespace {

void tryPickle(Input pickle) {
  std::vector<train::PickledTensor> tensors;
  try {
    tensors = train::tensorsOfPickle(pickle, "pickle", 0);
  } catch (const train::Failure&) {
    return;
  }
  std::set<std::string> names;
  for (const train::PickledTensor& tensor : tensors) {
    require(names.insert(tensor.name).second, "a name comes once");
    require(tensor.shape.size() == tensor.strides.size(), "an extent has a stride");
    require(tensor.storageType.ends_with("Storage"), "a type of storage");
    for (const std::int64_t extent : tensor.shape) require(extent >= 0, "an extent");
    for (const std::int64_t stride : tensor.strides) require(stride >= 0, "a stride");
  }
}

}  // namespace

void tryInput(Input input) {
  tryPickle(input);
  const std::string framed =
      "\x80\x02"
      "ccollections\nOrderedDict\n)R(" +
      std::string(textOf(input)) + "u.";
  tryPickle({reinterpret_cast<const std::uint8_t*>(framed.data()), framed.size()});
}

}  // namespace weft::fuzz
