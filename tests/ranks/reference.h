// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "world.h"

// One collective call and what it must deliver, computed element by element.
namespace weft::testing {

enum class Form {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  Gather,
  Scatter,
  AlltoAll,
  AllGatherV,
  ReduceScatterV,
  GatherV,
  ScatterV,
  AlltoAllV,  // rank s has counts[(s + d) % ranks] for rank d, in that block's place, at both ends
  Barrier,
  Shift  // sends to the rank that is `root` further on
};
inline constexpr unsigned kFormsWithData = 13;  // of collectives: those before Barrier
const char* nameOf(Form form);                  // as weftAlgorithms knows the collective

bool isUneven(Form form);
bool exchanges(Form form);  // uneven, and each rank passes its own counts: there is no plan

// Whose buffers are of weftMemAlloc: nobody's, all ranks', or those of even ranks.
enum class Memory { Own, Shared, Mixed };

// Equal on all ranks.
struct Case {
  Form form = Form::AllReduce;
  weftDataType_t type = weftFloat;
  weftRedOp_t op = weftSum;
  bool preMul = false;  // instead of op; each rank has a scalar of its own
  std::size_t count = 0;
  std::vector<std::size_t> counts{}, displs{};  // of the v-forms; displs may be empty
  int root = 0;
  bool inPlace = false;
  std::string algorithm{};
  int ranks = 1;
  std::uint64_t seed = 0;
  Memory memory = Memory::Own;

  // Of AlltoAllV on one rank, by the other end; as `counts` and `displs` of the others.
  std::vector<std::size_t> countsOf(int rank) const;
  std::vector<std::size_t> displsOf(int rank) const;
  bool isRooted() const;
  bool reduces() const;
};
// Of all operations that the type has, the number-th; those that it has not count as sums.
weftRedOp_t opFor(weftDataType_t type, std::uint64_t number);
Case randomCase(std::mt19937_64& random, int ranks, std::size_t maxBytes);
std::string describe(const Case& c);

std::size_t sizeOf(weftDataType_t type);
// Elements that rank r sends and receives; 0 where the buffer is ignored.
std::size_t sendCount(const Case& c, int r);
std::size_t recvCount(const Case& c, int r);
// Where the small buffer lies in the large one, in elements, in place.
std::size_t ownOffset(const Case& c, int r);

// Values are small whole numbers such that every result is exact in every type.
double inputAt(const Case& c, int r, std::size_t i);
double scalarOf(int r);
// Nothing where the call must not write.
std::optional<double> expectedAt(const Case& c, int r, std::size_t i);

void store(std::byte* at, weftDataType_t type, double value);
double load(const std::byte* at, weftDataType_t type);

}  // namespace weft::testing
