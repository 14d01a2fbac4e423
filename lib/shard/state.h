// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shard/config.h"
#include "shard/memory.h"

namespace weft::shard {

// All memory of one rank's shard, and where in it things lie. With E the elements of all buckets:
//
//   parameters   E of paramType, shared; for degrees.param > 1 transient, beside E / param to stay
//   gradients    E of gradType, shared; for degrees.grad > 1 given back once they are reduced
//   sums         reduced gradients: E / grad of fp32, or E / state where degrees.grad is 1
//   weights      E / state of fp32, where parameters are not fp32 themselves
//   state        E / state of fp32, each array
//   wire, between: one bucket
class ShardState {
 public:
  static Status make(const ShardConfig& config, const Mesh& mesh, Layout layout, ShardState* out);

  const Layout& layout() const { return layout_; }
  const ShardConfig& config() const { return config_; }
  std::uint32_t buckets() const { return static_cast<std::uint32_t>(layout_.buckets().size()); }

  // The whole model, as the caller sees it.
  std::byte* parameter(std::uint32_t i) const;
  std::byte* gradient(std::uint32_t i) const;
  std::byte* parameters(std::uint32_t bucket) const;  // all of the bucket
  std::byte* gradients(std::uint32_t bucket) const;
  void clearGradients(std::uint32_t bucket);
  void dropParameters(std::uint32_t bucket);

  // This rank's parts of a bucket; offsets are in the flat buffer.
  using Range = Mesh::Part;
  Range part(std::uint32_t bucket, Level level) const;
  std::byte* keptParameters(std::uint32_t bucket) const;  // those of part(bucket, Level::Param)
  float* sums(std::uint32_t bucket) const;       // of part(Grad), or part(State) if grad is 1
  float* finalSums(std::uint32_t bucket) const;  // of part(bucket, Level::State)
  std::byte* wire() const { return wire_.data(); }
  float* between() const { return between_.as<float>().data(); }

  // The state of `elements` from `offset` of the flat buffer on, all inside part(bucket, State),
  // one run a parameter. `gradients` is that of the first element, `result` where new parameters
  // go.
  template <class Body>
  void visitRuns(std::uint32_t bucket, std::uint64_t offset, std::uint64_t elements,
                 float* gradients, std::byte* result, Body&& body) const;
  // The same for all of part(bucket, State).
  template <class Body>
  void visitOwn(std::uint32_t bucket, Body&& body, float* gradients = nullptr,
                std::byte* result = nullptr) const {
    const Range own = part(bucket, Level::State);
    visitRuns(bucket, own.offset, own.elements, gradients, result, body);
  }

  // Are the parameters the weights themselves, without a master copy?
  bool aliasesWeights() const { return config_.paramType == reduce::DType::F32 || !config_.master; }

  // What there is of each trained element: "weight", and the optimizer's arrays.
  std::vector<std::string> arrayNames() const;
  // Fills weights and kept parameters from the parameters.
  void adopt();
  // This rank's part of a trained parameter, of which it gets the whole; not where weights are the
  // parameters.
  void setWeights(std::uint32_t parameter, const float* weights) const;
  // This rank's weights of a bucket, as parameters, rounded as the last step did.
  void roundWeights(std::uint32_t bucket, std::byte* result) const;

  std::int64_t steps = 0;                 // optimizer steps done
  double weightDecay = 0;                 // of the step at work
  std::uint64_t checkpointBytes() const;  // of the whole model, in fp32
  std::uint64_t bytes() const;            // that stay allocated between steps

 private:
  Status allocate();
  StateRun runOf(const Layout::Piece& piece, std::uint64_t inState, float* gradients,
                 std::byte* result, std::byte* kept) const;

  ShardConfig config_;
  const Mesh* mesh_ = nullptr;
  Layout layout_;
  ShardMemory params_, grads_, wire_, between_, kept_, sums_, weights_;
  std::vector<ShardMemory> state_;
};

template <class Body>
void ShardState::visitRuns(std::uint32_t bucket, std::uint64_t offset, std::uint64_t elements,
                           float* gradients, std::byte* result, Body&& body) const {
  const Range own = part(bucket, Level::State), home = part(bucket, Level::Param);
  const std::uint64_t base = layout_.buckets()[bucket].offset / config_.degrees.state;
  const std::size_t size = reduce::sizeOf(config_.paramType);
  layout_.visit(bucket, offset, elements, [&](const Layout::Piece& piece) {
    const std::uint64_t at = piece.offset - offset;
    StateRun run = runOf(piece, base + (piece.offset - own.offset),
                         gradients == nullptr ? nullptr : gradients + at,
                         result == nullptr ? nullptr : result + at * size,
                         keptParameters(bucket) + (piece.offset - home.offset) * size);
    run.at = at;
    body(run);
  });
}

}  // namespace weft::shard
