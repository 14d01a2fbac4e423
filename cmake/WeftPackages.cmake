# SPDX-License-Identifier: Apache-2.0
# The packages that weft is built from, as targets. The library itself uses Threads::Threads,
# PkgConfig::hwy, OpenSSL::Crypto and nlohmann_json, and of hwloc and expat the headers; the rest is for tools, perf and tests.

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(hwloc REQUIRED hwloc)
pkg_check_modules(expat REQUIRED expat)
find_package(nlohmann_json REQUIRED)   # nlohmann_json::nlohmann_json

if(NOT PROJECT_IS_TOP_LEVEL)
  return()  # the library alone
endif()
find_package(CLI11 REQUIRED)           # CLI11::CLI11
find_package(fmt REQUIRED)             # fmt::fmt
pkg_check_modules(utf8proc QUIET IMPORTED_TARGET libutf8proc)  # of weft-train and weft-preprocess
pkg_search_module(hdf5 QUIET IMPORTED_TARGET hdf5-serial hdf5)  # of weft-train

if(BUILD_TESTING)
  find_package(GTest REQUIRED)         # GTest::gtest_main
  find_package(benchmark REQUIRED)     # benchmark::benchmark
endif()
