// Handles of the C API that free themselves, and checks of its errors.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sdk/c/tenon_c.h"

namespace tenon::c {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};
using TensorHandle = std::unique_ptr<tenon_tensor, Free<tenon_tensor_free>>;
using ErrorHandle = std::unique_ptr<tenon_error, Free<tenon_error_free>>;
using ModelHandle = std::unique_ptr<tenon_model, Free<tenon_model_free>>;
using ValueHandle = std::unique_ptr<tenon_value, Free<tenon_value_free>>;
using ProgramHandle = std::unique_ptr<tenon_program, Free<tenon_program_free>>;
using StopHandle = std::unique_ptr<tenon_cancellation, Free<tenon_cancellation_free>>;
using DevicesHandle = std::unique_ptr<tenon_device_list, Free<tenon_device_list_free>>;

// Collects the error of one call: `EXPECT_EQ(tenon_...(..., error.out()), TENON_OK) << error.text();`
class Caught {
 public:
  tenon_error** out() {
    get();
    error_.reset();
    return &slot_;
  }
  const tenon_error* get() {
    if (slot_ != nullptr) error_.reset(slot_);
    slot_ = nullptr;
    return error_.get();
  }
  std::string text() {
    const tenon_error* error = get();
    return error == nullptr ? "no error" : tenon_error_message(error);
  }
  ~Caught() { get(); }

 private:
  tenon_error* slot_ = nullptr;
  ErrorHandle error_;
};

// A function that stores a handle, as a unique_ptr: made<TensorHandle>([&](auto out, auto error) { return ...; })
template <class Handle, class F>
Handle made(F call) {
  typename Handle::pointer handle = nullptr;
  Caught error;
  EXPECT_EQ(call(&handle, error.out()), TENON_OK) << error.text();
  return Handle(handle);
}

inline TensorHandle floats(const std::vector<float>& values, const std::vector<int64_t>& dims) {
  return made<TensorHandle>([&](auto out, auto error) {
    return tenon_tensor_copy(values.data(), values.size() * sizeof(float), TENON_F32, static_cast<int32_t>(dims.size()),
                             dims.data(), nullptr, out, error);
  });
}

inline std::vector<float> read_floats(const tenon_tensor* tensor) {
  tenon_tensor_info info = TENON_INIT(tenon_tensor_info);
  Caught error;
  EXPECT_EQ(tenon_tensor_describe(tensor, &info, error.out()), TENON_OK) << error.text();
  std::vector<float> values(static_cast<size_t>(info.elements));
  EXPECT_EQ(tenon_tensor_read(tensor, values.data(), values.size() * sizeof(float), error.out()), TENON_OK)
      << error.text();
  return values;
}

}  // namespace tenon::c
