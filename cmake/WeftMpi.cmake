# SPDX-License-Identifier: Apache-2.0
# The MPI libraries of this machine, by their compiler wrappers. CMake's own module finds one of them.

# weft_find_mpi(<openmpi|mpich>): WEFT_MPI_<name>_FOUND, _INCLUDES and _FLAGS.
function(weft_find_mpi name)
  set(flag_openmpi --showme)
  set(flag_mpich -show)
  set(WEFT_MPI_${name}_FOUND FALSE PARENT_SCOPE)
  find_program(WEFT_MPI_WRAPPER_${name} mpicc.${name})
  if(NOT WEFT_MPI_WRAPPER_${name})
    message(STATUS "no mpicc.${name}: nothing is built for it")
    return()
  endif()
  execute_process(COMMAND ${WEFT_MPI_WRAPPER_${name}} ${flag_${name}}
    OUTPUT_VARIABLE line OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${line}")
  list(POP_FRONT words)  # the compiler
  set(includes ${words})
  list(FILTER includes INCLUDE REGEX "^-I")
  list(TRANSFORM includes REPLACE "^-I" "")
  list(FILTER words EXCLUDE REGEX "^-I")
  # Debian's launcher brings the wrapper along, but not what it compiles with.
  find_path(WEFT_MPI_HEADER_${name} mpi.h PATHS ${includes} NO_DEFAULT_PATH)
  if(NOT WEFT_MPI_HEADER_${name})
    message(STATUS "mpicc.${name} is here, but its mpi.h is not: nothing is built for it")
    return()
  endif()
  set(WEFT_MPI_${name}_FOUND TRUE PARENT_SCOPE)
  set(WEFT_MPI_${name}_INCLUDES ${includes} PARENT_SCOPE)
  set(WEFT_MPI_${name}_FLAGS ${words} PARENT_SCOPE)
endfunction()

# weft_use_mpi(<target> <openmpi|mpich>), after weft_find_mpi.
function(weft_use_mpi target name)
  target_link_libraries(${target} PRIVATE ${WEFT_MPI_${name}_FLAGS})
  target_include_directories(${target} SYSTEM PRIVATE ${WEFT_MPI_${name}_INCLUDES})
  target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endfunction()
