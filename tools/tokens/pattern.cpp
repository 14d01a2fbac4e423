// SPDX-License-Identifier: Apache-2.0
#include "tools/tokens/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <stdexcept>

namespace weft::tokens {
namespace {

std::string messageOf(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR unitsOf(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

}  // namespace

Pattern::Pattern(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE at = 0;
  code_.reset(pcre2_compile(unitsOf(expression), expression.size(), PCRE2_UTF | PCRE2_UCP, &error,
                            &at, nullptr));
  if (!code_)
    throw std::logic_error(
        fmt::format("the pattern {} is none, at {}: {}", expression, at, messageOf(error)));
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // where it cannot, it is only slower
}

void Pattern::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

std::vector<std::string_view> Pattern::matchesIn(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  if (!match) throw std::bad_alloc();
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match.get());
  std::vector<std::string_view> found;
  for (size_t at = 0; at < text.size(); at = ends[1]) {
    const int result = pcre2_match(code_.get(), unitsOf(text), text.size(), at, PCRE2_NO_UTF_CHECK,
                                   match.get(), nullptr);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) throw std::runtime_error("PCRE2 cannot match: " + messageOf(result));
    found.push_back(text.substr(ends[0], ends[1] - ends[0]));
  }
  return found;
}

Pattern patternOfWords(std::vector<std::string> words) {
  std::stable_sort(words.begin(), words.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::string expression;
  for (const std::string& word : words) {
    if (!expression.empty()) expression += '|';
    for (const char c : word) {
      const auto unit = static_cast<unsigned char>(c);
      if (unit < 0x80 && std::isalnum(unit) == 0) expression += '\\';
      expression += c;
    }
  }
  return Pattern(expression);
}

}  // namespace weft::tokens
