// SPDX-License-Identifier: Apache-2.0
#include "tools/train/attention_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include "tools/train/failure.h"

namespace weft::train {

double attentionBytes(const Options& options) {
  const double element = options.bf16 || options.params != Params::kFloat32 ? 2 : 4;
  const auto length = static_cast<double>(options.length);
  return static_cast<double>(options.batch * options.shape.heads) /
         static_cast<double>(options.tensor) * length * length * element;
}

void checkAttentionFits(const Options& options, double hostBytes) {
  const double bytes = attentionBytes(options);
  if (bytes <= hostBytes) return;
  throw Failure(
      Exit::kConfiguration,
      fmt::format("--seq {} with --batch {} and {} heads takes {:.3g} GB for the attention "
                  "of one layer, and this host has {:.3g} GB; lower --seq or --batch",
                  options.length, options.batch, options.shape.heads, bytes / 1e9,
                  hostBytes / 1e9));
}

double bytesOfThisHost() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace weft::train
