# SPDX-License-Identifier: Apache-2.0
# How a folder of weft becomes a target.

# weft_warnings(<target>): every warning that we can keep silent is an error where WEFT_WERROR says so.
function(weft_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion $<$<BOOL:${WEFT_WERROR}>:-Werror>)
endfunction()

# weft_module(<name> SOURCES <file>... [DEPS <module>...] [PACKAGES <target>...])
# Defines weft_<name>, a static archive for linking into libweft.so or a test. DEPS are other modules by
# their short names (base, schedule, ...), PACKAGES are targets of cmake/WeftPackages.cmake.
# Without a source it is an interface that carries the include folders.
function(weft_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;PACKAGES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weft_module(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(TRANSFORM arg_DEPS REPLACE "^(weft_)?(.+)$" "weft_\\2")

  set(target weft_${name})
  set(scope PUBLIC)
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    weft_warnings(${target})
    weft_shares_headers(library_headers ${target})
    if(WEFT_SANITIZE)
      set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)  # not all have tests then
    endif()
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  target_include_directories(${target} ${scope}
    ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} ${scope} ${arg_DEPS} ${arg_PACKAGES} Threads::Threads)
endfunction()

# weft_headers(<name> <header>... [PACKAGES <target>...]): with WEFT_UNITY, these are compiled once, with the options of the
# folder that says so, for libraries of such folders that share them.
function(weft_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PACKAGES")
  if(WEFT_UNITY)
    file(CONFIGURE OUTPUT ${name}.cpp CONTENT "")
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
    target_link_libraries(${name} PRIVATE ${arg_PACKAGES})
    target_compile_options(${name} PRIVATE ${WEFT_PCH_OPTIONS})
    target_precompile_headers(${name} PRIVATE ${arg_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# weft_shares_headers(<name> <target>...)
function(weft_shares_headers name)
  foreach(target ${ARGN})
    if(TARGET ${target} AND TARGET ${name})
      target_compile_options(${target} PRIVATE -fpch-preprocess)
      target_precompile_headers(${target} REUSE_FROM ${name})
    endif()
  endforeach()
endfunction()

# weft_alone(<file>...): keeps out of WEFT_UNITY what has private names that other files of its target have too.
function(weft_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# weft_optimized(<target>...): of what is compiled with -O0, as tests are, these are not: their own loops over bytes and
# numbers would take longer than the compiler does. (SHELL:, as CMake takes a second -O1 for the first.)
function(weft_optimized)
  foreach(target ${ARGN})
    if(TARGET ${target})
      get_target_property(options ${target} COMPILE_OPTIONS)
      if("-O0" IN_LIST options)
        target_compile_options(${target} PRIVATE SHELL:-O1)
        set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
      endif()
    endif()
  endforeach()
endfunction()

# weft_own_allocator(<target>): it has an operator new of its own. Clang as a compiler of C++ links ThreadSanitizer's beside it.
function(weft_own_allocator target)
  if(WEFT_SANITIZE STREQUAL "tsan")
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  endif()
endfunction()

# weft_own_calls(<target>...): they have some functions of the C library themselves, and call those that are next. With Clang
# only a shared AddressSanitizer comes next.
function(weft_own_calls)
  if(WEFT_SANITIZE STREQUAL "asan" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-runtime-dir OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    foreach(target ${ARGN})
      target_link_options(${target} PRIVATE -shared-libasan)
      set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH ${runtime})
    endforeach()
  endif()
endfunction()

# weft_room(<name> <target>...): `./dev test <name>` builds those of the targets that there are, and runs the tests <name>.*
# and unit.<name>.*
function(weft_room name)
  if(NOT TARGET room_${name})
    add_custom_target(room_${name})
  endif()
  foreach(target ${ARGN})
    if(TARGET ${target})
      add_dependencies(room_${name} ${target})
    endif()
  endforeach()
endfunction()

# weft_add_folders(<folder>...): add_subdirectory for each that has a CMakeLists.txt, in this order.
function(weft_add_folders)
  file(GLOB lists CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(folder ${ARGN})
    if(${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt IN_LIST lists)
      add_subdirectory(${folder})
    endif()
  endforeach()
endfunction()
