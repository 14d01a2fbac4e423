// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>

#include "tools/train/failure.h"

namespace weft::train {

// An error of libtorch in one line, without its backtrace; want of memory is no bug.
Failure failureOf(const c10::Error& error);

}  // namespace weft::train
