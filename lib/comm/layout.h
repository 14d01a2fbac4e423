// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "plan/bind.h"
#include "plan/tuning.h"
#include "transports/window.h"
#include "tune/machine.h"

namespace weft::comm {

// Staging memory of one lane, inside a host.
inline constexpr std::size_t kArenaBytes = std::size_t{1} << 20;

// The size of a segment there: those in flight fit half of a core's cache; of long messages, which may
// have twice as much, all of it.
std::int64_t stagingKbInHost(const tune::Machine& machine);

// What every rank's window has room for. Room is address space: pages come with what is used, so
// what plans may need only when they are forced costs nothing. InvalidUsage if there are more arrival
// slots than can be numbered: from some 5,800 ranks on between hosts, whose wires have 28 bits for
// it, and 23,000 on one host, where they are counted with 32. All but their number is said of such a
// one, too.
Status layoutFor(const plan::Tuning& tuning, bool oneHost, transport::WindowLayout* layout);

// What plans are bound to there: all but which rank it is, and what its transport keeps back. The costs
// know the cores by now, which say how many of a ring's staged messages may be on their way: ranks that
// share cores make as many calls in a turn as they may go ahead. Who has a core gains nothing by that,
// and loses where they leave its cache.
plan::BindTarget targetFor(const plan::Tuning& tuning, const transport::WindowLayout& layout);

}  // namespace weft::comm
