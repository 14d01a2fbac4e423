// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>

#include "base/invalid.h"
#include "base/number.h"
#include "transports/verbs/mesh.h"

namespace weft::verbs {
namespace {

bool parseEnd(const std::string& word, Cable::End* end) {
  const auto slash = word.rfind('/');
  if (slash != std::string::npos) end->where = word.substr(0, slash);
  const std::string rest = slash == std::string::npos ? word : word.substr(slash + 1);
  const auto colon = rest.rfind(':');
  end->device = rest.substr(0, colon);
  if (end->device.empty() || slash == 0) return false;
  if (colon == std::string::npos) return true;
  return parseNumber(rest.substr(colon + 1), &end->port) && end->port != 0;
}

bool parseLine(const std::string& line, Cable* cable) {
  std::istringstream words(line);
  std::string first, second, more;
  words >> first >> second;
  return parseEnd(first, &cable->end[0]) && parseEnd(second, &cable->end[1]) && !(words >> more);
}

}  // namespace

Status parseCables(const std::string& lines, const std::string& file, std::vector<Cable>* out) {
  out->clear();
  std::istringstream stream(lines);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Cable cable;
    cable.line = number;
    if (!parseLine(line, &cable))
      return invalid("WEFT_MESH_FILE ", file, " line ", number, ": '", line,
                     "' is no cable; fix: two ends such as rc0p1:1 rc1p0:1");
    out->push_back(std::move(cable));
  }
  if (!out->empty()) return {};
  return invalid("WEFT_MESH_FILE ", file, " names no cable");
}

Status readCables(const std::string& file, std::vector<Cable>* out) {
  std::ifstream stream(file);
  std::ostringstream lines;
  if (!stream || !(lines << stream.rdbuf()))
    return invalid("WEFT_MESH_FILE ", file,
                   " cannot be read, or is empty; fix: a readable file on every host");
  return parseCables(lines.str(), file, out);
}

}  // namespace weft::verbs
