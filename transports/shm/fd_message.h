// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "transports/setup.h"

// What ranks of one host say to each other while they meet: messages that carry descriptors, over
// abstract UNIX sockets, which have no file and are gone with their process.
namespace weft::shm {

using namespace transport;

// What each rank gives to each other one, as far as it has them; kProcess is its own pidfd.
// kMemory, of the windows, is the first rank's alone.
enum Descriptor : std::size_t { kMemory, kProcess, kStat, kHeap, kDescriptors };
using Descriptors = std::array<Fd, kDescriptors>;

inline constexpr std::size_t kMostDescriptors = 253;  // in one message: Linux's SCM_MAX_FD

struct FdMessage {
  enum Kind : std::uint32_t {
    Hello,    // of rank `first`, with its descriptors
    Table,    // those of ranks `first`, `first` + 1, ...
    Verdict,  // why nobody gets any: a packed Status
  };

  Kind kind = Hello;
  std::uint32_t first = 0;
  Token secret = {};               // of the one that is spoken to
  std::vector<std::byte> content;  // of each rank, bit i: descriptor i is attached; or the status
};

struct ReceivedMessage : FdMessage {
  bool sound = false;  // else all the rest is nothing
  std::vector<Fd> descriptors;
  bool cut = false;  // some were lost: our table is full
};

Status socketError(const std::string& doing);
Fd newSocket();
// Whoever wants to connect must know the token.
Status listenAs(const Token&, Fd* listener);
// False with errno; ECONNREFUSED: nobody listens.
bool connectTo(int socket, const Token&);
// Does our user run who is at the other end? If not, errno says so.
bool isOurs(int socket);
// What passes by itself.
bool transient(int error);

// False with errno.
bool sendMessage(int socket, const FdMessage&, std::span<const int> descriptors);
// False with errno while there is none. A peer that hangs up, or says something else, is not sound.
bool receiveMessage(int socket, ReceivedMessage*);

// Which of them there are, and those that are, as they travel and back: from `next` on.
std::byte presentIn(const Descriptors&);
void append(const Descriptors&, std::vector<int>* to);
Descriptors take(std::byte present, std::vector<Fd>& from, std::size_t* next);

}  // namespace weft::shm
