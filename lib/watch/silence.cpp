// SPDX-License-Identifier: Apache-2.0
#include "watch/silence.h"

#include <algorithm>

#include "base/rank_list.h"
#include "base/text.h"

namespace weft::watch {
namespace {

constexpr std::chrono::milliseconds kLongSilence{3000};  // of a stopped or overloaded process

}  // namespace

bool Silence::isOf(std::uint32_t rank) const {
  return remote_ != nullptr && remote_->silence(rank) >= kLongSilence;
}

std::vector<std::uint32_t> Silence::ranks() const {
  std::vector<std::uint32_t> silent;
  for (std::uint32_t r = 0; r < names_.size(); ++r)
    if (isOf(r)) silent.push_back(r);
  return silent;
}

std::string Silence::words(const std::vector<std::uint32_t>& silent) const {
  if (silent.empty()) return {};
  std::chrono::milliseconds longest{0};
  for (const std::uint32_t r : silent) longest = std::max(longest, remote_->silence(r));
  const auto seconds = longest.count() / 1000;
  if (silent.size() == 1)
    return text(names_[silent[0]], " does not answer for ", seconds, " s: stopped or overloaded");
  return text(rankList(silent), " do not answer, for up to ", seconds, " s: stopped or overloaded");
}

std::vector<std::uint32_t> Silence::news() {
  std::vector<std::uint32_t> fresh;
  for (const std::uint32_t r : ranks()) {
    if (!warned_[r]) fresh.push_back(r);
    warned_[r] = true;
  }
  return fresh;
}

}  // namespace weft::watch
