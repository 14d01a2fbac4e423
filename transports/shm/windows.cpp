// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/windows.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/no_fork.h"
#include "transports/shm/memory.h"

namespace weft::shm {
namespace {

std::size_t controlBytes(const WindowLayout& layout) { return layout.arrivals(); }
std::size_t beginOf(const WindowLayout& layout, std::uint32_t rank) {
  return layout.ranks * controlBytes(layout) + rank * layout.size();
}
std::size_t sizeOf(const WindowLayout& layout) { return beginOf(layout, layout.ranks); }

struct KnownWindows {
  ForkSafeMutex mutex;
  std::map<Token, std::weak_ptr<Mapping>> byName;
};

KnownWindows& knownWindows() { return processWide<KnownWindows>(); }

}  // namespace

Status createWindows(const WindowLayout& layout, Fd* memory) {
  return createSparseMemory(sizeOf(layout), memory);
}

Status viewWindows(const Token& name, const Fd& memory, const WindowLayout& layout,
                   std::shared_ptr<Mapping>* windows) {
  const std::lock_guard lock(knownWindows().mutex);
  std::erase_if(knownWindows().byName, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Mapping>& known = knownWindows().byName[name];
  *windows = known.lock();
  if (*windows && (*windows)->present()) return {};
  const std::size_t bytes = sizeOf(layout);
  WEFT_TRY(checkMemory(memory, bytes));
  *windows = std::make_shared<Mapping>(mapSparse(memory, bytes, Pages::Small), bytes);
  if ((*windows)->base() == nullptr)
    return Status::error(Code::OutOfMemory, "cannot map ", bytes,
                         " bytes of shared memory: ", std::strerror(errno),
                         "; fix: ulimit -v unlimited, or fewer ranks");
  known = *windows;
  return {};
}

std::shared_ptr<std::byte> windowOf(const std::shared_ptr<Mapping>& windows,
                                    const WindowLayout& layout, std::uint32_t rank) {
  return {windows, windows->base() + beginOf(layout, rank)};
}

ControlPage* controlOf(const Mapping& windows, const WindowLayout& layout, std::uint32_t rank) {
  return reinterpret_cast<ControlPage*>(windows.base() + rank * controlBytes(layout));
}

void placeWindow(const Mapping& windows, const WindowLayout& layout, std::uint32_t rank, int node) {
  preferNode(windows.base() + rank * controlBytes(layout), controlBytes(layout), node);
  preferNode(windows.base() + beginOf(layout, rank), layout.size(), node);
}

Status fillWindow(const Fd& memory, std::byte* windows, const WindowLayout& layout,
                  std::uint32_t rank) {
  const std::size_t begin = beginOf(layout, rank), control = controlBytes(layout);
  WEFT_TRY(populatePages(memory, windows, rank * control, control, kFewerRanks));
  return populateFirst(layout, [&](std::size_t from, std::size_t bytes) {
    const std::size_t skipped = from == 0 ? control : 0;
    return populatePages(memory, windows, begin + from + skipped, bytes - skipped, kFewerRanks);
  });
}

Status populateFirst(const WindowLayout& layout, const Populate& populate) {
  WEFT_TRY(populate(0, roundUp(layout.arrivals() + layout.denseBytes(), kPage)));
  for (std::uint32_t lane = 1; lane < kMaxLanes && layout.dense != 0; ++lane) {
    const std::size_t from = layout.arrivals() + lane * layout.laneOfArrivals();
    const std::size_t first = from / kPage * kPage;
    WEFT_TRY(populate(first, roundUp(from + layout.denseBytes() - first, kPage)));
  }
  return {};
}

std::size_t firstBytes(const WindowLayout& layout) {
  return layout.arrivals() + kMaxLanes * (layout.denseBytes() + kPage);
}

}  // namespace weft::shm
