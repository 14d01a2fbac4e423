// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/contents.h"
#include "formats/flow.h"

namespace weft::formats {

// What the output buffers of all ranks hold at the end becomes the flow's outputs. InvalidArgument,
// with the line that was the last to store it, or that of the rank, if it is not what the collective
// wants.
Status setResults(const Form& form, const std::string& file, std::vector<Contents>* contents,
                  Flow* flow);

}  // namespace weft::formats
