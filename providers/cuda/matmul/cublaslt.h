// CublasLt: the library, loaded when the first matmul is made, and a handle to it on one device.
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

  // Empty, or one clause that says why there is none: the versions looked for and found. The device's context is
  // current.
  const std::string& load();
  cublasLtHandle_t handle() const { return handle_; }
  // Calls tell() the first time.
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
