// SPDX-License-Identifier: Apache-2.0
#include "tune/machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/number.h"
#include "base/text.h"

namespace weft::tune {
namespace {

enum class Better { Less, More, Later };

struct Field {
  const char* name;
  const char* unit;
  double Machine::*value;
  double least, most;
  Better better;
};

constexpr double kMostNs = 1e9, kMostRate = 1e5, kMostBytes = 1e15;
constexpr std::array kFields = {
    Field{"cache", "B", &Machine::cacheBytes, 1024, kMostBytes, Better::Later},
    Field{"exchange", "ns", &Machine::exchangeNs, 1, kMostNs, Better::Less},
    Field{"message", "ns", &Machine::messageNs, 0, kMostNs, Better::Less},
    Field{"hand_over", "ns", &Machine::handOverNs, 1, kMostNs, Better::Less},
    Field{"copy_near", "GB/s", &Machine::copyNear, 1e-3, kMostRate, Better::More},
    Field{"copy_far", "GB/s", &Machine::copyFar, 1e-3, kMostRate, Better::More},
    Field{"stream_far", "GB/s", &Machine::streamFar, 1e-3, kMostRate, Better::More},
    Field{"stream_min", "B", &Machine::streamMin, 1024, kMostBytes, Better::Later},
    Field{"fold_near", "GB/s", &Machine::foldNear, 1e-3, kMostRate, Better::More},
    Field{"put_across", "GB/s", &Machine::putAcross, 1e-3, kMostRate, Better::More},
    Field{"take_across", "GB/s", &Machine::takeAcross, 1e-3, kMostRate, Better::More},
    Field{"kernel_call", "ns", &Machine::cmaCallNs, 0, kMostNs, Better::Less},
    Field{"kernel_near", "GB/s", &Machine::cmaNear, 0, kMostRate, Better::More},
    Field{"kernel_far", "GB/s", &Machine::cmaFar, 0, kMostRate, Better::More},
};

const Field* findField(std::string_view name) {
  for (const Field& field : kFields)
    if (name == field.name) return &field;
  return nullptr;
}

// Cuts the text up to `end` off the front.
std::string_view take(std::string_view* text, char end) {
  const std::string_view part = text->substr(0, text->find(end));
  text->remove_prefix(std::min(text->size(), part.size() + 1));
  return part;
}

}  // namespace

// On one core all is as on one core; a switch of threads costs about what a CMA copy does.
Machine estimated(Machine machine) {
  const auto fill = [](double& figure, double otherwise) {
    if (figure == 0) figure = otherwise;
  };
  fill(machine.handOverNs, machine.cmaCallNs > 0 ? machine.cmaCallNs : 1000);
  fill(machine.exchangeNs, machine.handOverNs);
  fill(machine.putAcross, machine.copyNear);
  fill(machine.takeAcross, machine.copyNear);
  return machine;
}

bool isSane(const Machine& machine) {
  for (const Field& field : kFields) {
    const double value = machine.*field.value;
    if (!(value >= field.least && value <= field.most)) return false;  // NaN is neither
  }
  const bool cma = machine.cmaCallNs > 0;
  return cma == (machine.cmaNear > 0) && cma == (machine.cmaFar > 0);
}

Machine typicalOf(std::span<const Machine> measured) {
  Machine typical;
  std::vector<double> known;
  for (const Field& field : kFields) {
    known.clear();
    for (const Machine& machine : measured)
      if (machine.*field.value != 0) known.push_back(machine.*field.value);
    if (known.empty()) continue;
    if (field.better == Better::Less) std::ranges::sort(known);
    if (field.better == Better::More) std::ranges::sort(known, std::greater());
    typical.*field.value =
        field.better == Better::Later ? known.back() : known[(known.size() + 1) / 4];
  }
  return typical;
}

double differenceOf(const Machine& one, const Machine& other) {
  double most = 1;
  for (const Field& field : kFields) {
    const double a = one.*field.value, b = other.*field.value;
    if (field.better != Better::Later && a > 0 && b > 0) most = std::max({most, a / b, b / a});
  }
  return most;
}

std::string toText(const Machine& machine) {
  std::string text;
  for (const Field& field : kFields) {
    std::array<char, 32> digits;
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), machine.*field.value).ptr;
    text += std::string(field.name) + ' ' + std::string(digits.data(), end) + '\n';
  }
  return text;
}

std::string figureNames() { return joined(kFields, ", ", &Field::name); }

bool parse(std::string_view text, Machine* machine) {
  Machine read;
  std::size_t seen = 0;
  while (!text.empty()) {
    std::string_view line = take(&text, '\n');
    const Field* field = findField(take(&line, ' '));
    if (field == nullptr || read.*field->value != 0) return false;
    if (!parseNumber(line, &(read.*field->value))) return false;
    ++seen;
  }
  if (seen != kFields.size() || !isSane(estimated(read))) return false;
  *machine = read;
  return true;
}

std::string describe(const Machine& machine) {
  std::string text;
  std::size_t column = 0;
  for (const Field& field : kFields) {
    std::array<char, 80> part;
    const double value = machine.*field.value;
    const char* form = value >= 1000 ? "%s%s %.0f %s" : "%s%s %.3g %s";
    std::snprintf(part.data(), part.size(), form, column == 0 ? "" : ", ", field.name, value,
                  field.unit);
    text += part.data();
    if (++column == 5) text += '\n', column = 0;
  }
  return text;
}

}  // namespace weft::tune
