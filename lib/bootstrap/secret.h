// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace weft::bootstrap {

// The job's shared secret from WEFT_SECRET or the file WEFT_SECRET_FILE (a regular file, ours,
// closed to group and others, at most 4 KiB, trailing line break dropped). Empty if neither is set.
Status readSecret(std::string* secret);

// For where no unique id is handed over: the shared secret, else what WEFT_AUTH says: "require" is
// an error, "auto" and "off" take `jobId` instead. *worthAWarning: it did, under "auto", so anybody
// who knows the job's id may join.
Status secretForJob(std::string_view jobId, std::string* secret, bool* worthAWarning);

}  // namespace weft::bootstrap
