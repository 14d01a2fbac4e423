// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "perf/common/median.h"

namespace weft::accuracy {
namespace {

using Json = nlohmann::ordered_json;
using Meant = std::function<bool(const Verdict&)>;

constexpr const char* kColumns =
    " points | error: median % | p90 % | inside % | other forms: median % | p90 % | regret: mean | "
    "most | at most 1.10: % |\n";
constexpr const char* kRule = "---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";

// In a column of microseconds.
std::string us(double ns) {
  const double value = ns / 1e3;
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

std::string cells(const Tally& tally) {
  const Errors &own = tally.errors, &others = tally.otherErrors;
  const Regrets& regrets = tally.regrets;
  return fmt::format(
      " {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.3f} | {:.2f} | {:.0f} |\n", own.points,
      100 * own.median, 100 * own.p90, 100 * own.insideShare(), 100 * others.median,
      100 * others.p90, regrets.mean, regrets.most, 100 * regrets.within);
}

std::string row(const std::string& name, const std::vector<Verdict>& verdicts,
                const Meant& isMeant) {
  const Tally tally = tallyOf(verdicts, isMeant);
  return tally.errors.points == 0 ? "" : "| " + name + " |" + cells(tally);
}

std::string bySize(const std::vector<Verdict>& verdicts, const Meant& isMeant) {
  std::set<std::size_t> sizes;
  for (const Verdict& verdict : verdicts) sizes.insert(verdict.measured->point.bytes);
  std::string rows = fmt::format("| size |{}|---:|{}", kColumns, kRule);
  for (const std::size_t size : sizes)
    rows += row(sizeText(size), verdicts,
                [&](const Verdict& v) { return v.measured->point.bytes == size && isMeant(v); });
  constexpr std::size_t kLong = 64 << 10;
  rows += row("below 64K", verdicts,
              [&](const Verdict& v) { return v.measured->point.bytes < kLong && isMeant(v); });
  rows += row("from 64K", verdicts,
              [&](const Verdict& v) { return v.measured->point.bytes >= kLong && isMeant(v); });
  return rows + row("all", verdicts, isMeant);
}

std::string byKind(const std::vector<Verdict>& verdicts) {
  std::string rows = fmt::format("| calls |{}|---|{}", kColumns, kRule);
  for (const Mode mode : {Mode::Steady, Mode::Fresh})
    for (const bool own : {false, true})
      rows += row(fmt::format("{}, {}", nameOf(mode), own ? "own" : "any"), verdicts,
                  [&](const Verdict& v) {
                    return v.measured->point.mode == mode && v.measured->point.own == own;
                  });
  for (const perf::Collective& collective : perf::allCollectives())
    rows += row(collective.name, verdicts,
                [&](const Verdict& v) { return v.measured->point.collective == &collective; });
  return rows;
}

std::string nameOf(const Verdict& verdict, std::size_t form) {
  const std::string& name = verdict.measured->forms[form].name;
  return name.empty() ? verdict.forecasts[0].algorithm : name;
}

double measuredNs(const Verdict& verdict, std::size_t form) {
  return tools::median(verdict.measured->forms[form].turns);
}

std::string worstOf(const std::vector<Verdict>& verdicts, std::size_t most) {
  std::vector<const Verdict*> costly;
  for (const Verdict& verdict : verdicts)
    if (verdict.isMeasured && verdict.regret > 1.05 && verdict.best != verdict.chosen)
      costly.push_back(&verdict);
  std::ranges::stable_sort(costly, std::ranges::greater(), &Verdict::regret);
  costly.resize(std::min(costly.size(), most));
  if (costly.empty()) return "";
  std::string rows =
      "\n| ranks | point | chosen | measured us | predicted | model | best | measured us | "
      "predicted | "
      "model | regret |\n|---:|---|---|---:|---:|---:|---|---:|---:|---:|---:|\n";
  for (const Verdict* v : costly) {
    const Forecast &chosen = v->forecasts[0], &best = v->forecasts[v->best];
    rows += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2f} |\n",
                        v->world->ranks, textOf(v->measured->point), nameOf(*v, v->chosen),
                        us(v->measuredNs), us(chosen.ns), us(chosen.modelNs), nameOf(*v, v->best),
                        us(measuredNs(*v, v->best)), us(best.ns), us(best.modelNs), v->regret);
  }
  return rows;
}

// The same form twice in the same turns: what is left is noise.
std::string noiseOf(const std::vector<Verdict>& verdicts) {
  std::vector<double> apart;
  for (const Verdict& v : verdicts)
    if (v.isMeasured && v.again > 0) apart.push_back(std::max(v.again, 1 / v.again));
  return fmt::format(
      "The same form measured twice, by turns: {:.3f} apart in the median, {:.3f} at "
      "the 90th percentile, of {} points.\n",
      quantile(apart, 0.5), quantile(apart, 0.9), apart.size());
}

std::string changesOf(const std::vector<Verdict>& verdicts) {
  std::size_t changed = 0, unknown = 0;
  for (const Verdict& v : verdicts) {
    changed += v.isSame ? 0 : 1;
    unknown += v.isMeasured ? 0 : 1;
  }
  if (changed + unknown == 0) return "";
  return fmt::format(
      "Of {} points another op list would run today than was measured as the choice; "
      "of {} it was not measured, and they are left out.\n",
      changed, unknown);
}

std::string worldText(const World& world) {
  std::size_t turns = 0, least = ~std::size_t{0};
  for (const Measured& measured : world.points) {
    turns += measured.forms[0].turns.size();
    least = std::min(least, measured.forms[0].turns.size());
  }
  const auto [shortest, longest] = std::ranges::minmax(
      world.states, {}, [](const State& state) { return state.entry.steadyNs; });
  return fmt::format(
      "{} ranks on {} cores, {} of {} points in {:.0f} s, {} turns at least, {} in all; "
      "calibration: {}; measured again {} times meanwhile, when a message of 8 bytes among others "
      "took {:.3f} to {:.3f} us",
      world.ranks, world.tuning.costs.cores, world.points.size(), world.planned, world.seconds,
      world.points.empty() ? 0 : least, turns, world.calibration, world.states.size() - 1,
      shortest.entry.steadyNs / 1e3, longest.entry.steadyNs / 1e3);
}

Json formJson(const Verdict& verdict, std::size_t form) {
  const Forecast& forecast = verdict.forecasts[form];
  return {{"name", verdict.measured->forms[form].name},
          {"algorithm", forecast.algorithm},
          {"measured_ns", measuredNs(verdict, form)},
          {"predicted_ns", forecast.ns},
          {"predicted_low_ns", forecast.lowNs},
          {"predicted_high_ns", forecast.highNs},
          {"model_ns", forecast.modelNs}};
}

Json verdictJson(const Verdict& verdict) {
  const Point& point = verdict.measured->point;
  Json json{{"ranks", verdict.world->ranks},
            {"collective", point.collective->name},
            {"size_bytes", point.bytes},
            {"buffers", point.own ? "own" : "any"},
            {"mode", nameOf(point.mode)},
            {"op_list_is_as_measured", verdict.isSame},
            {"error", verdict.error},
            {"samples", verdict.samples},
            {"samples_inside", verdict.inside},
            {"regret", verdict.regret},
            {"chosen", nameOf(verdict, verdict.chosen)},
            {"best", nameOf(verdict, verdict.best)}};
  for (std::size_t i = 0; i < verdict.forecasts.size(); ++i)
    json["forms"].push_back(formJson(verdict, i));
  return json;
}

}  // namespace

