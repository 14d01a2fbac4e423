// SPDX-License-Identifier: Apache-2.0
#include "tools/checks/libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <weft/weft.h>

#include <filesystem>

#include "tools/checks/system_files.h"

namespace weft::checks {
namespace {

namespace fs = std::filesystem;

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

// "1.14.44.0" of libibverbs.so.1 -> libibverbs.so.1.14.44.0
std::string versionOfFile(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "here";
  std::error_code error;
  const std::string file = fs::canonical(map->l_name, error).filename();
  const std::size_t at = file.find(".so.");
  return at == file.npos ? "here" : file.substr(at + 4);
}

std::string versionOf(void* library, const std::string& name) {
  if (name == "libfabric") {
    if (const auto version = symbol<std::uint32_t (*)()>(library, "fi_version"))
      return fmt::format("{}.{}", version() >> 16, version() & 0xffff);
  }
  if (name == "libhwloc") {
    if (const auto version = symbol<unsigned (*)()>(library, "hwloc_get_api_version"))
      return fmt::format("{}.{}.{}", version() >> 16, version() >> 8 & 0xff, version() & 0xff);
  }
  if (name == "libpmix") {
    if (const auto version = symbol<const char* (*)()>(library, "PMIx_Get_version"))
      return version();
  }
  if (name == "libcrypto") {
    if (const auto version = symbol<const char* (*)(int)>(library, "OpenSSL_version"))
      return version(0);
  }
  return versionOfFile(library);
}

// It stays loaded: libfabric and libpmix leave memory or threads behind when they are unloaded.
void open(Library& library) {
  void* const handle = ::dlopen(library.file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    library.problem = ::dlerror();
    return;
  }
  library.version = versionOf(handle, library.name);
  ::dlclose(handle);
}

}  // namespace

std::vector<Library> openLibraries() {
  std::vector<Library> libraries = {
      {"libibverbs", "libibverbs.so.1", "RoCE (transport verbs)", "libibverbs1", "", ""},
      {"libfabric", "libfabric.so.1", "EFA and TCP (transport ofi)", "libfabric1", "", ""},
      {"libhwloc", "libhwloc.so.15", "NUMA nodes and distances of devices", "libhwloc15", "", ""},
      {"libpmix", "libpmix.so.2", "meeting under mpirun and srun --mpi=pmix", "libpmix2", "", ""},
      {"libcrypto", "libcrypto.so.3", "the handshake of ranks", "libssl3", "", ""}};
  for (Library& library : libraries) open(library);
  return libraries;
}

void checkSoftware(const std::string& root, const std::vector<Library>& libraries,
                   HostReport& report) {
  int version = 0;
  weftGetVersion(&version);
  report.add("weft.version",
             fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100));
  report.add("kernel.release", readLine(root + "/proc/sys/kernel/osrelease"));
  for (const Library& library : libraries)
    report.add("library." + library.name, library.version.empty() ? "missing" : library.version);
}

}  // namespace weft::checks
