// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <string>

namespace weft::wire {

// The functions of a library that was opened at run time; it stays open, for its code and state.
class Symbols {
 public:
  // `handle`: of dlopen(3), or null; then every symbol is missing.
  explicit Symbols(void* handle) : handle_(handle) {}

  struct Symbol {
    void* at;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(at);
    }
  };
  // Null if it is missing. `version` of the symbol; null: the newest.
  Symbol operator()(const char* name, const char* version = nullptr) {
    void* const at = handle_ == nullptr   ? nullptr
                     : version == nullptr ? ::dlsym(handle_, name)
                                          : ::dlvsym(handle_, name, version);
    if (at == nullptr && missing_.empty()) missing_ = name;
    return {at};
  }
  bool opened() const { return handle_ != nullptr; }
  // The first that is; empty: none.
  const std::string& missing() const { return missing_; }

 private:
  void* handle_;
  std::string missing_;
};

}  // namespace weft::wire
