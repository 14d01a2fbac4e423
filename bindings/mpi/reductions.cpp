// SPDX-License-Identifier: Apache-2.0
// The collectives that reduce: of predefined operations on predefined types.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "below.h"
#include "entry.h"
#include "layout.h"
#include "types.h"

namespace weft::mpi {
namespace {

Why whyNot(bool isGood, MPI_Datatype type, MPI_Op op) {
  if (!isGood) return Why::Arguments;
  return reductionOf(type, op) ? Why::Count_ : Why::TypeOrOp;
}

std::size_t bytesOf(MPI_Datatype type, std::size_t count) { return Layout(type).size * count; }

std::byte* lowest(std::byte* element, std::size_t bytes) {
  return std::endian::native == std::endian::little ? element : element + bytes - 1;
}

// `run(in, out)`, of a logical reduction on bytes that say whether an element is 0.
template <class Run>
weftResult_t reduced(const Reduction& r, const void* in, std::size_t sent, void* out,
                     std::size_t received, const Run& run) {
  const std::size_t bytes = r.logicalBytes;
  if (bytes == 0) return run(in, out);
  const auto truth = scratch(sent), results = scratch(received);
  const auto isZero = [](std::byte b) { return b == std::byte{0}; };
  for (std::size_t i = 0; i < sent; ++i) {
    const auto* const element = static_cast<const std::byte*>(in) + i * bytes;
    truth[i] = std::byte{!std::all_of(element, element + bytes, isZero)};
  }
  const weftResult_t result = run(truth.get(), results.get());
  if (result != weftSuccess || received == 0) return result;
  std::memset(out, 0, received * bytes);
  for (std::size_t i = 0; i < received; ++i)
    *lowest(static_cast<std::byte*>(out) + i * bytes, bytes) = results[i];
  return result;
}

// MPI's in-place form has the sum where the input began, not in its block.
template <class Scatter>
weftResult_t scatterInPlace(void* buffer, std::size_t bytes, const Scatter& scatter) {
  const auto sum = scratch(bytes);
  const weftResult_t result = scatter(buffer, sum.get());
  if (result == weftSuccess) std::memcpy(buffer, sum.get(), bytes);
  return result;
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

extern "C" int MPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type,
                             MPI_Op op, MPI_Comm comm) {
  return collective(
      Name::Allreduce, comm, [&](const Attached&) { return whyNot(isCount(count), type, op); },
      [&](const Attached& a) {
        const Reduction r = *reductionOf(type, op);
        const std::size_t n = sizeOf(count);
        return reduced(r, isInPlace(sendbuf) ? recvbuf : sendbuf, n, recvbuf, n,
                       [&](const void* in, void* out) {
                         return weftAllReduce(in, out, n * r.width, r.type, r.op, a.comm, nullptr,
                                              nullptr);
                       });
      },
      [&] { return WEFT_MPI_BELOW(Allreduce)(sendbuf, recvbuf, count, type, op, comm); });
}
WEFT_MPI_BOTH_NAMES(Allreduce);

extern "C" int MPI_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type,
                          MPI_Op op, int root, MPI_Comm comm) {
  return collective(
      Name::Reduce, comm,
      [&](const Attached& a) { return whyNot(isCount(count) && isRankOf(a, root), type, op); },
      [&](const Attached& a) {
        const Reduction r = *reductionOf(type, op);
        const std::size_t n = sizeOf(count);
        return reduced(r, isInPlace(sendbuf) ? recvbuf : sendbuf, n, recvbuf,
                       a.rank == root ? n : 0, [&](const void* in, void* out) {
                         return weftReduce(in, out, n * r.width, r.type, r.op, root, a.comm,
                                           nullptr, nullptr);
                       });
      },
      [&] { return WEFT_MPI_BELOW(Reduce)(sendbuf, recvbuf, count, type, op, root, comm); });
}
WEFT_MPI_BOTH_NAMES(Reduce);

extern "C" int MPI_Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                                        MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return collective(
      Name::ReduceScatterBlock, comm,
      [&](const Attached&) { return whyNot(isCount(recvcount), type, op); },
      [&](const Attached& a) {
        const Reduction r = *reductionOf(type, op);
        const std::size_t n = sizeOf(recvcount);
        const auto scatter = [&](const void* from, void* to) {
          return reduced(r, from, n * sizeOf(a.ranks), to, n, [&](const void* in, void* out) {
            return weftReduceScatter(in, out, n * r.width, r.type, r.op, a.comm, nullptr, nullptr);
          });
        };
        if (!isInPlace(sendbuf)) return scatter(sendbuf, recvbuf);
        return scatterInPlace(recvbuf, bytesOf(type, sizeOf(recvcount)), scatter);
      },
      [&] {
        return WEFT_MPI_BELOW(Reduce_scatter_block)(sendbuf, recvbuf, recvcount, type, op, comm);
      });
}
WEFT_MPI_BOTH_NAMES(Reduce_scatter_block);

extern "C" int MPI_Reduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[],
                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return collective(
      Name::ReduceScatter, comm,
      [&](const Attached& a) { return whyNot(areCounts(a, recvcounts), type, op); },
      [&](const Attached& a) {
        const Reduction r = *reductionOf(type, op);
        std::vector<std::size_t> counts;
        std::size_t all = 0;
        for (int k = 0; k < a.ranks; ++k) {
          counts.push_back(sizeOf(recvcounts[k]) * r.width);
          all += sizeOf(recvcounts[k]);
        }
        const std::size_t own = sizeOf(recvcounts[a.rank]);
        const auto scatter = [&](const void* from, void* to) {
          return reduced(r, from, all, to, own, [&](const void* in, void* out) {
            return weftReduceScatterV(in, out, counts.data(), nullptr, r.type, r.op, a.comm,
                                      nullptr, nullptr);
          });
        };
        if (!isInPlace(sendbuf)) return scatter(sendbuf, recvbuf);
        return scatterInPlace(recvbuf, bytesOf(type, sizeOf(recvcounts[a.rank])), scatter);
      },
      [&] { return WEFT_MPI_BELOW(Reduce_scatter)(sendbuf, recvbuf, recvcounts, type, op, comm); });
}
WEFT_MPI_BOTH_NAMES(Reduce_scatter);
