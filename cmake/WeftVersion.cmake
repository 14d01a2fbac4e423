# SPDX-License-Identifier: Apache-2.0
# The version is written once, in the public header; this reads it into WEFT_VERSION.

set(WEFT_VERSION "")
foreach(part MAJOR MINOR PATCH)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../include/weft/weft.h line REGEX "^#define WEFT_${part} ")
  string(REGEX MATCH "[0-9]+$" number "${line}")
  list(APPEND WEFT_VERSION ${number})
endforeach()
list(JOIN WEFT_VERSION "." WEFT_VERSION)
