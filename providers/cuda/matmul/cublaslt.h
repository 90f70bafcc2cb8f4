// CublasLt: the library cuBLASLt, loaded for the first matmul, and a handle to it on one device.
#pragma once

#include <cublasLt.h>

#include <mutex>
#include <string>

#include "providers/cuda/driver/library.h"

namespace tenon::provider::cuda {

class CublasLt {
 public:
#define TENON_CUBLASLT(member, symbol) decltype(&symbol) member = nullptr;
#include "providers/cuda/matmul/functions.def"
#undef TENON_CUBLASLT

  // Loads the library at the first call. Returns an empty string, or a clause that lists the versions that were
  // searched for and found. The device's context is current.
  const std::string& load();
  cublasLtHandle_t handle() const { return handle_; }
  // Loads the library and, at the first call only, calls tell().
  template <class Tell>
  void tell_once(const Tell& tell) {
    std::call_once(told_, tell);
  }
  void release();

 private:
  std::string load_library();

  std::once_flag once_;
  std::once_flag told_;
  Library library_;
  std::string failure_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace tenon::provider::cuda
