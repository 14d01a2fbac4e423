// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/stage_links.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <chrono>

#include "tools/train/models/tensor_group.h"

namespace weft::train {

using at::Tensor;

void StageLinks::Way::send(const Tensor& x, int to) {
  check(weftStreamSynchronize(stream), *ranks);
  underWay = x.contiguous();
  check(weftSend(underWay.data_ptr(), static_cast<size_t>(underWay.numel()), typeOf(underWay), to,
                 *ranks, stream, nullptr),
        *ranks);
}

StageLinks::StageLinks(Communicator& activations, Communicator& gradients)
    : activations_(Way{&activations}), gradients_(Way{&gradients}) {}

Tensor StageLinks::receive(Way& way, int from, Tensor into) {
  const auto start = std::chrono::steady_clock::now();
  check(weftRecv(into.data_ptr(), static_cast<size_t>(into.numel()), typeOf(into), from, *way.ranks,
                 nullptr, nullptr),
        *way.ranks);
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return into;
}

Tensor StageLinks::receive(at::IntArrayRef shape, at::ScalarType type) {
  return receive(*activations_, activations_->ranks->rank() - 1, at::empty(shape, type));
}

void StageLinks::send(const Tensor& activations) {
  activations_->send(activations, activations_->ranks->rank() + 1);
}

Tensor StageLinks::receiveGradient(const Tensor& activations) {
  return receive(*gradients_, gradients_->ranks->rank() + 1,
                 at::empty_like(activations.detach(), at::MemoryFormat::Contiguous));
}

void StageLinks::sendGradient(const Tensor& gradient) {
  gradients_->send(gradient, gradients_->ranks->rank() - 1);
}

}  // namespace weft::train
