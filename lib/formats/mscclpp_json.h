// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "formats/limits.h"
#include "formats/mscclpp.h"

namespace weft::formats {

// MSCCL++'s JSON. Where several blocks share an op (tbg_info), each chunk becomes as many, and each
// block takes its own; a pipeline is one turn of itself. Flushes are left out, as weft's puts say when
// their sources are free.
//
// What goes through a switch's multicast memory (glres, gstore, gstorepkt) is refused: weft has no such
// thing. InvalidArgument names file and line.
Status readMscclpp(std::string_view document, const std::string& file, const Limits& limits,
                   MscclppPlan* out);

}  // namespace weft::formats
