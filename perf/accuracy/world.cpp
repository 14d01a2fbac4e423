// SPDX-License-Identifier: Apache-2.0
#include "perf/accuracy/world.h"

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
            {"forms", Json::array()}};
  for (const Form& form : measured.forms)
    json["forms"].push_back(
        {{"name", form.name}, {"probe_ns", form.probeNs}, {"turns_ns", form.turns}});
  return json;
}

Measured pointFrom(const Json& json) {
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
  return measured;
}

World worldFrom(const Json& json) {
  World world;
  json.at("ranks").get_to(world.ranks);
  world.tuning = tuningFrom(json.at("tuning"), world.ranks);
  for (const Json& round : json.at("rounds"))
    world.rounds.push_back(machineFrom(round.get<std::string>()));
  json.at("calibration").get_to(world.calibration);
  json.at("entry_ns").at("steady").get_to(world.entry.steadyNs);
  json.at("entry_ns").at("fresh").get_to(world.entry.freshNs);
  json.at("seconds").get_to(world.seconds);
  json.at("planned_points").get_to(world.planned);
  for (const Json& point : json.at("points")) world.points.push_back(pointFrom(point));
  return world;
}

}  // namespace

nlohmann::ordered_json jsonOf(const World& world) {
  Json json{{"ranks", world.ranks},
            {"tuning", tuningJson(world.tuning)},
            {"rounds", Json::array()},
            {"calibration", world.calibration},
            {"entry_ns", {{"steady", world.entry.steadyNs}, {"fresh", world.entry.freshNs}}},
            {"seconds", world.seconds},
            {"planned_points", world.planned},
            {"points", Json::array()}};
  for (const tune::Machine& round : world.rounds) json["rounds"].push_back(tune::toText(round));
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
