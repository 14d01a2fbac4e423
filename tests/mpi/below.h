// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstdlib>

// The MPI library itself, behind whatever has been preloaded: what the shim's results are compared with.
namespace weft::testing {

template <class Function>
Function* below(const char* name) {
#ifdef OPEN_MPI
  static void* const library = dlopen("libmpi.so.40", RTLD_NOLOAD | RTLD_NOW);
#else
  static void* const library = dlopen("libmpich.so.12", RTLD_NOLOAD | RTLD_NOW);
#endif
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

#define BELOW(name) (::weft::testing::below<decltype(MPI_##name)>("PMPI_" #name))

}  // namespace weft::testing
