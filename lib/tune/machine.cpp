// SPDX-License-Identifier: Apache-2.0
#include "tune/machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>
#include <type_traits>
#include <vector>

#include "base/number.h"
#include "base/text.h"

namespace weft::tune {
namespace {

enum class Better { Less, More, Later };

struct Field {
  const char* name;
  const char* unit;
  double least, most;
  Better better;
  double Machine::*value = nullptr;
  Curve Machine::*curve = nullptr;

  // Its one value, or those of the curve.
  std::span<double> of(Machine& machine) const {
    if (curve == nullptr) return {&(machine.*value), 1};
    return (machine.*curve).at;
  }
  std::span<const double> of(const Machine& machine) const {
    return of(const_cast<Machine&>(machine));
  }
};

constexpr double kMostNs = 1e9, kMostBytes = 1e15;
constexpr double kLeastNs = 10;  // shorter times are alike: no call is decided by them

constexpr Field bytes(const char* name, double Machine::*value) {
  return {name, "B", 1024, kMostBytes, Better::Later, value};
}
constexpr Field time(const char* name, double Machine::*value, double least) {
  return {name, "ns", least, kMostNs, Better::Less, value};
}
constexpr Field rates(const char* name, Curve Machine::*curve, double least = 1e-3) {
  return {name, "GB/s", least, 1e5, Better::More, nullptr, curve};
}

constexpr std::array kFields = {
    bytes("cache", &Machine::cacheBytes),
    Field{"sharers", "cores", 1, 1e6, Better::Later, &Machine::sharers},
    time("exchange", &Machine::exchangeNs, 1),
    time("message", &Machine::messageNs, 0),
    time("hand_over", &Machine::handOverNs, 1),
    time("kernel_call", &Machine::cmaCallNs, 0),
    Field{"fold", "GB/s", 1e-3, 1e5, Better::More, &Machine::foldNear},
    rates("load", &Machine::load),
    rates("copy", &Machine::copy),
    rates("put", &Machine::put),
    rates("take", &Machine::take),
    rates("stream", &Machine::stream),
    rates("kernel_put", &Machine::cmaPut, 0),
    rates("kernel_take", &Machine::cmaTake, 0),
    rates("far_put", &Machine::farPut, 0),
    rates("far_take", &Machine::farTake, 0),
};
constexpr std::size_t kAlways = kFields.size() - 2;  // of those, not only between NUMA nodes

// Those that this machine has.
std::span<const Field> fieldsOf(const Machine& machine) {
  const bool far = machine.farPut != Curve() || machine.farTake != Curve();
  return std::span(kFields).first(far ? kFields.size() : kAlways);
}

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

// What several measurements say of one number.
double typicalOf(std::vector<double>* known, Better better) {
  if (known->empty()) return 0;
  if (better == Better::Later) return known->back();
  if (better == Better::Less) std::ranges::sort(*known);
  if (better == Better::More) std::ranges::sort(*known, std::greater());
  return (*known)[(known->size() + 1) / 4];
}

bool readFigures(std::string_view words, std::span<double> figures) {
  for (double& figure : figures)
    if (!parseNumber(take(&words, ' '), &figure)) return false;
  return words.empty();
}

// What was not measured at one footprint is as at the nearest one.
void closeGaps(Curve* curve) {
  auto& at = curve->at;
  for (std::size_t i = 1; i < at.size(); ++i)
    if (at[i] == 0) at[i] = at[i - 1];
  for (std::size_t i = at.size() - 1; i > 0; --i)
    if (at[i - 1] == 0) at[i - 1] = at[i];
}

}  // namespace

// On one core all is as on one core; a switch of threads costs about what a CMA copy does.
Machine estimated(Machine machine) {
  for (const Field& field : kFields)
    if (field.curve != nullptr) closeGaps(&(machine.*field.curve));
  const auto fill = [](auto& figure, const auto& otherwise) {
    if (figure == std::remove_cvref_t<decltype(figure)>{}) figure = otherwise;
  };
  fill(machine.handOverNs, machine.cmaCallNs > 0 ? machine.cmaCallNs : 1000);
  fill(machine.exchangeNs, machine.handOverNs);
  fill(machine.put, machine.copy);
  fill(machine.take, machine.copy);
  return machine;
}

bool isSane(const Machine& machine) {
  const bool cma = machine.cmaCallNs > 0;
  for (const Field& field : kFields) {
    for (const double value : field.of(machine)) {
      if (!(value >= field.least && value <= field.most)) return false;  // NaN is neither
      const bool isCma = field.curve == &Machine::cmaPut || field.curve == &Machine::cmaTake;
      if (isCma && cma != (value > 0)) return false;
    }
  }
  return true;
}

// Where the two curves cross for the last time. Above it one must be clearly above the other: where both
// are as quick everywhere, noise would else say now that stores never go past the caches, and now always.
std::uint64_t streamFootprint(const Machine& machine) {
  constexpr double kClearly = 1.1;
  const Curve &put = machine.put, &stream = machine.stream;
  std::size_t first = kFootprints.size();
  while (first > 0 && stream.at[first - 1] > kClearly * put.at[first - 1]) --first;
  if (first == kFootprints.size()) return static_cast<std::uint64_t>(2 * kFootprints.back());
  if (first == 0) return 0;
  const double before = std::max(0.0, 1 / stream.at[first - 1] - 1 / put.at[first - 1]);
  const double after = 1 / put.at[first] - 1 / stream.at[first];
  const double step = kFootprints[first] / kFootprints[first - 1];
  return static_cast<std::uint64_t>(kFootprints[first - 1] *
                                    std::pow(step, before / (before + after)));
}

Machine typicalOf(std::span<const Machine> measured) {
  Machine typical;
  std::vector<double> known;
  for (const Field& field : kFields) {
    const std::span<double> figures = field.of(typical);
    for (std::size_t i = 0; i < figures.size(); ++i) {
      known.clear();
      for (const Machine& machine : measured)
        if (field.of(machine)[i] != 0) known.push_back(field.of(machine)[i]);
      figures[i] = typicalOf(&known, field.better);
    }
  }
  return typical;
}

double differenceOf(const Machine& one, const Machine& other) {
  double most = 1;
  for (const Field& field : kFields) {
    if (field.better == Better::Later) continue;
    for (std::size_t i = 0; i < field.of(one).size(); ++i) {
      double a = field.of(one)[i], b = field.of(other)[i];
      if (a <= 0 || b <= 0) continue;
      if (field.better == Better::Less) a = std::max(a, kLeastNs), b = std::max(b, kLeastNs);
      most = std::max({most, a / b, b / a});
    }
  }
  return most;
}

std::string toText(const Machine& machine) {
  std::string text;
  for (const Field& field : fieldsOf(machine)) {
    text += field.name;
    for (const double value : field.of(machine)) {
      std::array<char, 32> digits;
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
      text += ' ';
      text.append(digits.data(), end);
    }
    text += '\n';
  }
  return text;
}

std::string figureNames() { return joined(std::span(kFields).first(kAlways), ", ", &Field::name); }

bool parse(std::string_view text, Machine* machine) {
  Machine read;
  std::set<const Field*> seen;
  while (!text.empty()) {
    std::string_view line = take(&text, '\n');
    const Field* field = findField(take(&line, ' '));
    if (field == nullptr || !seen.insert(field).second) return false;
    if (!readFigures(line, field->of(read))) return false;
  }
  if (seen.size() != fieldsOf(read).size() || !isSane(estimated(read))) return false;
  *machine = read;
  return true;
}

std::string describe(const Machine& machine) {
  std::string text;
  std::size_t column = 0;
  for (const Field& field : fieldsOf(machine)) {
    text += text.empty() ? "" : field.curve != nullptr || column == 4 ? "\n" : ", ";
    column = column == 4 ? 1 : column + 1;
    text += field.name;
    for (const double value : field.of(machine)) {
      std::array<char, 40> part;
      std::snprintf(part.data(), part.size(), value >= 1000 ? " %.0f" : " %.3g", value);
      text += part.data();
    }
    text += std::string(" ") + field.unit;
  }
  return text + '\n';
}

}  // namespace weft::tune
