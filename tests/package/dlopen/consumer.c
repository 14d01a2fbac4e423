/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libweft.so.0 at run time, as a plug-in would, and lets go of it again. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

typedef weftResult_t (*GetVersion)(int*);

static int versionOf(void* library, int* version) {
  GetVersion getVersion;
  void* symbol = dlsym(library, "weftGetVersion");
  if (symbol == NULL) return 0;
  memcpy(&getVersion, &symbol,
         sizeof symbol); /* ISO C has no cast from object to function pointer */
  return getVersion(version) == weftSuccess;
}

int main(void) {
  int version = 0;
  void* library = dlopen(LIBWEFT, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || !versionOf(library, &version) || version != WEFT_VERSION_CODE) {
    const char* why = dlerror();
    fprintf(stderr, "%s: version %d, expected %d; %s\n", LIBWEFT, version, WEFT_VERSION_CODE,
            why != NULL ? why : "no loader error");
    return 1;
  }
  return dlclose(library);
}
