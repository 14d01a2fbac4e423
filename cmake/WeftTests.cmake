# SPDX-License-Identifier: Apache-2.0
# How a program of GoogleTest's tests becomes tests of ctest.
include(GoogleTest)

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
