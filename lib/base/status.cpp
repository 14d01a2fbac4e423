// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <algorithm>
#include <array>

#include "base/mark.h"
#include "base/max_ranks.h"
#include "base/no_fork.h"
#include "base/number.h"
#include "base/rank_list.h"

namespace weft::inline base {
namespace {

constexpr char kBetween = '\x1f';  // of packed fields: ASCII's unit separator
constexpr std::string_view kFix = " fix: ";

// ---- the sentence -------------------------------------------------------------------------------

// What stands in place of "{name}"; empty: it is no field, or not known.
std::string fieldOf(const ErrorData& data, std::string_view name) {
  if (name == "who") return describe(data.who);
  if (name == "call") return data.call;
  if (data.missing.empty()) return {};
  if (name == "missing") return rankList(data.missing);
  return name == "ranges" ? rankRanges(data.missing) : std::string();
}

std::string messageOf(const ErrorData& data) {
  std::string line;
  std::string_view rest = data.what;
  for (std::size_t open; (open = rest.find('{')) != rest.npos;) {
    line += rest.substr(0, open);
    rest.remove_prefix(open);
    const std::size_t close = rest.find('}');
    const std::string field =
        close == rest.npos ? std::string() : fieldOf(data, rest.substr(1, close - 1));
    line += field.empty() ? "{" : field;
    rest.remove_prefix(field.empty() ? 1 : close + 1);
  }
  return line.append(rest);
}

std::string sentenceOf(const std::string& message, const std::string& fix) {
  if (fix.empty()) return message;
  return text(message, message.ends_with('.') ? "" : ";", kFix, fix);
}

// ---- on the way to other ranks ------------------------------------------------------------------

// The ranges from the first on that fit in.
std::string_view cutRanges(std::string_view ranges, std::size_t length) {
  if (ranges.size() <= length) return ranges;
  const std::size_t comma = ranges.rfind(',', length);
  return comma == ranges.npos ? "" : ranges.substr(0, comma);
}

bool parseNatural(std::string_view digits, int* out) {
  return parseNumber(digits, out) && *out >= 0;
}

// "0-2,4", in order.
bool parseRanges(std::string_view ranges, std::vector<std::uint32_t>* out) {
  while (!ranges.empty()) {
    const std::string_view range = ranges.substr(0, ranges.find(','));
    const std::size_t dash = std::min(range.find('-'), range.size());
    std::uint32_t first = 0, last = 0;
    if (!parseNumber(range.substr(0, dash), &first)) return false;
    if (!parseNumber(dash == range.size() ? range : range.substr(dash + 1), &last)) return false;
    if (first > last || last >= std::uint32_t{kMaxRanks} || (!out->empty() && first <= out->back()))
      return false;
    for (std::uint32_t rank = first; rank <= last; ++rank) out->push_back(rank);
    ranges.remove_prefix(std::min(ranges.size(), range.size() + 1));
  }
  return true;
}

enum Field {
  kCode,
  kRank,
  kPid,
  kPort,
  kMissing,
  kHost,
  kDevice,
  kCall,
  kWhat,
  kFixed,
  kVariable,
  kFields
};
constexpr std::size_t kLeastFields = kVariable;
using Fields = std::array<std::string, kFields>;

// As unpack() takes a number; what a peer has said of itself may be any.
std::string numberField(std::int64_t number) {
  return text(number < 0 || number > INT32_MAX ? 0 : number);
}

Fields fieldsOf(const ErrorData& data) {
  return {text(static_cast<int>(data.code)),
          numberField(std::int64_t{data.who.rank} + 1),  // none is 0
          numberField(data.who.pid),
          numberField(data.port),
          rankRanges(data.missing),
          data.who.host,
          data.device,
          data.call,
          data.what,
          data.fix,
          data.variable};
}

// Shortens what is longest, by half at most, until all fit.
void cut(Fields* fields, std::size_t limit) {
  for (;;) {
    std::size_t size = kFields - 1;
    for (const std::string& field : *fields) size += field.size();
    if (size <= limit) return;
    std::string& longest = *std::ranges::max_element(*fields, {}, &std::string::size);
    const std::size_t least = longest.size() / 2;
    const std::size_t keep = longest.size() - std::min(longest.size() - least, size - limit);
    longest.resize(&longest == &(*fields)[kMissing] ? cutRanges(longest, keep).size() : keep);
  }
}

bool dataOf(const Fields& fields, ErrorData* data) {
  int code = 0;
  if (!parseNatural(fields[kCode], &code) || code < 1 || code > static_cast<int>(Code::LinkLost))
    return false;
  if (!parseNatural(fields[kRank], &data->who.rank) || !parseNatural(fields[kPid], &data->who.pid))
    return false;
  if (!parseNatural(fields[kPort], &data->port) || !parseRanges(fields[kMissing], &data->missing))
    return false;
  data->code = static_cast<Code>(code);
  --data->who.rank;
  data->who.host = fields[kHost];
  data->device = fields[kDevice];
  data->call = fields[kCall];
  data->what = fields[kWhat];
  data->fix = fields[kFixed];
  data->variable = fields[kVariable];
  return true;
}

}  // namespace

Status Status::error(ErrorData data) {
  Status status;
  const std::string message = messageOf(data);
  const std::string line = sentenceOf(message, data.fix);
  (void)WEFT_MARK(line);
  status.error_ = std::make_shared<const Error>(Error{std::move(data), message, line});
  return status;
}

Status Status::error(Code code, std::string line) {
  ErrorData data{.code = code, .what = std::move(line)};
  std::size_t at = data.what.rfind(kFix);
  if (at != std::string::npos && at != 0 &&
      (data.what[at - 1] == ';' || data.what[at - 1] == '.')) {
    data.fix = data.what.substr(at + kFix.size());
    data.what.resize(data.what[at - 1] == ';' ? at - 1 : at);
  }
  return error(std::move(data));
}

const Status::Error& Status::none() { return processWide<const Error>(); }

Status within(const std::string& place, const PeerName& who, const Status& status) {
  ErrorData data = status.data();
  data.what = place + data.what;
  if (data.who == PeerName()) data.who = who;
  return Status::error(std::move(data));
}

Status ofVariable(std::string_view variable, const Status& refused) {
  ErrorData data = refused.data();
  const bool isRefused = data.code == Code::InvalidArgument || data.code == Code::InvalidUsage;
  if (!isRefused || !data.variable.empty()) return refused;
  data.variable = variable;
  return Status::error(std::move(data));
}

std::string pack(const Status& error, std::size_t limit) {
  Fields fields = fieldsOf(error.data());
  for (std::string& field : fields) field = printable(std::move(field));
  cut(&fields, limit);
  std::string bytes;
  for (const std::string& field : fields) (bytes += field) += kBetween;
  bytes.pop_back();
  return bytes;
}

bool unpack(std::string_view bytes, Status* error) {
  *error = Status::error(Code::RemoteError,
                         "an error that does not decode; fix: the same libweft on all ranks");
  Fields fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t end = bytes.find(kBetween);
    if (end == bytes.npos && i + 1 < kLeastFields) return false;
    fields[i] = printable(std::string(bytes.substr(0, end)));
    bytes.remove_prefix(std::min(bytes.size(), fields[i].size() + 1));
  }
  ErrorData data;
  if (!dataOf(fields, &data)) return false;
  *error = Status::error(std::move(data));
  return true;
}

std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

}  // namespace weft::inline base
