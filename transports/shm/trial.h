// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "transports/mapped/mapped_transport.h"
#include "transports/setup.h"

// May the ranks' processes copy from and to each other's memory by address (CMA)?
namespace weft::shm {

using namespace transport;

// What others read and write here to find that out: one of each process, until it ends.
struct Probe {
  Token process = {};  // the process's name
  std::atomic<std::uint64_t> word{0};
};
Status ownProbe(Probe** probe);

// Equal where pids mean the same and rights over other processes are alike; 0 without /proc.
std::uint64_t namespaces();

// The pid of a peer as this process sees it, 0 if it does not.
pid_t pidHere(const PeerInfo& peer, const PeerInfo& mine, const Fd& process);

// Which ranks tries this one: some at all distances, up and down. What one process may not, or
// others may not to it, is so for all its peers of one kind, and there are neighbours of any two
// kinds. Where kinds are to be seen, all.
std::vector<std::uint32_t> triedBy(std::uint32_t rank, const std::vector<PeerInfo>& infos);

Status tryDirect(const PeerInfo& peer, const mapped::PeerProcess& process);

}  // namespace weft::shm
