// SPDX-License-Identifier: Apache-2.0
#include "shard/config.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "base/invalid.h"
#include "base/text.h"
#include "comm/agree.h"

namespace weft::shard {
namespace {

std::uint64_t fingerprint(const ShardConfig& c) {
  Hash hash;
  hash.add(c.degrees.param).add(c.degrees.grad).add(c.degrees.state).add(c.bucketElements);
  for (const reduce::DType t : {c.paramType, c.gradType, c.wireType})
    hash.add(static_cast<std::uint64_t>(t));
  hash.add(static_cast<std::uint64_t>(c.optimizer.kind))
      .add(static_cast<std::uint64_t>(c.rounding));
  for (const double x :
       {c.optimizer.beta1, c.optimizer.beta2, c.optimizer.epsilon, c.optimizer.momentum})
    hash.add(std::bit_cast<std::uint64_t>(x));
  for (const bool flag :
       {c.optimizer.nesterov, c.optimizer.lambOnAll, c.master, c.reproducible, c.eager})
    hash.add(flag ? 1u : 0u);
  return hash.add(c.seed).value();
}

bool isGradientType(reduce::DType t) {
  return t == reduce::DType::F32 || t == reduce::DType::F16 || t == reduce::DType::BF16;
}

Status checkEager(const ShardConfig& c, std::uint32_t ranks) {
  if (!c.eager) return {};
  if (c.degrees.param != 1 || c.degrees.grad != 1 || c.degrees.state != ranks || ranks == 1)
    return invalid("eager steps need the degrees {1, 1, ranks}, on 2 ranks or more");
  if (needsTrust(c.optimizer.kind))
    return invalid("LAMB and LANS cannot step eagerly: their norms are of whole parameters");
  if (c.reproducible) return invalid("eager steps are not reproducible; fix: choose one of them");
  if (reduce::sizeOf(c.wireType) != reduce::sizeOf(c.paramType))
    return invalid("eager steps need a wire type as long as the parameters' type");
  return {};
}

// Sums of groups are whole nodes of the tree over all micro-batches where groups are powers of two.
Status checkReproducible(const ShardConfig& c, std::uint32_t ranks) {
  if (!c.reproducible) return {};
  if (c.gradType != reduce::DType::F32 || c.wireType != reduce::DType::F32)
    return invalid("reproducible runs need fp32 gradients on an fp32 wire");
  const Levels levels(c.degrees, ranks);
  for (std::size_t i = 0; i + 1 < kLevels; ++i) {
    const auto isOne = [&](Level outer) { return levels.size(outer) == 1; };
    if (std::has_single_bit(levels.size(kAllLevels[i])) ||
        std::all_of(kAllLevels.begin() + i + 1, kAllLevels.end(), isOne))
      continue;
    return invalid(
        "reproducible sums of degrees {", c.degrees.param, ", ", c.degrees.grad, ", ",
        c.degrees.state, "} on ", ranks, " ranks: groups of ", levels.size(kAllLevels[i]),
        " inside of others are no power of two; fix: 2, 4, 8 ... ranks in a group, or one "
        "level, as {1, 1, ",
        ranks, "}");
  }
  return {};
}

// What each rank says of what it wants.
struct Wanted {
  std::uint64_t failed, config, parameters;
  ModelPart part;
};

Status compare(const std::vector<Wanted>& all) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].failed != 0)
      return invalid("rank ", r, " cannot make its shard; fix: its own error says why");
    if (all[r].config != all[0].config)
      return invalid("rank ", r,
                     " has another configuration of the sharded optimizer than rank 0; fix: "
                     "pass the same on all ranks");
    if (all[r].part.index != all[0].part.index || all[r].part.count != all[0].part.count)
      return invalid("rank ", r, " has part ", all[r].part.index, " of ", all[r].part.count,
                     " of the model, rank 0 part ", all[0].part.index, " of ", all[0].part.count,
                     "; fix: config.parts has one rank of each part, ordered by part");
    if (all[r].parameters != all[0].parameters)
      return invalid("rank ", r, " registered ", all[r].parameters, " parameters, rank 0 ",
                     all[0].parameters, "; fix: build the same model on all ranks");
  }
  return {};
}

}  // namespace

