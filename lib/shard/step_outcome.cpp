// SPDX-License-Identifier: Apache-2.0
#include "shard/step_outcome.h"

#include <bit>
#include <cmath>

#include "base/hash.h"
#include "base/invalid.h"
#include "base/text.h"

namespace weft::shard {
namespace {

std::uint64_t fingerprint(const MicroStepArgs& args, std::uint64_t microSteps) {
  Hash hash;
  for (const double x :
       {args.learningRate, args.weightDecay, args.clipNorm, args.lossScale, args.divisor})
    hash.add(std::bit_cast<std::uint64_t>(x));
  return hash.add(args.skipNonFinite ? 1u : 0u).add(microSteps).value();
}

// Who brought it, seen by the last sum: that of the outermost group.
std::int32_t badRankOf(const GradientReport& report, const Mesh& mesh) {
  if (report.badMember < 0) return -1;
  for (auto level = kAllLevels.rbegin(); level != kAllLevels.rend(); ++level)
    if (mesh.size(*level) > 1)
      return static_cast<std::int32_t>(
          mesh.rankOf(*level, static_cast<std::uint32_t>(report.badMember)));
  return 0;
}

void findBad(const std::vector<StepReport>& reports, const Layout& layout, PartReport* part) {
  std::uint64_t firstBad = reduce::GradientStats::kNone;
  for (const StepReport& report : reports) {
    part->nonFinite += report.nonFinite;
    if (report.firstBad >= firstBad) continue;
    firstBad = report.firstBad;
    part->badParameter = static_cast<std::int32_t>(layout.parameterAt(firstBad));
    part->badRank = report.badRank;
  }
  // Where sums of groups are summed, or micro-steps were before, who did it was seen then.
  std::uint64_t earliest = ~std::uint64_t{0};
  for (const StepReport& report : reports) {
    const auto& [index, rank, when] = report.early;
    if (index != firstBad || rank < 0 || when >= earliest) continue;
    earliest = when;
    part->badRank = rank;
  }
}

std::string misuseIn(const std::vector<StepReport>& reports, const Layout& layout) {
  for (std::size_t r = 0; r < reports.size(); ++r) {
    if (reports[r].missing != 0)
      return text("parameter '", layout.parameters()[reports[r].missing - 1].name,
                  "' was never ready on rank ", r,
                  "; no rank has stepped; fix: weftGradReady for every trained parameter");
    if (reports[r].args != reports[0].args)
      return text("rank ", r, " has other weftStepArgs than rank 0; fix: pass the same");
  }
  return {};
}

// Of those that have found anything.
void findBadPart(const std::vector<PartReport>& parts, StepOutcome* outcome) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    outcome->nonFinite += parts[p].nonFinite;
    if (parts[p].badParameter < 0 || outcome->badPart >= 0) continue;
    outcome->badPart = static_cast<int>(p);
    outcome->badParameter = parts[p].badParameter;
    outcome->badRank = parts[p].badRank;
  }
}

}  // namespace

Status checkArgs(const MicroStepArgs& args, bool eager) {
  if (!(args.learningRate >= 0) || !(args.weightDecay >= 0) || !(args.clipNorm >= 0) ||
      !(args.lossScale > 0) || !(args.divisor >= 0))
    return invalid(
        "learningRate, weightDecay, clipNorm and divisor must be 0 or more, lossScale "
        "above 0");
  if (eager && args.boundary && (args.clipNorm > 0 || args.skipNonFinite))
    return invalid(
        "an eager shard neither clips nor skips: it has stepped before it knows the norm; "
        "fix: clipNorm = 0 and skipNonFinite = 0, or create it without eager");
  return {};
}

double averagingOf(const MicroStepArgs& args, std::uint32_t ranks) {
  return 1 / ((args.divisor > 0 ? args.divisor : ranks) * args.lossScale);
}

StepReport reportOf(Reducer& reducer, const Mesh& mesh, const MicroStepArgs& args,
                    std::uint64_t microSteps, std::uint32_t missing) {
  const GradientReport& report = reducer.report();
  return {.squares = report.squares,
          .nonFinite = report.nonFinite,
          .firstBad = report.firstBad,
          .badRank = badRankOf(report, mesh),
          .missing = missing,
          .args = fingerprint(args, microSteps),
          .early = reducer.earlyBad()};
}

PartReport partReportOf(const std::vector<StepReport>& reports, const Layout& layout,
                        std::string* misuse) {
  PartReport part{.squares = {},
                  .nonFinite = 0,
                  .badParameter = -1,
                  .badRank = -1,
                  .args = reports[0].args,
                  .misused = 0};
  findBad(reports, layout, &part);
  *misuse = misuseIn(reports, layout);
  part.misused = misuse->empty() ? 0 : 1;
  for (const StepReport& report : reports) part.squares.add(report.squares);
  return part;
}

std::string decideStep(const std::vector<PartReport>& parts, const MicroStepArgs& args,
                       std::uint32_t ranks, StepOutcome* outcome) {
  findBadPart(parts, outcome);
  reduce::ExactSum squares;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].misused != 0)
      return text("the ranks with part ", p,
                  " of the model have called the step off; no rank has stepped; fix: their own "
                  "error says why");
    if (parts[p].args != parts[0].args)
      return text("part ", p,
                  " of the model has other weftStepArgs than part 0; fix: pass the same");
    squares.add(parts[p].squares);
  }
  outcome->gradientNorm = std::sqrt(squares.value()) * averagingOf(args, ranks);
  outcome->skipped = outcome->nonFinite != 0 && args.skipNonFinite;
  if (args.clipNorm > 0 && outcome->gradientNorm > args.clipNorm)
    outcome->clip = args.clipNorm / outcome->gradientNorm;
  return {};
}

}  // namespace weft::shard
