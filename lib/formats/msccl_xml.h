// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "formats/limits.h"
#include "formats/msccl.h"

namespace weft::formats {

// MSCCL's XML, in both dialects of msccl-tools: `<step s= srcbuf= srcoff= dstbuf= dstoff= ...>`, and
// `<op step= buf= off= ...>`, which leaves defaults out. Each number is in its range and whatever is
// named exists; what the steps do together is seen by runMsccl(). InvalidArgument names file and line.
Status readMsccl(std::string_view document, const std::string& file, const Limits& limits,
                 MscclAlgorithm* out);

}  // namespace weft::formats
