// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix_client.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include "base/environment.h"
#include "base/text.h"

namespace weft::launch {

// The functions of libpmix; loaded once, never unloaded because libpmix leaves threads behind.
struct PmixClient::Library {
  pmix::Init init = nullptr;
  pmix::Finalize finalize = nullptr;
  pmix::Put put = nullptr;
  pmix::Commit commit = nullptr;
  pmix::FenceNb fence = nullptr;
  pmix::Get get = nullptr;
  pmix::ErrorString errorString = nullptr;
  pmix::ValueDestruct destruct = nullptr;
  std::string problem;  // why it cannot be used

  static const Library& loaded() {
    static const Library library;
    return library;
  }

  Status error(std::string_view what, pmix::Status status) const {
    return Status::error(Code::SystemError, "PMIx: ", what, ": ", errorString(status),
                         ". fix: start the ranks with mpirun or srun --mpi=pmix, or set "
                         "WEFT_RANK, WEFT_SIZE and WEFT_ROOT");
  }

 private:
  Library() {
    void* handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      problem = dlerror();
      return;
    }
    load(handle, "PMIx_Init", &init);
    load(handle, "PMIx_Finalize", &finalize);
    load(handle, "PMIx_Put", &put);
    load(handle, "PMIx_Commit", &commit);
    load(handle, "PMIx_Fence_nb", &fence);
    load(handle, "PMIx_Get", &get);
    load(handle, "PMIx_Error_string", &errorString);
    load(handle, "PMIx_Value_destruct", &destruct);
  }

  template <class Function>
  void load(void* handle, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    if (!*function) problem = text("libpmix.so.2 has no ", name);
  }
};

namespace {

// Where a fence's callback reports. It may come after we have given up, so both sides own it.
struct FenceResult {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<pmix::Status> status;
};

void fenceDone(pmix::Status status, void* context) {
  const std::unique_ptr<std::shared_ptr<FenceResult>> owner(
      static_cast<std::shared_ptr<FenceResult>*>(context));
  FenceResult& result = **owner;
  const std::lock_guard lock(result.mutex);
  result.status = status;
  result.done.notify_all();
}

}  // namespace

PmixClient::~PmixClient() {
  // A forked child is not the process that the launcher knows.
  if (library_ && owner_ == getpid()) (void)library_->finalize(nullptr, 0);
}

Status PmixClient::open() {
  const Library& library = Library::loaded();
  if (!library.problem.empty())
    return Status::error(Code::SystemError,
                         "started by a PMIx launcher, but PMIx cannot be used: ", library.problem,
                         ". fix: install libpmix2, or set WEFT_RANK, WEFT_SIZE and WEFT_ROOT");
  const pmix::Status status = [&] {
    const WritingEnvironment writing;
    return library.init(&self_, nullptr, 0);
  }();
  if (status != pmix::kSuccess) return library.error("PMIx_Init", status);
  library_ = &library;
  owner_ = getpid();
  return {};
}

Status PmixClient::jobNumber(const char* key, std::uint32_t* value) const {
  return number(pmix::kRankWildcard, key, value);
}

Status PmixClient::ownNumber(const char* key, std::uint32_t* value) const {
  return number(self_.rank, key, value);
}

Status PmixClient::read(std::uint32_t rank, const char* key, const char* wanted,
                        const std::function<bool(const pmix::Value&)>& take) const {
  pmix::Process process = self_;
  process.rank = rank;
  pmix::Value* found = nullptr;
  const pmix::Status status = library_->get(&process, key, nullptr, 0, &found);
  if (status != pmix::kSuccess) return library_->error(key, status);
  const bool taken = take(*found);
  library_->destruct(found);
  std::free(found);
  return taken ? Status() : Status::error(Code::SystemError, "PMIx: ", key, " is not a ", wanted);
}

Status PmixClient::number(std::uint32_t rank, const char* key, std::uint32_t* value) const {
  return read(rank, key, "number", [value](const pmix::Value& found) {
    const bool isShort = found.type == pmix::kUint16;
    *value = isShort ? found.data.uint16 : found.data.uint32;
    return isShort || found.type == pmix::kUint32;
  });
}

Status PmixClient::put(const std::string& key, std::string value) const {
  pmix::Value wrapped{};
  wrapped.type = pmix::kString;
  wrapped.data.string = value.data();
  pmix::Status status = library_->put(pmix::kGlobal, key.c_str(), &wrapped);
  if (status == pmix::kSuccess) status = library_->commit();
  return status == pmix::kSuccess ? Status() : library_->error("PMIx_Put", status);
}

Status PmixClient::fence(Deadline deadline) const {
  pmix::Info collect{};
  std::strcpy(collect.key, pmix::kCollectData);
  collect.value.type = pmix::kBool;
  collect.value.data.flag = true;
  const auto result = std::make_shared<FenceResult>();
  auto shared = std::make_unique<std::shared_ptr<FenceResult>>(result);
  const pmix::Status started = library_->fence(nullptr, 0, &collect, 1, fenceDone, shared.get());
  if (started == pmix::kOperationSucceeded) return {};
  if (started != pmix::kSuccess) return library_->error("PMIx_Fence", started);
  (void)shared.release();  // now the callback's
  std::unique_lock lock(result->mutex);
  if (!result->done.wait_until(lock, deadline.at(), [&] { return result->status.has_value(); }))
    return Status::error(
        Code::Timeout,
        "PMIx: some processes of the job did not come to weftCommInitFromEnv by the deadline. fix: "
        "call it in all of them");
  return *result->status == pmix::kSuccess ? Status()
                                           : library_->error("PMIx_Fence", *result->status);
}

Status PmixClient::get(std::uint32_t rank, const std::string& key, std::string* value) const {
  return read(rank, key.c_str(), "text", [value](const pmix::Value& found) {
    const bool isText = found.type == pmix::kString && found.data.string != nullptr;
    if (isText) *value = found.data.string;
    return isText;
  });
}

}  // namespace weft::launch
