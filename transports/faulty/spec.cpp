// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "base/number.h"
#include "transports/faulty/faulty.h"

namespace weft::faulty {
namespace {

bool parseRate(std::string_view value, double* rate) {
  return parseNumber(value, rate) && *rate >= 0 && *rate <= 1;
}

bool parseFlag(std::string_view value, bool* flag) {
  *flag = value == "1";
  return value == "0" || value == "1";
}

// "1000:2" or "1000:0-2".
bool parseLink(std::string_view value, std::vector<Faults::Link>* links) {
  Faults::Link link;
  const std::size_t colon = std::min(value.find(':'), value.size());
  std::string_view to = value.substr(std::min(colon + 1, value.size()));
  if (const std::size_t dash = to.find('-'); dash != std::string_view::npos) {
    if (!parseNumber(to.substr(0, dash), &link.from.emplace())) return false;
    to.remove_prefix(dash + 1);
  }
  const bool good = parseNumber(value.substr(0, colon), &link.number) && link.number > 0 &&
                    parseNumber(to, &link.peer);
  if (good) links->push_back(link);
  return good;
}

bool parseItem(std::string_view key, std::string_view value, Faults* faults) {
  if (key == "seed") return parseNumber(value, &faults->seed);
  if (key == "hold") return parseRate(value, &faults->hold);
  // A put that is always refused would never end.
  if (key == "again") return parseRate(value, &faults->again) && faults->again <= 0.99;
  if (key == "late") return parseRate(value, &faults->late);
  if (key == "depth") return parseNumber(value, &faults->depth) && faults->depth > 0;
  if (key == "delay") return parseNumber(value, &faults->delay);
  if (key == "scribble") return parseFlag(value, &faults->scribble);
  if (key == "check") return parseFlag(value, &faults->check);
  if (key == "cut") return parseLink(value, &faults->cuts);
  if (key == "lag") return parseLink(value, &faults->lags);
  if (key == "corrupt") return parseLink(value, &faults->corrupts);
  if (key == "raise") return parseLink(value, &faults->raises);
  return false;
}

}  // namespace

Status parseFaults(const std::string& spec, Faults* faults) {
  Faults parsed;
  std::string_view rest = spec;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos ||
        !parseItem(item.substr(0, equals), item.substr(equals + 1), &parsed))
      return Status::error(Code::InvalidArgument, "faulty transport: cannot understand '", item,
                           "' in '", spec,
                           "'; fix: seed=N, hold, late=0..1, again=0..0.99, depth=1.., delay=N, "
                           "scribble, check=0|1, cut=N:peer or cut=N:from-peer, lag=MICROSECONDS "
                           "and corrupt=N likewise, raise=N:rank-SIGNAL, separated by commas");
  }
  *faults = parsed;
  return {};
}

}  // namespace weft::faulty
