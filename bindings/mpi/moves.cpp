// SPDX-License-Identifier: Apache-2.0
// The collectives that move equal blocks: bytes, whatever the type.
#include <cstring>

#include "below.h"
#include "entry.h"
#include "layout.h"

using namespace weft::mpi;

extern "C" int MPI_Barrier(MPI_Comm comm) {
  return collective(
      Name::Barrier, comm, [](const Attached&) { return Why::Count_; },
      [](const Attached& a) { return weftBarrier(a.comm, nullptr, nullptr); },
      [&] { return WEFT_MPI_BELOW(Barrier)(comm); });
}
WEFT_MPI_BOTH_NAMES(Barrier);

extern "C" int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const Layout layout(type);
  return collective(
      Name::Bcast, comm,
      [&](const Attached& a) {
        return refusedUnless(layout.isGood && isCount(count) && isRankOf(a, root));
      },
      [&](const Attached& a) {
        Received data(layout, buffer, sizeOf(count), a.rank == root);
        const weftResult_t result = weftBroadcast(data.data(), data.data(), data.bytes(), weftUint8,
                                                  root, a.comm, nullptr, nullptr);
        if (result == weftSuccess && a.rank != root) data.deliver();
        return result;
      },
      [&] { return WEFT_MPI_BELOW(Bcast)(buffer, count, type, root, comm); });
}
WEFT_MPI_BOTH_NAMES(Bcast);

extern "C" int MPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                             void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  const bool inPlace = isInPlace(sendbuf);
  const Layout in(inPlace ? recvtype : sendtype), out(recvtype);
  return collective(
      Name::Allgather, comm,
      [&](const Attached&) {
        return refusedUnless(in.isGood && out.isGood && isCount(recvcount) &&
                             (inPlace || isCount(sendcount)));
      },
      [&](const Attached& a) {
        const std::size_t block = sizeOf(recvcount) * out.size;
        Received all(out, recvbuf, sizeOf(recvcount) * sizeOf(a.ranks), inPlace);
        const Sent mine(in, sendbuf, inPlace ? 0 : sizeOf(sendcount));
        const weftResult_t result =
            weftAllGather(inPlace ? all.data() + sizeOf(a.rank) * block : mine.data(), all.data(),
                          inPlace ? block : mine.bytes(), weftUint8, a.comm, nullptr, nullptr);
        if (result == weftSuccess) all.deliver();
        return result;
      },
      [&] {
        return WEFT_MPI_BELOW(Allgather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                         comm);
      });
}
WEFT_MPI_BOTH_NAMES(Allgather);

extern "C" int MPI_Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                          int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  const bool inPlace = isInPlace(sendbuf);
  const Layout in(inPlace ? recvtype : sendtype);
  return collective(
      Name::Gather, comm,
      [&](const Attached& a) {
        const bool isGood = a.rank != root || (Layout(recvtype).isGood && isCount(recvcount));
        return refusedUnless(isRankOf(a, root) && isGood && in.isGood &&
                             (inPlace || isCount(sendcount)));
      },
      [&](const Attached& a) {
        const Sent mine(in, sendbuf, inPlace ? 0 : sizeOf(sendcount));
        if (a.rank != root)
          return weftGather(mine.data(), nullptr, mine.bytes(), weftUint8, root, a.comm, nullptr,
                            nullptr);
        const Layout out(recvtype);
        const std::size_t block = sizeOf(recvcount) * out.size;
        Received all(out, recvbuf, sizeOf(recvcount) * sizeOf(a.ranks), inPlace);
        const weftResult_t result =
            weftGather(inPlace ? all.data() + sizeOf(root) * block : mine.data(), all.data(), block,
                       weftUint8, root, a.comm, nullptr, nullptr);
        if (result == weftSuccess) all.deliver();
        return result;
      },
      [&] {
        return WEFT_MPI_BELOW(Gather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                      root, comm);
      });
}
WEFT_MPI_BOTH_NAMES(Gather);

extern "C" int MPI_Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                           int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  const bool inPlace = isInPlace(recvbuf);
  const Layout out(inPlace ? sendtype : recvtype);
  return collective(
      Name::Scatter, comm,
      [&](const Attached& a) {
        const bool isGood = a.rank != root || (Layout(sendtype).isGood && isCount(sendcount));
        return refusedUnless(isRankOf(a, root) && isGood && out.isGood &&
                             (inPlace || isCount(recvcount)));
      },
      [&](const Attached& a) {
        Received mine(out, recvbuf, inPlace ? 0 : sizeOf(recvcount));
        const bool isRoot = a.rank == root;
        const Layout in(isRoot ? sendtype : recvtype);
        const std::size_t block = isRoot ? sizeOf(sendcount) * in.size : mine.bytes();
        const Sent all(in, sendbuf, isRoot ? sizeOf(sendcount) * sizeOf(a.ranks) : 0);
        auto* const kept = const_cast<std::byte*>(all.data()) + sizeOf(root) * block;
        const weftResult_t result =
            weftScatter(isRoot ? all.data() : nullptr, inPlace ? kept : mine.data(), block,
                        weftUint8, root, a.comm, nullptr, nullptr);
        if (result == weftSuccess && !inPlace) mine.deliver();
        return result;
      },
      [&] {
        return WEFT_MPI_BELOW(Scatter)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                       root, comm);
      });
}
WEFT_MPI_BOTH_NAMES(Scatter);

extern "C" int MPI_Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                            void* recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  const bool inPlace = isInPlace(sendbuf);
  const Layout in(inPlace ? recvtype : sendtype), out(recvtype);
  return collective(
      Name::Alltoall, comm,
      [&](const Attached&) {
        return refusedUnless(in.isGood && out.isGood && isCount(recvcount) &&
                             (inPlace || isCount(sendcount)));
      },
      [&](const Attached& a) {
        const std::size_t count = sizeOf(inPlace ? recvcount : sendcount);
        const Sent mine(in, inPlace ? recvbuf : sendbuf, count * sizeOf(a.ranks));
        Received all(out, recvbuf, sizeOf(recvcount) * sizeOf(a.ranks));
        const bool aliased = inPlace && in.isDense;  // weft has no in-place form
        const auto copy = scratch(aliased ? mine.bytes() : 0);
        if (aliased && mine.bytes() != 0) std::memcpy(copy.get(), mine.data(), mine.bytes());
        const weftResult_t result =
            weftAlltoAll(aliased ? copy.get() : mine.data(), all.data(), count * in.size, weftUint8,
                         a.comm, nullptr, nullptr);
        if (result == weftSuccess) all.deliver();
        return result;
      },
      [&] {
        return WEFT_MPI_BELOW(Alltoall)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                        comm);
      });
}
WEFT_MPI_BOTH_NAMES(Alltoall);
