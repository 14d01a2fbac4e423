// SPDX-License-Identifier: Apache-2.0
// Run by mpirun behind libweft-mpi: every collective that it takes, on random types, operations, counts,
// roots, places and communicators, against the same call of the MPI library itself, byte for byte.
// Values are small whole numbers, so that sums of floats do not depend on their order.
#include <mpi.h>

#include <complex>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "below.h"

namespace weft::testing {
namespace {

using Bytes = std::vector<unsigned char>;

#ifdef OPEN_MPI
constexpr bool kIsOpenMpi = true;
#else
constexpr bool kIsOpenMpi = false;
#endif

int worldRank = 0;
int failed = 0;
unsigned long checked = 0;

struct Group {
  MPI_Comm comm;
  int rank, ranks;
};

Group groupOf(MPI_Comm comm) {
  Group g{comm, 0, 1};
  MPI_Comm_rank(comm, &g.rank);
  MPI_Comm_size(comm, &g.ranks);
  return g;
}

// How an element is filled.
enum class Fill { Int, Real };
struct Type {
  const char* name;
  MPI_Datatype type;
  std::size_t span;  // bytes from one element to the next
  std::function<void(unsigned char*, int)> put;
};

template <class T>
Type typeOf(const char* name, MPI_Datatype type) {
  return {name, type, sizeof(T), [](unsigned char* at, int value) {
            const T x = static_cast<T>(value);
            std::memcpy(at, &x, sizeof x);
          }};
}

std::vector<Type> predefined() {
  return {typeOf<int>("int", MPI_INT),
          typeOf<double>("double", MPI_DOUBLE),
          typeOf<float>("float", MPI_FLOAT),
          typeOf<long>("long", MPI_LONG),
          typeOf<unsigned>("unsigned", MPI_UNSIGNED),
          typeOf<signed char>("signed char", MPI_SIGNED_CHAR),
          typeOf<std::uint64_t>("uint64", MPI_UINT64_T),
          typeOf<short>("short", MPI_SHORT),
          typeOf<long double>("long double", MPI_LONG_DOUBLE),
          typeOf<std::complex<double>>("complex", MPI_C_DOUBLE_COMPLEX)};
}

bool isReal(const Type& t) {
  return t.type == MPI_DOUBLE || t.type == MPI_FLOAT || t.type == MPI_LONG_DOUBLE;
}

std::vector<MPI_Op> opsOf(const Type& t) {
  if (t.type == MPI_C_DOUBLE_COMPLEX) return {MPI_SUM, MPI_PROD};
  if (isReal(t)) return {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
  return {MPI_SUM, MPI_PROD, MPI_MAX,  MPI_MIN, MPI_BAND,
          MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
}

// Two ints of three, and a struct with a hole: data that does not lie in one run.
std::vector<Type> derived() {
  MPI_Datatype gaps, resized;
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_create_resized(gaps, 0, 4 * sizeof(int), &resized);
  MPI_Type_commit(&resized);
  MPI_Type_free(&gaps);
  const auto put = [](unsigned char* at, int value) {
    const int pair[] = {value, -1, value + 1};
    std::memcpy(at, pair, sizeof pair);
  };
  return {{"gaps", resized, 4 * sizeof(int), put}};
}

// One that the ranks choose alike.
template <class T>
const T& pick(std::mt19937& random, const std::vector<T>& list) {
  return list[random() % list.size()];
}

Bytes filled(const Type& t, std::size_t count, int rank, std::uint32_t seed) {
  Bytes bytes(t.span * count + 1, 0x5a);  // of nothing, too, MPICH wants an address
  std::mt19937 random(seed + 977 * static_cast<std::uint32_t>(rank));
  for (std::size_t i = 0; i < count; ++i)
    t.put(bytes.data() + i * t.span, static_cast<int>(random() % 4));
  return bytes;
}

void compare(const Bytes& got, const Bytes& wanted, const std::string& what) {
  ++checked;
  if (got == wanted) return;
  std::size_t at = 0;
  while (got[at] == wanted[at]) ++at;
  if (failed++ < 5)
    std::fprintf(stderr, "rank %d: %s: byte %zu of %zu is %d, not %d\n", worldRank, what.c_str(),
                 at, got.size(), got[at], wanted[at]);
}

std::size_t countOf(std::mt19937& random) {
  const std::size_t counts[] = {0, 1, 2, 3, 7, 64, 100, 1000, 5000};
  return counts[random() % std::size(counts)];
}

// One case: the same on all ranks, but for what the rank has.
struct Case {
  const Group& g;
  const Type& type;
  int count;
  int root;
  bool inPlace;
  std::uint32_t seed;

  int ranks() const { return g.ranks; }
  std::size_t all() const { return static_cast<std::size_t>(count * g.ranks); }
  Bytes input(std::size_t n) const { return filled(type, n, g.rank, seed); }
  // What a result is received into: in place, it has the input at this element.
  Bytes output(std::size_t n, const Bytes& in = {}, std::size_t at = 0) const {
    Bytes out(type.span * n + 1, 0xee);
    if (inPlace && !in.empty())
      std::memcpy(out.data() + at * type.span, in.data(), std::min(in.size(), out.size()) - 1);
    return out;
  }
  std::string name(const char* call) const {
    return std::string(call) + " of " + std::to_string(count) + " " + type.name + " on " +
           std::to_string(g.ranks) + " ranks" + (inPlace ? ", in place" : "") + ", root " +
           std::to_string(root);
  }
};

using Run = std::function<int(const void*, void*)>;

// The same call by both libraries, each with its own copy of what it receives into.
void both(const Case& c, const char* name, const Bytes& in, const Bytes& out, bool inPlace,
          const Run& here, const Run& below) {
  Bytes mine = out, theirs = out, sent = in;
  const auto from = [&] { return inPlace ? MPI_IN_PLACE : static_cast<const void*>(sent.data()); };
  if (here(from(), mine.data()) != MPI_SUCCESS || below(from(), theirs.data()) != MPI_SUCCESS)
    ++failed;
  compare(mine, theirs, c.name(name));
  compare(sent, in, c.name(name) + ": its input");
}

void reductions(const Case& c, MPI_Op op) {
  const auto n = static_cast<std::size_t>(c.count);
  const MPI_Datatype type = c.type.type;
  const MPI_Comm comm = c.g.comm;
  const Bytes in = c.input(n), wide = c.input(c.all());
  both(
      c, "Allreduce", in, c.output(n, in), c.inPlace,
      [&](const void* s, void* r) { return MPI_Allreduce(s, r, c.count, type, op, comm); },
      [&](const void* s, void* r) { return BELOW(Allreduce)(s, r, c.count, type, op, comm); });
  const bool isRoot = c.g.rank == c.root;
  // MPICH 4.0 crashes in a reduction in place whose root is not rank 0.
  const bool keeps = c.inPlace && isRoot && (kIsOpenMpi || c.root == 0);
  both(
      c, "Reduce", in, keeps ? c.output(n, in) : c.output(n), keeps,
      [&](const void* s, void* r) { return MPI_Reduce(s, r, c.count, type, op, c.root, comm); },
      [&](const void* s, void* r) { return BELOW(Reduce)(s, r, c.count, type, op, c.root, comm); });
  both(
      c, "Reduce_scatter_block", wide, c.inPlace ? wide : c.output(n), c.inPlace,
      [&](const void* s, void* r) {
        return MPI_Reduce_scatter_block(s, r, c.count, type, op, comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Reduce_scatter_block)(s, r, c.count, type, op, comm);
      });
  std::vector<int> counts;
  for (int r = 0; r < c.ranks(); ++r) counts.push_back(r % 2 == 0 ? c.count : c.count / 2);
  // What lies behind the own block is the input's in one library and anything in the other.
  Bytes mine = wide, theirs = wide;
  const std::size_t own = static_cast<std::size_t>(counts[static_cast<std::size_t>(c.g.rank)]);
  const void* const from = c.inPlace ? MPI_IN_PLACE : static_cast<const void*>(wide.data());
  MPI_Reduce_scatter(from, mine.data(), counts.data(), type, op, comm);
  BELOW(Reduce_scatter)(from, theirs.data(), counts.data(), type, op, comm);
  mine.resize(own * c.type.span);
  theirs.resize(own * c.type.span);
  compare(mine, theirs, c.name("Reduce_scatter"));
}

void evenMoves(const Case& c) {
  const auto n = static_cast<std::size_t>(c.count);
  const MPI_Datatype type = c.type.type;
  const MPI_Comm comm = c.g.comm;
  const bool isRoot = c.g.rank == c.root;
  const std::size_t own = n * static_cast<std::size_t>(c.g.rank);
  const Bytes in = c.input(n), wide = c.input(c.all());
  both(
      c, "Bcast", in, in, false,
      [&](const void*, void* r) { return MPI_Bcast(r, c.count, type, c.root, comm); },
      [&](const void*, void* r) { return BELOW(Bcast)(r, c.count, type, c.root, comm); });
  both(
      c, "Allgather", in, c.output(c.all(), in, own), c.inPlace,
      [&](const void* s, void* r) {
        return MPI_Allgather(s, c.count, type, r, c.count, type, comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Allgather)(s, c.count, type, r, c.count, type, comm);
      });
  both(
      c, "Gather", in, isRoot ? c.output(c.all(), in, own) : Bytes(1), c.inPlace && isRoot,
      [&](const void* s, void* r) {
        return MPI_Gather(s, c.count, type, r, c.count, type, c.root, comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Gather)(s, c.count, type, r, c.count, type, c.root, comm);
      });
  const bool keeps = c.inPlace && isRoot;  // of a scatter the receiver is in place
  both(
      c, "Scatter", wide, c.output(n), false,
      [&](const void* s, void* r) {
        return MPI_Scatter(s, c.count, type, keeps ? MPI_IN_PLACE : r, c.count, type, c.root, comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Scatter)(s, c.count, type, keeps ? MPI_IN_PLACE : r, c.count, type, c.root,
                              comm);
      });
  both(
      c, "Alltoall", wide, c.inPlace ? wide : c.output(c.all()), c.inPlace,
      [&](const void* s, void* r) {
        return MPI_Alltoall(s, c.count, type, r, c.count, type, comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Alltoall)(s, c.count, type, r, c.count, type, comm);
      });
}

// Blocks of other lengths, in order, in reverse with gaps, or with places of each rank's own.
struct Uneven {
  std::vector<int> counts, displs;
  std::size_t extent = 0;

  Uneven(std::mt19937& random, const Case& c, bool ownPlaces) : counts(), displs() {
    for (int r = 0; r < c.ranks(); ++r)
      counts.push_back(random() % 4 == 0
                           ? 0
                           : static_cast<int>(random() % (static_cast<unsigned>(c.count) + 1)));
    place(random() % 2 == 0, ownPlaces ? c.g.rank : 0);
  }
  void place(bool inOrder, int gap) {
    displs.assign(counts.size(), 0);
    int at = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const std::size_t r = inOrder ? k : counts.size() - 1 - k;
      displs[r] = at;
      at += counts[r] + (inOrder ? 0 : 1 + gap);
    }
    extent = static_cast<std::size_t>(at);
  }
};

void unevenMoves(const Case& c, std::mt19937& random) {
  const MPI_Datatype type = c.type.type;
  const MPI_Comm comm = c.g.comm;
  const bool isRoot = c.g.rank == c.root;
  const Uneven u(random, c, true);
  const auto me = static_cast<std::size_t>(c.g.rank);
  const int own = u.counts[me];
  const auto at = static_cast<std::size_t>(u.displs[me]);
  const int *counts = u.counts.data(), *displs = u.displs.data();
  const Bytes in = c.input(static_cast<std::size_t>(own)), wide = c.input(u.extent);
  both(
      c, "Allgatherv", in, c.output(u.extent, in, at), c.inPlace,
      [&](const void* s, void* r) {
        return MPI_Allgatherv(s, own, type, r, counts, displs, type, comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Allgatherv)(s, own, type, r, counts, displs, type, comm);
      });
  both(
      c, "Gatherv", in, isRoot ? c.output(u.extent, in, at) : Bytes(1), c.inPlace && isRoot,
      [&](const void* s, void* r) {
        return MPI_Gatherv(s, own, type, r, counts, displs, type, c.root, comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Gatherv)(s, own, type, r, counts, displs, type, c.root, comm);
      });
  const bool keeps = c.inPlace && isRoot;
  both(
      c, "Scatterv", wide, c.output(static_cast<std::size_t>(own)), false,
      [&](const void* s, void* r) {
        return MPI_Scatterv(s, counts, displs, type, keeps ? MPI_IN_PLACE : r, own, type, c.root,
                            comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Scatterv)(s, counts, displs, type, keeps ? MPI_IN_PLACE : r, own, type, c.root,
                               comm);
      });
}

// Rank s has (s + d) % 3 + 1 parts of the count for rank d.
void exchange(const Case& c) {
  Case plain = c;
  const MPI_Datatype type = c.type.type;
  std::vector<int> counts, displs;
  int at = 0;
  for (int r = 0; r < c.ranks(); ++r) {
    counts.push_back(c.count / ((r + c.g.rank) % 3 + 1));
    displs.push_back(at);
    at += counts.back() + (r % 2);
  }
  const auto extent = static_cast<std::size_t>(at);
  const Bytes in = c.input(extent);
  both(
      c, "Alltoallv", in, c.inPlace ? in : plain.output(extent), c.inPlace,
      [&](const void* s, void* r) {
        return MPI_Alltoallv(s, counts.data(), displs.data(), type, r, counts.data(), displs.data(),
                             type, c.g.comm);
      },
      [&](const void* s, void* r) {
        return BELOW(Alltoallv)(s, counts.data(), displs.data(), type, r, counts.data(),
                                displs.data(), type, c.g.comm);
      });
}

void runCases(const Group& g, std::uint32_t seed, int cases) {
  std::mt19937 random(seed);
  const std::vector<Type> simple = predefined(), complicated = derived();
  for (int k = 0; k < cases; ++k) {
    const Type& type = pick(random, random() % 4 == 0 ? complicated : simple);
    const std::size_t count = countOf(random);
    const Case c{g,
                 type,
                 static_cast<int>(count),
                 static_cast<int>(random() % static_cast<unsigned>(g.ranks)),
                 random() % 2 == 0,
                 static_cast<std::uint32_t>(random())};
    if (type.type != complicated[0].type) reductions(c, pick(random, opsOf(type)));
    evenMoves(c);
    // The counts must be those of all ranks: a generator of the case's own.
    std::mt19937 lengths(c.seed);
    unevenMoves(c, lengths);
    exchange(c);
    MPI_Barrier(g.comm);
  }
  for (const Type& t : complicated) {
    MPI_Datatype type = t.type;
    MPI_Type_free(&type);
  }
}

void runOn(MPI_Comm comm, std::uint32_t seed, int cases) {
  if (comm == MPI_COMM_NULL) return;
  runCases(groupOf(comm), seed, cases);
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  using namespace weft::testing;
  MPI_Init(&argc, &argv);
  const Group world = groupOf(MPI_COMM_WORLD);
  worldRank = world.rank;
  const int cases = argc > 1 ? std::atoi(argv[1]) : 40;
  runOn(MPI_COMM_WORLD, 1, cases);
  runOn(MPI_COMM_SELF, 2, 3);
  for (std::uint32_t k = 0; k < 3; ++k) {
    MPI_Comm duplicate, reversed, part;
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    MPI_Comm_split(duplicate, 0, -world.rank, &reversed);
    MPI_Comm_split(reversed, world.rank == 0 ? MPI_UNDEFINED : 0, 0, &part);
    runOn(duplicate, 3 + k, cases / 4);
    runOn(part, 6 + k, cases / 4);
    runOn(reversed, 9 + k, cases / 4);
    if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    MPI_Comm_free(&duplicate);
    if (k != 2) MPI_Comm_free(&reversed);  // MPI_Finalize finds one
  }
  int all = 0;
  MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world.rank == 0) std::printf("%lu results compared, %d failures\n", checked, all);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
