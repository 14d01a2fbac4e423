// SPDX-License-Identifier: Apache-2.0
// What the stages of a pipeline pass to each other: activations to the next one, and their gradients
// to the one before. Receiving waits; sending goes on beside compute, each thing in its own
// communicator, so that one stage never waits for another that waits for it: a send is only waited
// for by the next one in its direction.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "tools/train/model_part.h"
#include "weft/weft.hpp"

namespace weft::train {

class StageLinks {
 public:
  StageLinks() = default;  // of the only stage
  // Of the stages, by rank. Both outlive this.
  StageLinks(Communicator& activations, Communicator& gradients);

  // Of the stage before: its activations, whose shape and type this stage knows.
  at::Tensor receive(at::IntArrayRef shape, at::ScalarType type);
  void send(const at::Tensor& activations);
  // Of the stage after: the gradient of what it got.
  at::Tensor receiveGradient(const at::Tensor& activations);
  void sendGradient(const at::Tensor& gradient);

  // Seconds that receiving has taken so far.
  double waited() const { return waited_; }

 private:
  // One direction.
  struct Way {
    Communicator* ranks;
    at::Tensor underWay = {};  // until its send is done
    Stream stream = {};        // ends before it

    void send(const at::Tensor& x, int to);
  };
  at::Tensor receive(Way& way, int from, at::Tensor into);

  std::optional<Way> activations_, gradients_;
  double waited_ = 0;
};

}  // namespace weft::train
