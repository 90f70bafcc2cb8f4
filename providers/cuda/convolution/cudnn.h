// Cudnn: the library cuDNN, loaded when a convolution is first asked about, and a handle to it on one device.
#pragma once

#include <cuda.h>

#include <mutex>
#include <string>

#include "providers/cuda/convolution/cudnn_values.h"
#include "providers/cuda/driver/library.h"

namespace tenon::provider::cuda {

class Cudnn {
 public:
#define TENON_CUDNN(member, symbol, type) std::add_pointer_t<type> member = nullptr;
#include "providers/cuda/convolution/functions.def"
#undef TENON_CUDNN

  // Loads the library at the first call. Returns an empty string, or a clause that lists the versions that were
  // searched for and found.
  const std::string& load();
  // Loads the library and makes the handle at the first call. Returns the same as load(). The device's context is
  // current.
  const std::string& start();
  cudnn::Handle handle() const { return handle_; }
  // The handle has one stream, and some of cuDNN's plans serve one thread at a time. Hold this mutex to make or launch
  // a plan.
  std::mutex& mutex() { return mutex_; }
  // Calls tell() at the first call only.
  template <class Tell>
  void tell_once(const Tell& tell) {
    std::call_once(told_, tell);
  }
  void release();

 private:
  std::string load_library();

  std::once_flag loaded_;
  std::once_flag started_;
  std::once_flag told_;
  Library library_;
  std::string failure_;
  std::string start_failure_;
  cudnn::Handle handle_ = nullptr;
  std::mutex mutex_;
};

}  // namespace tenon::provider::cuda
