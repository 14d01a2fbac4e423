// SPDX-License-Identifier: Apache-2.0
#include "tools/train/models/stage_links.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <chrono>

#include "tools/train/models/tensor_ranks.h"

namespace weft::train {

using at::Tensor;

namespace {

int other(const Communicator& link) { return 1 - link.rank(); }

}  // namespace

void StageLinks::Outgoing::send(const Tensor& x, Communicator& link) {
  auto& [underWay, stream] = sent[next++ % sent.size()];
  check(weftStreamSynchronize(stream), link);
  underWay = x.contiguous();
  check(weftSend(underWay.data_ptr(), static_cast<size_t>(underWay.numel()), typeOf(underWay),
                 other(link), link, stream, nullptr),
        link);
}

Tensor StageLinks::receive(Communicator& link, Tensor into) {
  const auto start = std::chrono::steady_clock::now();
  check(weftRecv(into.data_ptr(), static_cast<size_t>(into.numel()), typeOf(into), other(link),
                 link, nullptr, nullptr),
        link);
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return into;
}

Tensor StageLinks::receive(at::IntArrayRef shape, at::ScalarType type) {
  return receive(*before_.activations, at::empty(shape, type));
}

void StageLinks::send(const Tensor& activations) {
  activations_.send(activations, *after_.activations);
}

Tensor StageLinks::receiveGradient(const Tensor& activations) {
  return receive(*after_.gradients,
                 at::empty_like(activations.detach(), at::MemoryFormat::Contiguous));
}

void StageLinks::sendGradient(const Tensor& gradient) {
  gradients_.send(gradient, *before_.gradients);
}

}  // namespace weft::train
