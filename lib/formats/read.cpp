// SPDX-License-Identifier: Apache-2.0
#include "formats/read.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "formats/msccl_flow.h"
#include "formats/msccl_xml.h"
#include "formats/mscclpp_flow.h"
#include "formats/mscclpp_json.h"
#include "schedule/transforms.h"
#include "verify/verify.h"

namespace weft::formats {
namespace {

std::string fingerprintOf(std::string_view document) {
  char digits[17] = {};
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, Hash().add(document).value());
  return digits;
}

// "all-reduce ring (0123456789abcdef)"
std::string nameOf(const Form& form, const std::string& name, std::string_view document) {
  return text(schedule::nameOf(form.collective), " ", name, " (", fingerprintOf(document), ")");
}

bool readAll(const std::string& file, std::string* document) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  if (in.is_open() && in.peek() != std::ifstream::traits_type::eof()) content << in.rdbuf();
  *document = content.str();
  return in.is_open() && !in.bad() && !content.bad();
}

Status parseXml(std::string_view document, const std::string& file, const Limits& limits,
                schedule::Schedule* out) {
  MscclAlgorithm algorithm;
  WEFT_TRY(readMsccl(document, file, limits, &algorithm));
  Flow flow(algorithm.form);
  WEFT_TRY(runMsccl(algorithm, file, limits, &flow));
  *out = flow.build(nameOf(algorithm.form, algorithm.name, document));
  return {};
}

Status parseJson(std::string_view document, const std::string& file, const Limits& limits,
                 schedule::Schedule* out) {
  MscclppPlan plan;
  WEFT_TRY(readMscclpp(document, file, limits, &plan));
  Flow flow(plan.form);
  WEFT_TRY(runMscclpp(plan, file, limits, &flow));
  *out = flow.build(nameOf(plan.form, plan.name, document));
  return {};
}

// As it may run: its puts are staged, and the inputs of a sum may be scaled first.
Status prove(const schedule::Schedule& schedule, const std::string& file, const Limits& limits) {
  const bool small = schedule.ranks <= limits.hazardRanks;
  const verify::VerifyOptions options{
      .hazards = small, .agreement = small, .outAfterEntry = small, .inPlace = true};
  Status proved = verify::verify(schedule::stageOut(schedule), options);
  if (proved.ok() && schedule::isReduction(schedule.collective))
    proved = verify::verify(schedule::stageOut(schedule::prescale(schedule)), {.hazards = false});
  if (proved.ok()) return {};
  return Status::error(Code::InvalidArgument, file, ": the verifier refuses it: ", proved.message(),
                       "; fix: let another schedule run");
}

}  // namespace

bool isScheduleFile(std::string_view name) {
  return name.find('/') != name.npos || name.ends_with(".xml") || name.ends_with(".json");
}

Status parseSchedule(std::string_view document, const std::string& file, const Limits& limits,
                     schedule::Schedule* out) {
  if (document.size() > limits.bytes)
    return Status::error(Code::InvalidArgument, file, ": has more than ", limits.bytes,
                         " bytes; fix: name a schedule");
  const std::size_t first = document.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const char begins = first == document.npos ? ' ' : document[first];
  if (begins != '<' && begins != '{')
    return Status::error(Code::InvalidArgument, file,
                         ":1: neither XML nor JSON; fix: name a schedule of MSCCL or MSCCL++");
  WEFT_TRY((begins == '<' ? parseXml : parseJson)(document, file, limits, out));
  return prove(*out, file, limits);
}

Status readSchedule(const std::string& file, schedule::Schedule* out) {
  std::string document;
  if (!readAll(file, &document))
    return Status::error(Code::InvalidArgument, file, ": cannot be read: ", std::strerror(errno),
                         "; fix: name a readable file");
  return parseSchedule(document, file, {}, out);
}

std::string fingerprintOfFile(const std::string& file) {
  std::string document;
  return readAll(file, &document) ? fingerprintOf(document) : "none";
}

}  // namespace weft::formats
