// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "base/status.h"

namespace weft::shm {

// What an application has advised of its pages, which others in their place are to be told again.
struct PageAdvice {
  bool huge = false;
  bool small = false;
  bool dumped = true;
};

struct PageRange {
  std::uintptr_t from = 0, to = 0;
};

// As people write it.
std::string addressText(std::uintptr_t at);

// May other pages take the place of these, at the same addresses, without anybody noticing? They
// must be what malloc gives: private, anonymous, for reading and writing, and nothing special.
// InvalidArgument: they are not all mapped; InvalidUsage, and why: they are something else. As
// /proc/self/smaps has it; `stack` is a place on the caller's.
Status checkMovable(std::istream& smaps, PageRange pages, std::uintptr_t stack, PageAdvice* advice);
Status checkMovable(PageRange pages, PageAdvice* advice);
// Nothing must be pinned (as /proc/self/status has it): devices would go on with the old pages.
Status checkUnpinned(std::istream& status);
Status checkUnpinned();

// Do these pages still show the file with that inode from `offset` on, as /proc/self/maps has it?
bool showsFile(std::istream& maps, PageRange pages, std::uint64_t inode, std::uint64_t offset);
bool showsFile(PageRange pages, std::uint64_t inode, std::uint64_t offset);

}  // namespace weft::shm
