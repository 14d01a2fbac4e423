// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "formats/flow.h"
#include "schedule/ir.h"

namespace weft::formats {

// Gives the values of a flow their slots, each written once, and makes the programs of it.
//
// A result goes to Out where it is made, unless the rank still reads the In slot that may be the same
// memory; a message lands in Tmp slots of its own else, and a sum takes the place of a message that
// nobody else reads.
class Placement {
 public:
  explicit Placement(const Flow& flow);

  std::vector<schedule::Program> run();
  std::uint32_t tmpChunks() const { return tmpChunks_; }

 private:
  // Where a value is. Neighbours of one unit are one piece of memory.
  struct Spot {
    schedule::Slot slot = schedule::tmp(0);
    std::uint32_t unit = 0;
  };
  static constexpr std::uint32_t kFixed = 0;  // unit of all of In and Out

  void findLastReads();
  void readAt(Flow::Value value, std::uint32_t event);
  bool mayWriteOut(const Flow::Node& node) const;
  void place(Flow::Value value);
  void placeMessage(std::uint32_t message);
  void placeSum(Flow::Value value);
  std::uint32_t newTmp(std::uint32_t rank);
  bool continues(const Spot& last, const Spot& next) const;
  bool sameRun(Flow::Value last, Flow::Value next) const;

  void emit(std::uint32_t rank, schedule::Program* program) const;
  void emitMessage(const Flow::Message& message, bool sends, schedule::Program* program) const;
  void emitSums(const Flow::Event& event, schedule::Program* program) const;
  void emitReduce(const std::vector<Flow::Value>& run, schedule::Program* program) const;
  void emitCopies(std::uint32_t rank, bool fromIn, schedule::Program* program) const;
  bool sumsContinue(Flow::Value last, Flow::Value next) const;

  const Flow& flow_;
  std::vector<Spot> spots_;                           // by value
  std::vector<std::vector<std::uint32_t>> lastRead_;  // [rank][In slot]: event, from 1
  std::vector<std::uint32_t> nextTmp_;                // by rank
  std::vector<std::uint32_t> lastUnit_;               // by rank, of Tmp slots that it writes itself
  std::uint32_t units_ = 1, tmpChunks_ = 0;
};

}  // namespace weft::formats