Status checkConfig(const ShardConfig& c, std::uint32_t ranks) {
  WEFT_TRY(checkDegrees(c.degrees, ranks));
  if (!isGradientType(c.paramType) || !isGradientType(c.gradType) || !isGradientType(c.wireType))
    return invalid("parameters, gradients and wire must be float32, float16 or bfloat16");
  if (c.gradType != c.wireType && c.gradType != reduce::DType::F32 &&
      c.wireType != reduce::DType::F32)
    return invalid("gradients of one 16-bit type cannot travel as another");
  WEFT_TRY(checkReproducible(c, ranks));
  const OptimizerSettings& o = c.optimizer;
  for (const double beta : {o.beta1, o.beta2, o.momentum})
    if (!(beta >= 0 && beta < 1)) return invalid("betas and momentum must be in [0, 1)");
  if (!(o.epsilon > 0)) return invalid("epsilon must be above 0");
  if (o.kind == Optimizer::Custom && !o.custom)
    return invalid("a custom optimizer needs its function");
  return checkEager(c, ranks);
}

Status agreeOnModel(comm::Communicator& comm, const ShardConfig& config, const ModelPart& part,
                    const Layout& layout, const Status& mine) {
  const std::size_t n = layout.parameters().size();
  const int timeoutMs = comm.config().timeoutMs;
  std::vector<Wanted> wanted;
  WEFT_TRY(comm::gatherRecords(&comm, Wanted{mine.ok() ? 0u : 1u, fingerprint(config), n, part},
                               &wanted, timeoutMs, "shard"));
  WEFT_TRY(mine);
  WEFT_TRY(compare(wanted));
  std::vector<std::uint64_t> prints, all(n * comm.ranks());
  for (std::uint32_t p = 0; p < n; ++p) prints.push_back(layout.fingerprint(p));
  WEFT_TRY(comm.allGather(prints.data(), all.data(), n, reduce::DType::U64, timeoutMs, "shard"));
  for (std::size_t i = n; i < all.size(); ++i) {
    const std::size_t r = i / n, p = i % n;
    if (all[i] == all[p]) continue;
    const ParameterSpec& spec = layout.parameters()[p];
    return invalid("rank ", r, " has another parameter number ", p, " than rank 0 (here '",
                   spec.name, "', ", spec.elements,
                   " elements); fix: register the same parameters in the same order");
  }
  return {};
}

// Parts may have other parameters, but are stepped alike.
Status agreeOnParts(comm::Communicator& comm, comm::Communicator& parts, const ShardConfig& config,
                    const Status& mine) {
  const int timeoutMs = parts.config().timeoutMs;
  WEFT_TRY(comm::agreeOn(&parts, mine, timeoutMs, "shard"));
  struct Mine {
    std::uint64_t config;
    std::uint32_t rank, ranks;
  };
  std::vector<Mine> all;
  WEFT_TRY(comm::gatherRecords(&parts, Mine{fingerprint(config), comm.rank(), comm.ranks()}, &all,
                               timeoutMs, "shard"));
  for (std::size_t p = 1; p < all.size(); ++p) {
    if (all[p].rank != all[0].rank || all[p].ranks != all[0].ranks)
      return invalid("part ", p, " of the model is on rank ", all[p].rank, " of ", all[p].ranks,
                     ", part 0 on rank ", all[0].rank, " of ", all[0].ranks,
                     "; fix: config.parts joins ranks of equal number, and all parts have as many");
    if (all[p].config != all[0].config)
      return invalid("part ", p,
                     " of the model has another configuration of the sharded optimizer than part "
                     "0; fix: pass the same on all ranks");
  }
  return {};
}

}  // namespace weft::shard
