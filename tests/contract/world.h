// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/text.h"
#include "transports/mapping.h"
#include "transports/transport.h"
#include "transports/wire/wire_transport.h"

// A little world of ranks for one test: threads, or forked processes that report back through
// pipes.
namespace weft::transport {

// A rank's test has failed. Assertions of GoogleTest would not get out of a forked process.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
#define REQUIRE(condition, ...)                                                             \
  do {                                                                                      \
    if (!(condition))                                                                       \
      throw ::weft::transport::Failure(::weft::text(                                        \
          __FILE__, ":", __LINE__, ": " #condition " fails; " __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)

// What is under test.
struct Fabric {
  std::string name;
  bool shm = false;
  bool processes = false;
  std::string faults = {};    // of the decorator
  int decorators = 0;         // how many of them, one over another
  wire::WireMaker wire = {};  // neither local nor shm: a WireTransport over this
  bool routed = false;        // over `wire` to ranks of other hosts only, two on each
};
std::ostream& operator<<(std::ostream&, const Fabric&);
std::vector<Fabric> bareFabrics();  // whose memory is mapped
std::vector<Fabric> wireFabrics();
std::vector<Fabric> routedFabrics();  // memory inside hosts, a wire between them
std::vector<Fabric> allFabrics();
std::vector<Fabric> mappedFabrics();  // those of all whose memory is mapped
Fabric verbsFabric();
Fabric ofiFabric();                   // for machines with RDMA, as the rigs make them
std::vector<Fabric> forkedFabrics();  // of these, those whose ranks are processes

// Seen by the body of one rank, in its own thread or process.
class Rank {
 public:
  Rank(const Fabric& under, std::uint32_t self, std::vector<int> links)
      : fabric(under),
        rank(self),
        ranks(static_cast<std::uint32_t>(links.size())),
        links_(std::move(links)) {}

  const Fabric& fabric;
  const std::uint32_t rank;
  const std::uint32_t ranks;

  // The control plane: a star of socket pairs around rank 0, with a deadline.
  Status exchange(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all);
  void barrier();
  template <class T>
  std::vector<T> share(const T& mine);

  TransportSetup setup(const WindowLayout& layout);
  // By the fabric: local or shm, decorated or not. Collective.
  Status tryMake(const TransportSetup&, std::unique_ptr<Transport>* out);
  std::unique_ptr<Transport> make(const WindowLayout& layout);

 private:
  void send(int link, std::span<const std::byte> bytes);
  std::vector<std::byte> receive(int link);

  std::vector<int> links_;  // of rank 0: one a rank; of others: [0] leads to rank 0
};

struct Outcome {
  std::string failure;  // empty = well
  int signal = 0;       // that ended the process
};

// Runs `body` once for each rank, all at the same time; returns when all have ended.
std::vector<Outcome> runRanks(const Fabric& fabric, std::uint32_t ranks,
                              const std::function<void(Rank&)>& body);
// The same, with a failure of the calling test for each that is not well.
void runAllWell(const Fabric& fabric, std::uint32_t ranks, const std::function<void(Rank&)>& body);

// Small: 64 arrival slots of collectives and 64 KiB a lane.
WindowLayout smallLayout(std::uint32_t ranks);

template <class T>
std::vector<T> Rank::share(const T& mine) {
  std::vector<std::vector<std::byte>> blobs;
  const Status status = exchange(std::as_bytes(std::span(&mine, 1)), &blobs);
  REQUIRE(status.ok(), status.text());
  std::vector<T> all(blobs.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    std::copy(blobs[i].begin(), blobs[i].end(), reinterpret_cast<std::byte*>(&all[i]));
  return all;
}

}  // namespace weft::transport
