// SPDX-License-Identifier: Apache-2.0
#include "plan/forced.h"

#include <algorithm>

#include "base/text.h"
#include "schedule/registry.h"

namespace weft::plan {
namespace {

// "mesh:direct" in its two parts.
struct Name {
  explicit Name(std::string_view text)
      : algorithm(text.substr(0, text.find(':'))),
        protocol(text.substr(std::min(text.size(), algorithm.size() + 1))),
        hasProtocol(algorithm.size() < text.size()) {}
  std::string_view algorithm, protocol;
  bool hasProtocol;
};

bool isShared(std::string_view name) {
  return std::ranges::any_of(schedule::algorithms(), [&](const schedule::Algorithm& a) {
    return a.shared && a.name == name;
  });
}

// The knob speaks to all calls of a job: where only other collectives have that algorithm, it says
// nothing.
bool concerns(const Tuning& tuning, schedule::Collective collective) {
  const std::string_view name = Name(tuning.algorithm).algorithm;
  if (tuning.imported && tuning.imported->name == name)
    return tuning.imported->algorithm.collective == collective;
  return schedule::findAlgorithm(collective, name) != nullptr ||
         std::ranges::none_of(schedule::algorithms(),
                              [&](const schedule::Algorithm& a) { return a.name == name; });
}

Status checkProtocol(std::string_view forced, const Name& name) {
  if (!name.hasProtocol || std::ranges::count(kProtocolNames, name.protocol) > 0) return {};
  return Status::error(
      Code::InvalidUsage, "algorithm '", forced, "': unknown protocol '", name.protocol,
      "'; fix: use ",
      joined(kProtocolNames, ", ", [](std::string_view known) { return text("':", known, "'"); }),
      " or none");
}

// A knob that concerns a call and is not found is of no collective at all.
Status unknown(const Forced& forced, const Name& name, const Call& call) {
  if (forced.isKnob)
    return ofVariable(
        "WEFT_ALGO",
        Status::error(
            Code::InvalidUsage, "WEFT_ALGO: unknown algorithm '", name.algorithm,
            "'; fix: auto, model, a file .xml or .json, or a name of weftAlgorithms: for ",
            collectiveName(call.collective), " ", algorithmNames(listOf(call))));
  return Status::error(Code::InvalidUsage, "unknown algorithm '", name.algorithm, "' for ",
                       collectiveName(call.collective), "; fix: use one of ",
                       algorithmNames(listOf(call)));
}

// The algorithm that `forced` names.
Status findForced(const Forced& forced, const Name& name, const Call& call, const Tuning& tuning,
                  const schedule::Algorithm** out) {
  WEFT_TRY(checkProtocol(forced.text, name));
  *out = findAlgorithm(tuning, listOf(call), name.algorithm);
  if (*out == nullptr) return unknown(forced, name, call);
  if ((*out)->shared)
    return Status::error(Code::InvalidUsage, "algorithm '", forced.text, "': '", name.algorithm,
                         "' lands nowhere; fix: name it alone");
  return {};
}

}  // namespace

std::string algorithmNames(schedule::Collective collective) {
  std::string names;
  for (const schedule::Algorithm& a : schedule::algorithms())
    if (a.collective == collective && a.levels != schedule::Levels::Links)
      names += text(names.empty() ? "" : ",", a.name);
  return names;
}

Status checkDirect(std::string_view forced, const Tuning& tuning) {
  if (tuning.direct) return {};
  return Status::error(Code::InvalidUsage, "algorithm '", forced,
                       "': this communicator cannot write into its peers' buffers; "
                       "fix: use ':staged'");
}

Status readForced(const Call& call, const Tuning& tuning, Forced* out) {
  *out = {};
  out->text = call.algorithm;
  if (out->text.empty() && concerns(tuning, listOf(call))) {
    out->text = tuning.algorithm;
    out->isKnob = true;
  }
  if (out->text.empty()) return {};
  const Name name(out->text);
  const auto protocol = static_cast<Protocol>(std::ranges::find(kProtocolNames, name.protocol) -
                                              std::begin(kProtocolNames));
  const bool direct = name.hasProtocol && protocol == Protocol::Direct;
  if (isShared(name.algorithm) && (direct || !name.hasProtocol)) {
    out->shared = name.algorithm;
    out->copies = direct;
    return {};
  }
  const schedule::Algorithm* algorithm = nullptr;
  WEFT_TRY(findForced(*out, name, call, tuning, &algorithm));
  WEFT_TRY(checkFits(*algorithm, call, tuning));
  if (direct) WEFT_TRY(checkDirect(out->text, tuning));
  const bool publishes = protocol == Protocol::Published || protocol == Protocol::PublishedLarge;
  if (name.hasProtocol && publishes && !mayPublish(*algorithm, tuning))
    return Status::error(Code::InvalidUsage, "algorithm '", out->text,
                         "': it is for ranks of one host, whose memory is mapped by all, and for "
                         "algorithms that send the same to all; fix: use ':staged'");
  if (direct && isImported(*algorithm, tuning) && schedule::isReduction(algorithm->collective))
    return Status::error(Code::InvalidUsage, "algorithm '", out->text,
                         "': sums of an imported schedule are proved with staged puts alone; "
                         "fix: use ':staged' or no protocol");
  out->ways = name.hasProtocol ? std::vector<Candidate>{{algorithm, protocol}}
                               : protocolsOf(algorithm, call, tuning);
  return {};
}

}  // namespace weft::plan
