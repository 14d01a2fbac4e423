// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/library.h"

#include <dlfcn.h>

#include "base/text.h"

namespace weft::verbs {
namespace {

constexpr const char* kFile = "libibverbs.so.1";

struct Loaded {
  Library verbs;
  Status status;
};

// Without a version dlsym gives the newest one, which is what the header declares.
template <class Function>
void find(void* library, const char* name, Function** function, Loaded* loaded) {
  *function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (*function == nullptr && loaded->status.ok())
    loaded->status = Status::error(Code::SystemError,
                                   text(kFile, " has no ", name, "; fix: rdma-core 32 or later"));
}

void findAll(void* library, Loaded* loaded) {
  Library& v = loaded->verbs;
  find(library, "ibv_get_device_list", &v.get_device_list, loaded);
  find(library, "ibv_free_device_list", &v.free_device_list, loaded);
  find(library, "ibv_get_device_name", &v.get_device_name, loaded);
  find(library, "ibv_open_device", &v.open_device, loaded);
  find(library, "ibv_close_device", &v.close_device, loaded);
  find(library, "ibv_query_device", &v.query_device, loaded);
  find(library, "_ibv_query_gid_table", &v.query_gid_table, loaded);
  find(library, "ibv_alloc_pd", &v.alloc_pd, loaded);
  find(library, "ibv_dealloc_pd", &v.dealloc_pd, loaded);
  find(library, "ibv_reg_mr", &v.reg_mr, loaded);
  find(library, "ibv_dereg_mr", &v.dereg_mr, loaded);
  find(library, "ibv_create_cq", &v.create_cq, loaded);
  find(library, "ibv_destroy_cq", &v.destroy_cq, loaded);
  find(library, "ibv_create_qp", &v.create_qp, loaded);
  find(library, "ibv_modify_qp", &v.modify_qp, loaded);
  find(library, "ibv_destroy_qp", &v.destroy_qp, loaded);
  find(library, "ibv_get_async_event", &v.get_async_event, loaded);
  find(library, "ibv_ack_async_event", &v.ack_async_event, loaded);
  find(library, "ibv_wc_status_str", &v.wc_status_str, loaded);
  find(library, "ibv_event_type_str", &v.event_type_str, loaded);
}

Loaded load() {
  Loaded loaded;
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.status = Status::error(Code::SystemError,
                                  text("libibverbs is not installed (", ::dlerror(),
                                       "); fix: apt-get install libibverbs1 ibverbs-providers"));
    return loaded;
  }
  findAll(library, &loaded);
  return loaded;
}

}  // namespace

Status Library::get(const Library** out) {
  static const Loaded loaded = load();
  *out = &loaded.verbs;
  return loaded.status;
}

}  // namespace weft::verbs
