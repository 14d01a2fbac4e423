// SPDX-License-Identifier: Apache-2.0
#include "tune/machine.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace weft {
namespace {

struct Field {
  const char* name;
  const char* unit;
  double Machine::*value;
  double least, most;
};

constexpr double kMostNs = 1e9, kMostRate = 1e5, kMostBytes = 1e15;
constexpr std::array kFields = {
    Field{"cache", "B", &Machine::cacheBytes, 1024, kMostBytes},
    Field{"exchange", "ns", &Machine::exchangeNs, 1, kMostNs},
    Field{"message", "ns", &Machine::messageNs, 0, kMostNs},
    Field{"hand_over", "ns", &Machine::handOverNs, 1, kMostNs},
    Field{"copy_near", "GB/s", &Machine::copyNear, 1e-3, kMostRate},
    Field{"copy_far", "GB/s", &Machine::copyFar, 1e-3, kMostRate},
    Field{"stream_far", "GB/s", &Machine::streamFar, 1e-3, kMostRate},
    Field{"stream_min", "B", &Machine::streamMin, 1024, kMostBytes},
    Field{"fold_near", "GB/s", &Machine::foldNear, 1e-3, kMostRate},
    Field{"put_across", "GB/s", &Machine::putAcross, 1e-3, kMostRate},
    Field{"take_across", "GB/s", &Machine::takeAcross, 1e-3, kMostRate},
    Field{"kernel_call", "ns", &Machine::kernelCallNs, 0, kMostNs},
    Field{"kernel_near", "GB/s", &Machine::kernelNear, 0, kMostRate},
    Field{"kernel_far", "GB/s", &Machine::kernelFar, 0, kMostRate},
};

const Field* findField(std::string_view name) {
  for (const Field& field : kFields) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

// Cuts the text up to `end` off the front.
std::string_view take(std::string_view* text, char end) {
  const std::string_view part = text->substr(0, text->find(end));
  text->remove_prefix(std::min(text->size(), part.size() + 1));
  return part;
}

}  // namespace

bool isSane(const Machine& machine) {
  for (const Field& field : kFields) {
    const double value = machine.*field.value;
    if (!(value >= field.least && value <= field.most)) return false;  // NaN is neither
  }
  const bool kernel = machine.kernelCallNs > 0;
  return kernel == (machine.kernelNear > 0) && kernel == (machine.kernelFar > 0);
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

bool parse(std::string_view text, Machine* machine) {
  Machine read;
  std::size_t seen = 0;
  while (!text.empty()) {
    std::string_view line = take(&text, '\n');
    const Field* field = findField(take(&line, ' '));
    if (field == nullptr || read.*field->value != 0) return false;
    const char* end = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data(), end, read.*field->value);
    if (error != std::errc() || stop != end) return false;
    ++seen;
  }
  if (seen != kFields.size() || !isSane(read)) return false;
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

}  // namespace weft
