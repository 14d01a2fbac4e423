// SPDX-License-Identifier: Apache-2.0
#include "engine/junction.h"

namespace weft {

Status Junction::pass() {
  std::unique_lock lock(mutex_);
  if (--missing_ == 0) arrived_.notify_one();
  opened_.wait(lock, [this] { return open_; });
  return result_;
}

bool Junction::awaitStreams(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return arrived_.wait_until(lock, deadline.at(), [this] { return missing_ == 0; });
}

void Junction::open(const Status& result) {
  const std::lock_guard lock(mutex_);
  open_ = true;
  result_ = result;
  opened_.notify_all();
}

}  // namespace weft
