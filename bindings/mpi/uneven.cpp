// SPDX-License-Identifier: Apache-2.0
// The v-forms: bytes, whatever the type.
#include "below.h"
#include "blocks.h"
#include "entry.h"
#include "layout.h"

namespace weft::mpi {
namespace {

using Where = Blocks::Where;

// weft wants the same places on all ranks, which MPI does not: blocks in rank order are that.
Blocks gathered(const Attached& a, const Layout& out, void* buffer, const int* counts,
                const int* displs, bool holds) {
  Blocks all(out, buffer, counts, displs, a.ranks, holds);
  if (all.isPacked()) return all;
  return Blocks(out, buffer, counts, displs, a.ranks, holds, Where::Copy);
}

struct Exchanged {
  const void* buffer;
  const int* counts;
  const int* displs;
  const Layout& layout;
};

// weft has no in-place form, and looks for overlap in whole buffers.
weftResult_t exchange(const Attached& a, const Exchanged& in, const Exchanged& out, bool inPlace) {
  Blocks received(out.layout, out.buffer, out.counts, out.displs, a.ranks, false);
  Blocks sent(in.layout, in.buffer, in.counts, in.displs, a.ranks, true,
              inPlace ? Where::Copy : Where::InPlace);
  const auto run = [&](Blocks& from) {
    const weftResult_t result =
        weftAlltoAllV(from.start(), from.counts(), from.displs(), received.start(),
                      received.counts(), received.displs(), weftUint8, a.comm, nullptr, nullptr);
    if (result == weftSuccess) received.deliver();
    return result;
  };
  const bool overlaps = sent.begin() < received.end() && received.begin() < sent.end();
  if (!overlaps) return run(sent);
  Blocks copy(in.layout, in.buffer, in.counts, in.displs, a.ranks, true, Where::Copy);
  return run(copy);
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

extern "C" int MPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                              void* recvbuf, const int recvcounts[], const int displs[],
                              MPI_Datatype recvtype, MPI_Comm comm) {
  const bool inPlace = isInPlace(sendbuf);
  const Layout in(inPlace ? recvtype : sendtype), out(recvtype);
  return collective(
      Name::Allgatherv, comm,
      [&](const Attached& a) {
        return refusedUnless(in.isGood && out.isGood && areCounts(a, recvcounts) && displs &&
                             (inPlace || isCount(sendcount)));
      },
      [&](const Attached& a) {
        Blocks all = gathered(a, out, recvbuf, recvcounts, displs, inPlace);
        const Sent mine(in, sendbuf, inPlace ? 0 : sizeOf(sendcount));
        const weftResult_t result =
            weftAllGatherV(inPlace ? all.block(a.rank) : mine.data(), all.start(), all.counts(),
                           nullptr, weftUint8, a.comm, nullptr, nullptr);
        if (result == weftSuccess) all.deliver();
        return result;
      },
      [&] {
        return WEFT_MPI_BELOW(Allgatherv)(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                          recvtype, comm);
      });
}
WEFT_MPI_BOTH_NAMES(Allgatherv);

extern "C" int MPI_Gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                           const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                           int root, MPI_Comm comm) {
  const bool inPlace = isInPlace(sendbuf);
  const Layout in(inPlace ? recvtype : sendtype);
  return collective(
      Name::Gatherv, comm,
      [&](const Attached& a) {
        const bool isGood =
            a.rank != root || (Layout(recvtype).isGood && areCounts(a, recvcounts) && displs);
        return refusedUnless(isRankOf(a, root) && isGood && in.isGood &&
                             (inPlace || isCount(sendcount)));
      },
      [&](const Attached& a) {
        const Sent mine(in, sendbuf, inPlace ? 0 : sizeOf(sendcount));
        if (a.rank != root)
          return weftGatherV(mine.data(), mine.bytes(), nullptr, nullptr, nullptr, weftUint8, root,
                             a.comm, nullptr, nullptr);
        const Layout out(recvtype);
        Blocks all(out, recvbuf, recvcounts, displs, a.ranks, inPlace);
        const weftResult_t result = weftGatherV(
            inPlace ? all.block(root) : mine.data(), inPlace ? all.bytes(root) : mine.bytes(),
            all.start(), all.counts(), all.displs(), weftUint8, root, a.comm, nullptr, nullptr);
        if (result == weftSuccess) all.deliver();
        return result;
      },
      [&] {
        return WEFT_MPI_BELOW(Gatherv)(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                       recvtype, root, comm);
      });
}
WEFT_MPI_BOTH_NAMES(Gatherv);

extern "C" int MPI_Scatterv(const void* sendbuf, const int sendcounts[], const int displs[],
                            MPI_Datatype sendtype, void* recvbuf, int recvcount,
                            MPI_Datatype recvtype, int root, MPI_Comm comm) {
  const bool inPlace = isInPlace(recvbuf);
  const Layout out(inPlace ? sendtype : recvtype);
  return collective(
      Name::Scatterv, comm,
      [&](const Attached& a) {
        const bool isGood =
            a.rank != root || (Layout(sendtype).isGood && areCounts(a, sendcounts) && displs);
        return refusedUnless(isRankOf(a, root) && isGood && out.isGood &&
                             (inPlace || isCount(recvcount)));
      },
      [&](const Attached& a) {
        Received mine(out, recvbuf, inPlace ? 0 : sizeOf(recvcount));
        weftResult_t result = weftSuccess;
        if (a.rank != root) {
          result = weftScatterV(nullptr, nullptr, nullptr, mine.data(), mine.bytes(), weftUint8,
                                root, a.comm, nullptr, nullptr);
        } else {
          const Layout in(sendtype);
          Blocks all(in, sendbuf, sendcounts, displs, a.ranks, true);
          result = weftScatterV(
              all.start(), all.counts(), all.displs(), inPlace ? all.block(root) : mine.data(),
              inPlace ? all.bytes(root) : mine.bytes(), weftUint8, root, a.comm, nullptr, nullptr);
        }
        if (result == weftSuccess && !inPlace) mine.deliver();
        return result;
      },
      [&] {
        return WEFT_MPI_BELOW(Scatterv)(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                                        recvtype, root, comm);
      });
}
WEFT_MPI_BOTH_NAMES(Scatterv);

extern "C" int MPI_Alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                             MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                             const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  const bool inPlace = isInPlace(sendbuf);
  const Layout in(inPlace ? recvtype : sendtype), out(recvtype);
  return collective(
      Name::Alltoallv, comm,
      [&](const Attached& a) {
        const bool isGood = inPlace || (areCounts(a, sendcounts) && sdispls);
        return refusedUnless(in.isGood && out.isGood && isGood && areCounts(a, recvcounts) &&
                             rdispls);
      },
      [&](const Attached& a) {
        const Exchanged received{recvbuf, recvcounts, rdispls, out};
        if (inPlace) return exchange(a, received, received, true);
        return exchange(a, {sendbuf, sendcounts, sdispls, in}, received, false);
      },
      [&] {
        return WEFT_MPI_BELOW(Alltoallv)(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                         recvcounts, rdispls, recvtype, comm);
      });
}
WEFT_MPI_BOTH_NAMES(Alltoallv);
