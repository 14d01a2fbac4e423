// SPDX-License-Identifier: Apache-2.0
#include "tools/train/bert_words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <utility>

namespace weft::train {
namespace {

using Character = utf8proc_int32_t;

constexpr Character kReplacement = 0xfffd;

// Of Chinese characters, as Unicode's blocks have them.
constexpr std::pair<Character, Character> kIdeographs[] = {
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
    {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0x2f800, 0x2fa1f}};

bool isIdeograph(Character c) {
  return std::any_of(std::begin(kIdeographs), std::end(kIdeographs),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

bool isSpaceForBert(Character c) {
  if (c == '\t' || c == '\n' || c == '\r') return true;
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool isLeftOut(Character c) {
  const auto category = utf8proc_category(c);
  return c == kReplacement || category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF;
}

bool isPunctuationForBert(Character c) {
  if (c < 0x80) return std::ispunct(c) != 0;
  const auto category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

class Words {
 public:
  explicit Words(const std::function<void(std::string_view, size_t)>& take) : take_(take) {}

  void add(Character c) {
    if (isSpaceForBert(c)) return end();
    if (isLeftOut(c)) return;
    const bool alone = isIdeograph(c);
    if (alone) end();
    std::array<Character, 8> parts{};  // at most four have been known
    int boundary = 0;
    const auto count = utf8proc_decompose_char(utf8proc_tolower(c), parts.data(), parts.size(),
                                               UTF8PROC_DECOMPOSE, &boundary);
    const size_t known =
        std::min(static_cast<size_t>(std::max<utf8proc_ssize_t>(count, 0)), parts.size());
    for (const Character part : std::span(parts).first(known)) addPart(part);
    if (alone) end();
  }

  void end() {
    if (characters_ > 0) take_(word_, characters_);
    word_.clear();
    characters_ = 0;
  }

 private:
  void addPart(Character c) {
    if (utf8proc_category(c) == UTF8PROC_CATEGORY_MN) return;
    const bool alone = isPunctuationForBert(c);
    if (alone) end();
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto length = utf8proc_encode_char(c, bytes.data());
    word_.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length));
    ++characters_;
    if (alone) end();
  }

  const std::function<void(std::string_view, size_t)>& take_;
  std::string word_;
  size_t characters_ = 0;
};

}  // namespace

void forEachBertWord(std::string_view text,
                     const std::function<void(std::string_view word, size_t characters)>& take) {
  Words words(take);
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t at = 0; at < text.size();) {
    Character c = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
    if (length > 0) words.add(c);
    at += length > 0 ? static_cast<size_t>(length) : 1;
  }
  words.end();
}

}  // namespace weft::train
