// SPDX-License-Identifier: Apache-2.0
#include "transports/mapped/offer.h"

#include <map>
#include <mutex>

namespace weft {
namespace {

struct Offers {
  std::mutex mutex;
  std::map<Token, std::shared_ptr<Mapping>> segments;
};

Offers& offers() {
  static Offers all;
  return all;
}

}  // namespace

Offer::Offer(const Token& token, std::shared_ptr<Mapping> segment) : token_(token) {
  const std::lock_guard lock(offers().mutex);
  offers().segments[token] = std::move(segment);
}

Offer::~Offer() {
  const std::lock_guard lock(offers().mutex);
  offers().segments.erase(token_);
}

std::shared_ptr<Mapping> findOffer(const Token& token) {
  const std::lock_guard lock(offers().mutex);
  const auto found = offers().segments.find(token);
  if (found == offers().segments.end() || !found->second->present()) return nullptr;
  return found->second;
}

}  // namespace weft
