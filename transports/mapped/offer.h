// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "transports/mapping.h"
#include "transports/setup.h"

// How ranks of one process find each other's windows: by their random tokens. Any thread.
namespace weft::mapped {

using namespace transport;

// Offers a window from construction to destruction. A peer that has found it shares its ownership,
// so that it outlives its rank for as long as somebody may still put into it.
class Offer {
 public:
  Offer(const Token& token, std::shared_ptr<Mapping> window);
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;
  ~Offer();

 private:
  Token token_;
};

// Null if no rank of this process offers it.
std::shared_ptr<Mapping> findOffer(const Token& token);

}  // namespace weft::mapped
