// SPDX-License-Identifier: Apache-2.0
//
// The Python module: what makes a process group, and what makes tensors shared. Its name has the version of PyTorch that it was built
// for, as the classes it derives from are different in each; python/weft/_torch_door.py picks it.
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "process_group.h"
#include "shared_tensors.h"

namespace {

c10::intrusive_ptr<weft::pytorch::Base> create(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank, int size,
                                               std::chrono::milliseconds timeout,
                                               const std::string& name) {
  return c10::make_intrusive<weft::pytorch::ProcessGroupWeft>(
      weft::pytorch::Identity{store, rank, size, timeout, name});
}

}  // namespace

PYBIND11_MODULE(WEFT_TORCH_MODULE, module) {
  module.doc() = "The back end \"weft\" of torch.distributed; `import weft` registers it.";
  module.def("create", &create, pybind11::call_guard<pybind11::gil_scoped_release>(),
             pybind11::arg("store"), pybind11::arg("rank"), pybind11::arg("size"),
             pybind11::arg("timeout"), pybind11::arg("name"));
  module.def("use_shared_tensors", &weft::pytorch::useSharedTensors, pybind11::arg("least_bytes"));
}
