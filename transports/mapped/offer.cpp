// SPDX-License-Identifier: Apache-2.0
#include "transports/mapped/offer.h"

#include <map>
#include <mutex>

#include "base/no_fork.h"

namespace weft::mapped {
namespace {

struct Offers {
  ForkSafeMutex mutex;
  std::map<Token, std::shared_ptr<Mapping>> windows;
};

Offers& offers() { return processWide<Offers>(); }

}  // namespace

Offer::Offer(const Token& token, std::shared_ptr<Mapping> window) : token_(token) {
  const std::lock_guard lock(offers().mutex);
  offers().windows[token] = std::move(window);
}

Offer::~Offer() {
  const std::lock_guard lock(offers().mutex);
  offers().windows.erase(token_);
}

std::shared_ptr<Mapping> findOffer(const Token& token) {
  const std::lock_guard lock(offers().mutex);
  const auto found = offers().windows.find(token);
  if (found == offers().windows.end() || !found->second->present()) return nullptr;
  return found->second;
}

}  // namespace weft::mapped
