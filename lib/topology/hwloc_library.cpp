// SPDX-License-Identifier: Apache-2.0
#include "topology/hwloc_library.h"

#include <dlfcn.h>

#include "base/text.h"

namespace weft::topology {

std::unique_ptr<HwlocLibrary> HwlocLibrary::open(const char* file, std::string* why) {
  void* const handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = ::dlerror();
    *why = text("hwloc is missing (", reason ? reason : file, "); fix: install libhwloc15");
    return nullptr;
  }
  std::unique_ptr<HwlocLibrary> library(new HwlocLibrary(handle));
  if (!library->findAll(why)) return nullptr;
  const unsigned version = library->getApiVersion();
  // Its structures change with the first number only.
  if (version >> 16 != HWLOC_API_VERSION >> 16) {
    *why = text("hwloc ", version >> 16, ".x is of no use to this weft, which was built for ",
                HWLOC_API_VERSION >> 16, ".x; fix: install libhwloc15");
    return nullptr;
  }
  return library;
}

HwlocLibrary::~HwlocLibrary() { ::dlclose(handle_); }

template <class Function>
bool HwlocLibrary::find(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(handle_, name));
  return *function != nullptr;
}

bool HwlocLibrary::findAll(std::string* why) {
  if (find("hwloc_get_api_version", &getApiVersion) && find("hwloc_topology_init", &topologyInit) &&
      find("hwloc_topology_set_io_types_filter", &topologySetIoTypesFilter) &&
      find("hwloc_topology_load", &topologyLoad) &&
      find("hwloc_topology_destroy", &topologyDestroy) &&
      find("hwloc_get_obj_by_depth", &getObjByDepth) && find("hwloc_bitmap_next", &bitmapNext))
    return true;
  const char* const reason = ::dlerror();
  *why = text("hwloc is too old or another library (", reason ? reason : "no reason known",
              "); fix: install libhwloc15");
  return false;
}

}  // namespace weft::topology
