// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/world.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace weft::accuracy {
namespace {

using Json = nlohmann::ordered_json;

Json tuningJson(const plan::Tuning& tuning) {
  return {{"cores", tuning.costs.cores},
          {"direct", tuning.direct},
          {"shares", tuning.shares},
          {"shares_all", tuning.sharesAll},
          {"maps", tuning.maps},
          {"one_process", tuning.costs.oneProcess},
          {"nodes", tuning.nodes},
          {"memory_nodes", tuning.costs.memoryNodes},
          {"machine", tune::toText(tuning.costs.machine)}};
}

tune::Machine machineFrom(const std::string& text) {
  tune::Machine machine;
  if (!tune::parse(text, &machine))
    throw std::invalid_argument("a machine's figures are of no use");
  return machine;
}

plan::Tuning tuningFrom(const Json& json, std::uint32_t ranks) {
  plan::Tuning tuning;
  tuning.ranks = ranks;
  json.at("nodes").get_to(tuning.nodes);
  json.at("direct").get_to(tuning.direct);
  json.at("shares").get_to(tuning.shares);
  json.at("shares_all").get_to(tuning.sharesAll);
  tuning.maps = json.value("maps", false);
  json.at("cores").get_to(tuning.costs.cores);
  json.at("one_process").get_to(tuning.costs.oneProcess);
  json.at("memory_nodes").get_to(tuning.costs.memoryNodes);
  tuning.costs.machine = machineFrom(json.at("machine").get<std::string>());
  return tuning;
}

Json pointJson(const Measured& measured) {
  Json json{{"collective", measured.point.collective->name},
            {"size_bytes", measured.point.bytes},
            {"buffers", measured.point.own ? "own" : "any"},
            {"mode", nameOf(measured.point.mode)},
            {"chosen", measured.chosen},
            {"plan_hash", measured.hash},
            {"states", measured.states},
            {"forms", Json::array()}};
  for (const Form& form : measured.forms)
    json["forms"].push_back(
        {{"name", form.name}, {"probe_ns", form.probeNs}, {"turns_ns", form.turns}});
  return json;
}

Json stateJson(const State& state) {
  return {{"machine", tune::toText(state.machine)},
          {"steady_entry_ns", state.entry.steadyNs},
          {"fresh_entry_ns", state.entry.freshNs}};
}

State stateFrom(const Json& json) {
  return {machineFrom(json.at("machine").get<std::string>()),
          {json.at("steady_entry_ns").get<double>(), json.at("fresh_entry_ns").get<double>()}};
}

Measured pointFrom(const Json& json, std::size_t states) {
  Measured measured;
  measured.point = {&perf::parseCollective(json.at("collective").get<std::string>()),
                    json.at("size_bytes").get<std::size_t>(),
                    json.at("buffers").get<std::string>() == "own",
                    parseMode(json.at("mode").get<std::string>())};
  json.at("chosen").get_to(measured.chosen);
  json.at("plan_hash").get_to(measured.hash);
  for (const Json& form : json.at("forms"))
    measured.forms.push_back({form.at("name").get<std::string>(), form.at("turns_ns").get<Turns>(),
                              form.at("probe_ns").get<double>()});
  if (measured.forms.empty()) throw std::invalid_argument("a point has no forms");
  json.at("states").get_to(measured.states);
  if (measured.states.size() != measured.forms[0].turns.size() || measured.states.empty() ||
      std::ranges::max(measured.states) >= states)
    throw std::invalid_argument("a point's turns follow no state of the machine");
  return measured;
}

World worldFrom(const Json& json) {
  World world;
  json.at("ranks").get_to(world.ranks);
  world.tuning = tuningFrom(json.at("tuning"), world.ranks);
  for (const Json& state : json.at("states")) world.states.push_back(stateFrom(state));
  json.at("calibration").get_to(world.calibration);
  json.at("seconds").get_to(world.seconds);
  json.at("planned_points").get_to(world.planned);
  for (const Json& point : json.at("points"))
    world.points.push_back(pointFrom(point, world.states.size()));
  return world;
}

}  // namespace

nlohmann::ordered_json jsonOf(const World& world) {
  Json json{{"ranks", world.ranks},
            {"tuning", tuningJson(world.tuning)},
            {"calibration", world.calibration},
            {"states", Json::array()},
            {"seconds", world.seconds},
            {"planned_points", world.planned},
            {"points", Json::array()}};
  for (const State& state : world.states) json["states"].push_back(stateJson(state));
  for (const Measured& measured : world.points) json["points"].push_back(pointJson(measured));
  return json;
}

Status readWorld(const nlohmann::ordered_json& json, World* world) {
  try {
    *world = worldFrom(json);
  } catch (const std::exception& error) {
    return Status::error(Code::InvalidArgument,
                         "not what weft-accuracy has measured: ", error.what(),
                         "; fix: a file of weft-accuracy --json");
  }
  return {};
}

}  // namespace weft::accuracy
