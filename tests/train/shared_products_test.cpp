// SPDX-License-Identifier: Apache-2.0
// Backward of layers that a tensor group shares: what of its collectives goes on beside compute.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tools/train/models/places.h"
#include "tools/train/models/tensor_group.h"

namespace weft::train {
namespace {

using at::Tensor;

// While it lives, calls `body` at the start of each product that this thread computes.
class OnProduct {
 public:
  explicit OnProduct(std::function<void()> body)
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(&start).scopes({at::RecordScope::FUNCTION}))) {
    body_ = std::move(body);
  }
  OnProduct(const OnProduct&) = delete;
  OnProduct& operator=(const OnProduct&) = delete;
  ~OnProduct() { at::removeCallback(handle_); }

 private:
  static std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& function) {
    if (std::string_view(function.name()) == "aten::matmul") body_();
    return nullptr;
  }

  static thread_local std::function<void()> body_;
  at::CallbackHandle handle_;
};
thread_local std::function<void()> OnProduct::body_;

// Both products of backward, of the input's gradient and of the weight's, on two ranks.
class Backward {
 public:
  using Forward = std::function<Tensor(TensorRanks&, const Tensor& x, const Tensor& weight)>;
  // Rank 1 may go on by backward, or in its first product, when rank 0 has begun so many.
  struct HeldBack {
    int before = 0, inFirst = 0;
  };

  // The gradients of the input on both ranks.
  static std::vector<Tensor> of(const Forward& forward, const HeldBack& held) {
    Backward both{held};
    std::vector<Communicator> ranks = Communicator::all(2);
    std::vector<Tensor> gradients(2);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ranks.size(); ++i)
      threads.emplace_back([&, i] { gradients[i] = both.run(forward, ranks[i]); });
    for (std::thread& thread : threads) thread.join();
    return gradients;
  }

 private:
  explicit Backward(const HeldBack& held) : held_(held) {}

  Tensor run(const Forward& forward, Communicator& communicator) {
    TensorRanks ranks(communicator);
    const Tensor x = at::ones({2, 4, 8}).requires_grad_(true);
    const Tensor weight = at::full({16, 8}, communicator.rank() + 1.0).requires_grad_(true);
    const Tensor y = forward(ranks, x, weight);
    const OnProduct onProduct([&] { began(communicator.rank()); });
    if (communicator.rank() == 1) waitForProducts(held_.before);
    y.backward(at::ones(y.sizes()));
    return x.grad();
  }

  void began(int rank) {
    if (rank == 0) {
      ++products_;
    } else if (!std::exchange(isUnderWay_, true)) {
      waitForProducts(held_.inFirst);
    }
  }

  void waitForProducts(int count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (products_ < count && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GE(products_, count) << "rank 0 waits for rank 1";
  }

  const HeldBack held_;
  std::atomic<int> products_ = 0;  // that rank 0 has begun
  bool isUnderWay_ = false;        // rank 1's backward
};

// Sums over 16 outputs with weights of 1 and 2.
void expectSums(const std::vector<Tensor>& gradients) {
  for (const Tensor& gradient : gradients)
    EXPECT_TRUE(gradient.equal(at::full(gradient.sizes(), 48.0)));
}

// Rank 0 computes the gradient of its weight while rank 1 has not begun with backward.
TEST(SharedProducts, SumsOfGradientsTravelBesideCompute) {
  expectSums(
      Backward::of([](TensorRanks& ranks, const Tensor& x,
                      const Tensor& weight) { return TensorGroup(ranks).outputsOf(x, weight, {}); },
                   {.before = 2}));
}

// The input is gathered beside the first product, and sums are scattered beside the second.
TEST(SharedProducts, PlacesTravelBesideCompute) {
  expectSums(Backward::of([](TensorRanks& ranks, const Tensor& x,
                             const Tensor& weight) { return Places(ranks).productOf(x, weight); },
                          {.before = 1, .inFirst = 2}));
}

}  // namespace
}  // namespace weft::train