std::string tablesOf(const Head& head, const std::vector<World>& worlds,
                     const std::vector<Verdict>& verdicts, std::size_t worst) {
  std::string text =
      fmt::format("Written by `{}` on {}, {}.\n\n", head.command, head.machine, head.date);
  for (const World& world : worlds) text += "- " + worldText(world) + "\n";
  text += "\n" + noiseOf(verdicts) + changesOf(verdicts);
  for (const World& world : worlds)
    text += fmt::format("\n**{} ranks**\n\n{}", world.ranks,
                        bySize(verdicts, [&](const Verdict& v) { return v.world == &world; }));
  text += "\n**All**\n\n" + bySize(verdicts, [](const Verdict&) { return true; });
  text += "\n" + byKind(verdicts);
  return text + worstOf(verdicts, worst);
}

std::string jsonOf(const Head& head, const std::vector<World>& worlds,
                   const std::vector<Verdict>& verdicts) {
  Json json{{"command", head.command}, {"machine", head.machine}, {"kind", head.kind},
            {"date", head.date},       {"worlds", Json::array()}, {"verdicts", Json::array()}};
  for (const World& world : worlds) json["worlds"].push_back(jsonOf(world));
  for (const Verdict& verdict : verdicts)
    if (verdict.isMeasured) json["verdicts"].push_back(verdictJson(verdict));
  return json.dump(1) + "\n";
}

Status readReport(const std::string& file, Head* head, std::vector<World>* worlds) {
  std::ifstream in(file);
  const Json json = Json::parse(in, nullptr, false);
  const bool isReport = json.is_object() && json.contains("worlds") && json["worlds"].is_array();
  if (!isReport)
    return Status::error(Code::InvalidArgument, file,
                         " holds no report; fix: a file of weft-accuracy --json");
  *head = {json.value("command", ""), json.value("machine", ""), json.value("kind", ""),
           json.value("date", "")};
  for (const Json& world : json["worlds"]) WEFT_TRY(readWorld(world, &worlds->emplace_back()));
  return {};
}

}  // namespace weft::accuracy
