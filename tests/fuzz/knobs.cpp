// SPDX-License-Identifier: Apache-2.0
// The environment: the knobs by their types, names that are none, and the values that have a grammar of their own.
#include "base/knobs.h"

#include <cstdlib>

#include "fuzz.h"
#include "transports/faulty/faulty.h"
#include "transports/verbs/gid.h"
#include "transports/wire/device_filter.h"

namespace weft::fuzz {
namespace {

// Set while it lives.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_.c_str()); }

 private:
  std::string name_;
};

void tryKnob(const KnobInfo& info, const std::string& value) {
  const Variable variable(info.name, value);
  std::int64_t number = 0;
  bool flag = false;
  std::string word;
  switch (info.type) {
    case KnobType::Integer:
    case KnobType::ByteSize:
      if (isGood(readInteger(info.knob, &number)) && isSet(info.knob))
        require(number == kKnobAuto || (number >= info.min && number <= info.max),
                "it is in range");
      return;
    case KnobType::Flag:
      return (void)isGood(readFlag(info.knob, &flag));
    default:
      if (isGood(readText(info.knob, &word)) && info.type == KnobType::Choice)
        require(std::string_view(info.choices).find(word) != std::string_view::npos,
                "it is a choice");
  }
}

void tryName(const std::string& name) {
  if (name.empty() || name.size() > 100 || name.find('=') != name.npos) return;
  const Variable variable("WEFT_" + name, "1");
  for (const std::string& line : unknownKnobs())
    require(!line.empty(), "a name that is none is told");
}

void tryGrammars(const std::string& value) {
  wire::DeviceFilter filter;
  if (isGood(wire::DeviceFilter::parse(value, &filter))) (void)filter.allows("mlx5_0", 1);
  verbs::GidRule rule;
  if (isGood(verbs::GidRule::parse(value, &rule)))
    for (const verbs::Gid& gid : {verbs::Gid{}, verbs::Gid{0xfe, 0x80}})
      require(rule.score(gid) >= 0, "a score is no error");
  faulty::Faults faults;
  if (isGood(faulty::parseFaults(value, &faults)))
    require(faults.again >= 0 && faults.again < 1 && faults.depth > 0, "a put may succeed");
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const std::string value(textOf(input.subspan(1)));
  const std::size_t which = input[0] % (knobTable().size() + 2);
  if (which < knobTable().size()) return tryKnob(knobTable()[which], value.c_str());
  if (which == knobTable().size()) return tryName(value.c_str());
  tryGrammars(value);
}

}  // namespace weft::fuzz
