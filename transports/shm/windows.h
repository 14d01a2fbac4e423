// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/fd.h"
#include "base/status.h"
#include "transports/mapping.h"
#include "transports/setup.h"

// The windows of all ranks of a host side by side in one memory, which the first of them makes: a
// rank has one descriptor and one mapping of it, however many there are. Each gives pages to its
// own, so they lie near it. The control pages of all ranks come first, side by side: who looks at
// all others needs few page tables.
namespace weft::shm {

using namespace transport;

inline constexpr const char* kFewerRanks =
    "run fewer ranks a host or set a smaller WEFT_SEGMENT_KB";

// Without pages.
Status createWindows(const WindowLayout&, Fd* memory);
// As they lie in this process, once for all its ranks: `name` says which memory that is.
Status viewWindows(const Token& name, const Fd& memory, const WindowLayout&,
                   std::shared_ptr<Mapping>* windows);
// Keeps all of them mapped.
std::shared_ptr<std::byte> windowOf(const std::shared_ptr<Mapping>& windows, const WindowLayout&,
                                    std::uint32_t rank);
ControlPage* controlOf(const Mapping& windows, const WindowLayout&, std::uint32_t rank);
// All pages of a rank's own are to come from that NUMA node, also those that its peers touch first.
void placeWindow(const Mapping& windows, const WindowLayout&, std::uint32_t rank, int node);
// Gives a rank's own its first pages.
Status fillWindow(const Fd& memory, std::byte* windows, const WindowLayout&, std::uint32_t rank);

// What has pages in any window from the beginning: whole pages of it.
using Populate = std::function<Status(std::size_t from, std::size_t bytes)>;
Status populateFirst(const WindowLayout&, const Populate&);
// So many bytes, about.
std::size_t firstBytes(const WindowLayout&);

}  // namespace weft::shm
