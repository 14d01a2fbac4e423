// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/autocast_mode.h>

namespace weft::train {

// Matrix products take bf16 copies of fp32 weights while one of these lives, if it is enabled.
class Autocast {
 public:
  explicit Autocast(bool enabled) : enabled_(enabled) {
    if (!enabled_) return;
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(true);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (!enabled_) return;
    at::autocast::set_cpu_enabled(false);
    at::autocast::clear_cache();  // the bf16 copies of the weights
  }

 private:
  bool enabled_;
};

}  // namespace weft::train
