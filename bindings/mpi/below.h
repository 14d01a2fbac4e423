// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

// The MPI library that the program is linked to. Of the functions that stand here in its place both
// names are taken, MPI_ and PMPI_: bindings of Fortran call one or the other.
namespace weft::mpi {

template <class Function>
Function* functionBelow(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr,
                 "weft-mpi: no MPI library with %s is loaded behind it; fix: weft-mpi, or the "
                 "build for this program's MPI\n",
                 name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

// MPI_`name` of the library below.
#define WEFT_MPI_BELOW(name)                                                                     \
  ([]() -> decltype(&MPI_##name) {                                                               \
    static const auto function =                                                                 \
        ::weft::mpi::functionBelow<std::remove_pointer_t<decltype(&MPI_##name)>>("PMPI_" #name); \
    return function;                                                                             \
  }())

// After the definition of MPI_`name`: the other name of it.
#define WEFT_MPI_BOTH_NAMES(name) \
  extern "C"                      \
      __attribute__((alias("MPI_" #name), visibility("default"))) decltype(MPI_##name) PMPI_##name

}  // namespace weft::mpi
