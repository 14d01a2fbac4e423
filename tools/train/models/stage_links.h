// SPDX-License-Identifier: Apache-2.0
// What the stages of a pipeline pass to each other: activations to the next one, and their gradients
// to the one before. Receiving waits; sending goes on beside compute, each thing in its own
// communicator, so that one stage never waits for another that waits for it: a send is only waited
// for by the next but one in its direction, as virtual stages may have two to pass on before they receive.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "tools/train/model.h"
#include "weft/weft.hpp"

namespace weft::train {

class StageLinks {
 public:
  StageLinks() = default;  // of the only stage
  // To the stages before and after. Their communicators outlive this.
  StageLinks(const StageLink& before, const StageLink& after) : before_(before), after_(after) {}

  // Of the stage before: its activations, whose shape and type this stage knows.
  at::Tensor receive(at::IntArrayRef shape, at::ScalarType type);
  void send(const at::Tensor& activations);
  // Of the stage after: the gradient of what it got.
  at::Tensor receiveGradient(const at::Tensor& activations);
  void sendGradient(const at::Tensor& gradient);

  // Seconds that receiving has taken so far.
  double waited() const { return waited_; }

 private:
  struct Sent {
    at::Tensor underWay = {};  // until its send is done
    Stream stream = {};        // ends before it
  };
  // What goes one way.
  struct Outgoing {
    std::array<Sent, 2> sent;
    size_t next = 0;
    void send(const at::Tensor& x, Communicator& link);
  };
  at::Tensor receive(Communicator& link, at::Tensor into);

  StageLink before_, after_;
  Outgoing activations_, gradients_;
  double waited_ = 0;
};

}  // namespace weft::train
