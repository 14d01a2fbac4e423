// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/ir.h"

// Pure functions Schedule -> Schedule. They compose in any sensible order. Lanes and segments are no
// transforms: the engine runs the same program on each segment.
namespace weft::schedule {

// Puts into a peer's Out go into Tmp slots of the peer, which copies them to Out after the Wait:
// for peers whose user memory cannot be written from outside. Tmp + outChunks.
Schedule stageOut(Schedule s);

// As stageOut(), for ranks that read each other's Tmp memory, where each puts the same to all its
// peers, one after the other: it keeps it in its own, for them to read (Schedule::published). What
// costs stageOut() a store for each peer costs this one for all.
Schedule publishOut(Schedule s);

// Puts into a peer's Out wait for that peer's clear-to-send: a signal that it sends when it enters
// the call, one for each of its writers. So nobody writes to a buffer whose owner has not handed it
// over, and the owner can tell where the buffer is. Signals + ranks (slot base + receiver, at the
// writer).
Schedule awaitClearToSend(Schedule s);

// For schedules that read or write their peers' buffers (Slot::owner, Puts into Out): every rank
// tells every other that it has entered, and hears so from all, before it touches anything; and
// who has read a peer's In tells it before it waits again, unless a later Put of its own says as much.
// So it also gives agreement. Signals + 2 * ranks. Who reads a rank's In last is read off the typical
// ranks.
Schedule openBuffers(Schedule s);

// Apply(Scale) makes Tmp of In first, which is read from there: for pre-multiplied sums. Reductions
// only. Tmp + inChunks.
Schedule prescale(Schedule s);

// An all-gather whose blocks an epilogue makes: Apply(Finish) fills Out at this rank's block before
// its first use, and what was read from In is read from there. In need not exist.
Schedule makeFirst(Schedule allGather);

}  // namespace weft::schedule
