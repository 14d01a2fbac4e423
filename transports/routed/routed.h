// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/transport.h"

namespace weft::routed {

using namespace transport;

// Several transports in one communicator: each peer is reached by one of them. All lead to and from
// the same window, which is that of the first.
class RoutedTransport final : public Transport {
 public:
  struct Route {
    std::uint32_t part = 0;
    std::uint32_t peer = 0;  // its number there
  };
  struct Parts {
    Parts() = default;
    Parts(Parts&&) = default;
    ~Parts();  // from the last to the first, whose window the others hear their peers' good-byes in
    Parts& operator=(Parts&&) = delete;

    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<Route> routes;  // by rank; this rank by the first
    std::string name;           // "shm+ofi"
  };
  explicit RoutedTransport(Parts parts);

  const char* name() const override { return parts_.name.c_str(); }
  Caps caps() const override { return caps_; }
  const WindowLayout& layout() const override { return first().layout(); }
  WindowView own() const override { return first().own(); }
  std::shared_ptr<std::byte> window() const override { return first().window(); }
  ControlPage* control(std::uint32_t p) const override { return of(p).control(at(p)); }
  bool isMirrored(std::uint32_t p) const override { return of(p).isMirrored(at(p)); }
  std::string describe(std::uint32_t p) const override { return of(p).describe(at(p)); }
  int deathFd(std::uint32_t p) const override { return of(p).deathFd(at(p)); }
  int statFd(std::uint32_t p) const override { return of(p).statFd(at(p)); }

  bool getFrom(std::uint32_t p, std::uint64_t from, void* to, std::size_t bytes) override;
  bool putTo(std::uint32_t p, std::uint64_t to, const void* from, std::size_t bytes) override;
  bool hasDirect(std::uint32_t p) const override { return of(p).hasDirect(at(p)); }
  Status commit(std::uint32_t p, std::size_t from, std::size_t bytes) override {
    return of(p).commit(at(p), from, bytes);
  }

  Status branch(const TransportSetup& setup, std::span<const std::uint32_t> members,
                std::unique_ptr<Transport>* out) override;

  void acquireProgress() override {
    for (const auto& part : parts_.transports) part->acquireProgress();
  }
  void releaseProgress() override {
    for (const auto& part : parts_.transports) part->releaseProgress();
  }
  bool handOver() override;
  bool hasNews() const override {
    return std::ranges::any_of(parts_.transports, [](const auto& part) { return part->hasNews(); });
  }
  PutResult put(const Put&) override;
  void expectPut(std::uint32_t p, std::uint64_t arrival, std::uint64_t target,
                 std::size_t bytes) override {
    of(p).expectPut(at(p), arrival, target, bytes);
  }
  bool tell(std::uint32_t p, std::uint64_t completed) override {
    return of(p).tell(at(p), completed);
  }
  int poll(Event* out, int max) override;
  std::size_t outstanding() const override;
  bool isPending(std::uint32_t p) const override { return of(p).isPending(at(p)); }
  void wake(std::uint32_t p) override { of(p).wake(at(p)); }
  void sever(std::uint32_t p) override { of(p).sever(at(p)); }
  bool isDown(std::uint32_t p) const override { return of(p).isDown(at(p)); }
  const Status& lastError() const override { return *lastError_.load(); }

 private:
  const Transport& first() const { return *parts_.transports[0]; }
  Transport& of(std::uint32_t p) const { return *parts_.transports[parts_.routes[p].part]; }
  std::uint32_t at(std::uint32_t p) const { return parts_.routes[p].peer; }
  bool answers(std::uint32_t p, bool done);

  Parts parts_;
  Caps caps_;
  std::vector<std::vector<std::uint32_t>> rankOf_;  // by transport and number there
  std::atomic<const Status*> lastError_;
};

// Each peer is reached by memory inside the host, or by one of the wires, which both ends name
// alike. `inside` joins this rank and all others for which host[r] == host[setup.rank], and sees
// setup.ranks of these; null: all use wires. Every rank of all takes part in each wire.
struct RoutedSetup {
  static constexpr std::uint32_t kInside = ~std::uint32_t{0};

  std::vector<std::uint32_t> hosts;  // by rank: number of its host
  std::function<Status(const TransportSetup&, std::unique_ptr<Transport>*)> inside;
  using MakeWire = std::function<Status(const TransportSetup&, std::unique_ptr<Transport>*)>;
  std::vector<MakeWire> wires;
  std::vector<std::uint32_t> wireOf;  // by rank: index in wires, or kInside; kInside for this rank
};
Status makeRouted(const TransportSetup& setup, const RoutedSetup& routed,
                  std::unique_ptr<Transport>* out);

}  // namespace weft::routed
