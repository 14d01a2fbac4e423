/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libweft.so.0 at run time, as a plug-in would, uses it and lets go of it again, many times. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

/* ISO C has no cast from object to function pointer. */
static int find(void* library, const char* name, void* function, size_t size) {
  void* symbol = dlsym(library, name);
  if (symbol != NULL) memcpy(function, &symbol, size);
  return symbol != NULL;
}

static int use(void) {
  weftResult_t (*getVersion)(int*);
  weftResult_t (*memAlloc)(void**, size_t);
  weftResult_t (*memFree)(void*);
  int version = 0;
  void *memory = NULL, *library = dlopen(LIBWEFT, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || !find(library, "weftGetVersion", &getVersion, sizeof getVersion) ||
      !find(library, "weftMemAlloc", &memAlloc, sizeof memAlloc) ||
      !find(library, "weftMemFree", &memFree, sizeof memFree)) {
    fprintf(stderr, "%s: %s\n", LIBWEFT, dlerror());
    return 0;
  }
  if (getVersion(&version) != weftSuccess || version != WEFT_VERSION_CODE)
    return fprintf(stderr, "version %d, expected %d\n", version, WEFT_VERSION_CODE), 0;
  if (memAlloc(&memory, 4096) != weftSuccess || memFree(memory) != weftSuccess)
    return fprintf(stderr, "no memory\n"), 0;
  return dlclose(library) == 0;
}

static int descriptors(void) {
  int n = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (folder != NULL && readdir(folder) != NULL) ++n;
  if (folder != NULL) closedir(folder);
  return n;
}

static int mappings(void) {
  int n = 0, c;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && (c = getc(maps)) != EOF) n += c == '\n';
  if (maps != NULL) fclose(maps);
  return n;
}

int main(void) {
  int k, fds, maps;
  if (!use()) return 1;
  fds = descriptors();
  maps = mappings();
  for (k = 0; k < 50; ++k)
    if (!use()) return 1;
  printf("descriptors %d -> %d, mappings %d -> %d\n", fds, descriptors(), maps, mappings());
  return descriptors() > fds || mappings() > maps + 10; /* malloc may have grown, once */
}
