// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>

namespace weft::topology {

// libhwloc, opened when somebody asks: who does not have it can do without. The functions are
// hwloc's, by their own names.
class HwlocLibrary {
 public:
  // Null: *why says what is missing, and what to install.
  static std::unique_ptr<HwlocLibrary> open(const char* file, std::string* why);
  ~HwlocLibrary();
  HwlocLibrary(const HwlocLibrary&) = delete;
  HwlocLibrary& operator=(const HwlocLibrary&) = delete;

  decltype(&hwloc_get_api_version) getApiVersion = nullptr;
  decltype(&hwloc_topology_init) topologyInit = nullptr;
  decltype(&hwloc_topology_set_io_types_filter) topologySetIoTypesFilter = nullptr;
  decltype(&hwloc_topology_load) topologyLoad = nullptr;
  decltype(&hwloc_topology_destroy) topologyDestroy = nullptr;
  decltype(&hwloc_get_obj_by_depth) getObjByDepth = nullptr;
  decltype(&hwloc_bitmap_next) bitmapNext = nullptr;

 private:
  explicit HwlocLibrary(void* handle) : handle_(handle) {}
  bool findAll(std::string* why);
  template <class Function>
  bool find(const char* name, Function* function);

  void* handle_;
};

}  // namespace weft::topology
