// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/weft.hpp>

namespace weft::tools {

// What is known of an error, by weftErrorInfo_t's names.
template <class Json>
Json errorJson(const ErrorInfo& error) {
  Json json{{"message", error.message}};
  if (error.rank >= 0) json["rank"] = error.rank;
  if (!error.host.empty()) json["host"] = error.host;
  if (error.pid > 0) json["pid"] = error.pid;
  if (!error.device.empty()) json["device"] = error.device;
  if (error.port > 0) json["port"] = error.port;
  if (!error.call.empty()) json["call"] = error.call;
  if (!error.missingRanks.empty()) json["missing_ranks"] = error.missingRanks;
  if (!error.fix.empty()) json["fix"] = error.fix;
  if (!error.variable.empty()) json["variable"] = error.variable;
  return json;
}

}  // namespace weft::tools
