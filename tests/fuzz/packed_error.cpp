// SPDX-License-Identifier: Apache-2.0
// Errors as they lie on the control page and travel: packed, and the page's record of the first one.
#include <cstring>
#include <memory>

#include "fuzz.h"
#include "watch/first_error.h"

namespace weft::fuzz {
namespace {

bool isSame(const ErrorData& a, const ErrorData& b) {
  return a.code == b.code && a.who == b.who && a.device == b.device && a.port == b.port &&
         a.call == b.call && a.missing == b.missing && a.what == b.what && a.fix == b.fix &&
         a.variable == b.variable;
}

void tryPacked(std::string_view packed) {
  Status first, second;
  if (!unpack(packed, &first)) return require(!first.ok(), "what does not decode is an error");
  require(unpack(pack(first, packed.size() + 64), &second) && isSame(first.data(), second.data()),
          "an error that was packed again is the same");
  constexpr std::size_t kLimit = 200;
  const std::string cut = pack(first, kLimit);
  require(cut.size() <= kLimit && unpack(cut, &second), "what was cut is an error");
  require(first.code() == second.code(), "what was cut is of the same class");
}

// Whoever maps the page may write anything there, its length included.
void tryPage(Input bytes) {
  const auto page = std::make_unique<transport::FirstError>();
  if (bytes.size() >= sizeof(page->length)) {
    std::memcpy(&page->length, bytes.data(), sizeof(page->length));
    bytes = bytes.subspan(sizeof(page->length));
  }
  std::memcpy(page->packed, bytes.data(), std::min(bytes.size(), sizeof(page->packed)));
  page->state = transport::FirstError::Published;
  require(!watch::statusOf(*page).ok(), "a published error is one");
}

}  // namespace

void tryInput(Input input) {
  if (input.empty()) return;
  const Input rest = input.subspan(1);
  if (input[0] % 2 == 0)
    tryPacked(textOf(rest));
  else
    tryPage(rest);
}

}  // namespace weft::fuzz
