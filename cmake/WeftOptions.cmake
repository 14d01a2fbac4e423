# SPDX-License-Identifier: Apache-2.0
# What can be chosen at configure time, and the settings that every target shares.

set(WEFT_SANITIZE "" CACHE STRING "Sanitizer: empty, asan (address and undefined), tsan or fuzz")
set_property(CACHE WEFT_SANITIZE PROPERTY STRINGS "" asan tsan fuzz)
option(WEFT_SANITIZE_TOOLS "With a sanitizer, build and test programs that only call the library, too" OFF)
set(WEFT_BUILD_TRAIN AUTO CACHE STRING "Build weft-train: ON, OFF or AUTO (if libtorch is found)")
set_property(CACHE WEFT_BUILD_TRAIN PROPERTY STRINGS AUTO ON OFF)
option(WEFT_FUZZ_LITTLE "Compile fuzzers that are to run for seconds: not optimized" OFF)
option(WEFT_UNITY "Compile the sources of a target together: half the work for all, more for one" OFF)

option(WEFT_TESTS_ONCE "Leave to the sanitizers' builds the unit tests for which one of them is enough" OFF)

option(WEFT_WERROR "Warnings are errors; the presets say so, for other compilers warn of other things" OFF)
option(WEFT_STATIC "Build and install libweft.a beside libweft.so" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR})  # an installed tree may be moved

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${WEFT_CCACHE})
  # By the dependencies that the compiler lists: to preprocess each file before is a tenth to a fifth of an empty cache's build.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
endif()

# A build for tests links two hundred programs: with this linker in a quarter of the time that GNU ld takes. What is built for
# others to use is linked as their distribution does it, and the fuzzers by GNU ld, which lets them be without what they do not
# call.
find_program(WEFT_LLD ld.lld)
if(WEFT_LLD AND PROJECT_IS_TOP_LEVEL AND BUILD_TESTING AND NOT WEFT_SANITIZE STREQUAL "fuzz")
  add_link_options(-fuse-ld=lld)
endif()

# Together, headers are read and templates compiled once a batch. Batches of the library are small, so that a change of one
# file compiles few; under a sanitizer nobody waits for one file, and a target is one batch. Whatever reads
# compile_commands.json wants the preset debug, where each file stands for itself.
set(CMAKE_UNITY_BUILD ${WEFT_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 6)
if(WEFT_SANITIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
endif()

# Without these ccache takes no precompiled headers, nor what includes them.
set(WEFT_PCH_OPTIONS -fpch-preprocess "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")

if(WEFT_SANITIZE STREQUAL "asan")
  set(sanitizers address,undefined)
  set(sanitized __SANITIZE_ADDRESS__)
elseif(WEFT_SANITIZE STREQUAL "tsan")
  set(sanitizers thread)
  set(sanitized __SANITIZE_THREAD__)
elseif(WEFT_SANITIZE STREQUAL "fuzz")
  set(sanitizers fuzzer-no-link,address,undefined)
  set(sanitized __SANITIZE_ADDRESS__)
elseif(WEFT_SANITIZE)
  message(FATAL_ERROR "WEFT_SANITIZE is '${WEFT_SANITIZE}'; use asan, tsan, fuzz or nothing")
endif()
if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${sanitizers})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_definitions(${sanitized})  # as GCC does by itself
  endif()
endif()
if(WEFT_SANITIZE STREQUAL "asan")
  # These checks of every pointer take half of the compiler's time. AddressSanitizer tells of most of what they find, and
  # the fuzzers have them all.
  add_compile_options(-fno-sanitize=vptr,null,alignment,object-size,pointer-overflow)
endif()
