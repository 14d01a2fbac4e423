// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/epilogue.h"
#include "reduce/optimizer.h"
#include "shard/layout.h"
#include "shard/of_threads.h"

namespace weft::shard {

// What a rank knows of the gradients that it has summed.
struct GradientReport {
  void add(const GradientReport& other);

  reduce::ExactSum squares;
  std::uint64_t nonFinite = 0;
  std::uint64_t firstBad = reduce::GradientStats::kNone;  // lowest logical index of one
  std::int32_t badMember = -1;  // which addend brought it, in the group; -1: the sum overflowed
};

inline constexpr std::size_t kFoldTile = 16 << 10;  // elements at once of what needs no call

// The epilogue of a reduction: adds the pieces of a part of a bucket in fp32 while they are in
// cache, accumulates, and, of final sums, takes the norm and looks for what is not finite.
class FoldEpilogue : public plan::Epilogue {
 public:
  FoldEpilogue();
  ~FoldEpilogue() override;

  struct Job {
    const Layout* layout = nullptr;
    std::uint32_t bucket = 0;
    std::uint64_t offset = 0;                 // of the part, in the flat buffer
    reduce::DType type = reduce::DType::F32;  // of the addends
    float* sums = nullptr;    // element 0 of the part; null: the results are the sums, of `type`
    bool accumulate = false;  // adds to what is in `sums`
    bool balanced = false;    // adds as a balanced binary tree rather than from left to right
    // Of that tree: leaves that earlier calls have brought, and by level the node that they have left
    // incomplete, each of the part, where there may be one.
    std::uint64_t leavesBefore = 0;
    std::span<float* const> nodes = {};
    bool isComplete = true;  // false: more leaves will come; the nodes are all that is made
    bool final = false;      // the report is of norms, too: else of what is not finite alone
    GradientReport* report = nullptr;
  };

  void begin(const Job& job) { job_ = job; }
  // After a call: what all threads have found is in the job's report.
  void end();
  Epilogue* ofThread(std::uint32_t k) override;
  void run(void* result, std::span<const void* const> addends, std::uint64_t first,
           std::size_t count) override;
  bool runToAll(std::span<void* const> results, std::span<const void* const> addends,
                std::uint64_t first, std::size_t count) override;
  double bytesBeside() const override { return job_.sums == nullptr ? 0 : sizeof(float); }
  // The same into `sums`, of the first element; the job's own are not used.
  void fold(float* sums, std::span<const void* const> addends, std::uint64_t first,
            std::size_t count);

 private:
  void foldPiece(const Layout::Piece& piece, std::uint64_t at, float* sums);
  void keepNodes(const Layout::Piece& piece, std::uint64_t at);
  void addUp(std::size_t begin, std::size_t end, std::uint64_t at, std::size_t count);
  void note(const reduce::GradientStats& stats, std::uint32_t parameter, const float* sums,
            std::uint64_t logical, std::uint64_t at, std::size_t n, std::size_t overwritten);
  std::size_t badInPlace(const float* sums, std::uint64_t at, std::size_t n) const;
  std::int32_t findBad(const float* sums, std::size_t i, std::uint64_t at,
                       std::size_t overwritten) const;
  reduce::Addend sumOf(std::size_t begin, std::size_t end, std::uint64_t at, std::size_t count,
                       std::size_t buffer);

  // Of another thread, with what it found.
  struct Beside;

  Job job_;
  OfThreads<Beside> beside_;
  bool streams_ = false;     // past the caches
  std::uint64_t first_ = 0;  // element of the part
  std::span<const void* const> inputs_;
  std::vector<reduce::Addend> addends_;
  std::vector<std::vector<float>> partial_;  // of a balanced sum: two for each level of the tree
  std::vector<float> rounded_;               // of sums that are stored in another type
};

}  // namespace weft::shard
