# SPDX-License-Identifier: Apache-2.0
# How a program of GoogleTest's tests becomes tests of ctest.
include(GoogleTest)

# weft_googletest(<target>): a program of tests; see weft_optimized() for -O0. With WEFT_UNITY, what most of them include is
# compiled once for all: a second less for each. A target that is compiled unlike the others says DISABLE_PRECOMPILE_HEADERS.
function(weft_googletest target)
  target_link_libraries(${target} PRIVATE GTest::gtest_main fmt::fmt)
  set(lighter)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(lighter -O0)  # compiled in four fifths of the time that -O1 takes
  elseif(WEFT_SANITIZE)
    set(lighter -g0 -fno-sanitize=undefined)  # again four fifths; reports name lines of the library, and of tests the functions
  endif()
  target_compile_options(${target} PRIVATE ${lighter})
  if(NOT WEFT_UNITY)
    return()
  endif()
  if(NOT TARGET test_headers)
    file(CONFIGURE OUTPUT test_headers.cpp CONTENT "")
    add_executable(test_headers EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp)
    target_link_libraries(test_headers PRIVATE GTest::gtest_main fmt::fmt)
    target_compile_options(test_headers PRIVATE ${lighter} ${WEFT_PCH_OPTIONS})
    target_precompile_headers(test_headers PRIVATE <algorithm> <array> <atomic> <chrono> <cmath> <cstring> <deque> <filesystem>
      <fstream> <functional> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <stdexcept> <string>
      <string_view> <thread> <utility> <vector> <fmt/format.h> <gtest/gtest.h>)
  endif()
  weft_shares_headers(test_headers ${target})
endfunction()

# weft_tests(<target> <prefix> LABEL <label> TIMEOUT <seconds> [FILTER <tests>] [PROPERTIES <name> <value>...])
# Each test of the program by itself, as <prefix>Suite.Test, found when ctest starts. A value that tests are repeated for is
# in its name only if INSTANTIATE_TEST_SUITE_P names it: as GoogleTest prints it, it may be bytes and addresses, which
# differ from run to run.
function(weft_tests target prefix)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "LABEL;TIMEOUT;FILTER" "PROPERTIES")
  set(filter)
  if(arg_FILTER)
    set(filter TEST_FILTER ${arg_FILTER})
  endif()
  gtest_discover_tests(${target} TEST_PREFIX ${prefix} ${filter} NO_PRETTY_VALUES
    DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABEL} ${arg_PROPERTIES})
endfunction()
