// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/library.h"

#include "base/no_fork.h"

namespace weft::verbs {
namespace {

constexpr const char* kFile = "libibverbs.so.1";

Status check(const wire::Symbols& symbols) {
  if (!symbols.opened())
    return Status::error(Code::SystemError, "libibverbs is not installed (", ::dlerror(),
                         "); fix: apt-get install libibverbs1 ibverbs-providers");
  if (symbols.missing().empty()) return {};
  return Status::error(Code::SystemError, kFile, " has no ", symbols.missing(),
                       "; fix: rdma-core 32 or later");
}

}  // namespace

Status Library::get(const Library** out) {
  const NoFork noFork;
  static const Library library(::dlopen(kFile, RTLD_NOW | RTLD_LOCAL));
  static const Status status = check(library.symbol);
  *out = &library;
  return status;
}

}  // namespace weft::verbs
