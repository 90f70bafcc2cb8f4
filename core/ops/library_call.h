// Functions for the code that the generator makes for a library of ops. That code is outside libtenon.so, so it reads
// the state of the calling thread by functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "core/device/export.h"
#include "core/ops/composite.h"
#include "core/ops/op_call.h"
#include "core/ops/sym_call.h"
#include "core/tensor/tensor.h"
#include "primitives/infer/size.h"  // the functions of sizes for rules

namespace tenon::library {

// While this object lives, the calling thread works for the op `name`, unless it already works for another op.
class TENON_API Named {
 public:
  explicit Named(const OpName& name);
  ~Named();
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  bool outermost() const { return previous_ == nullptr; }

 private:
  const OpName* previous_;
};

// Runs the functor of the composite `name`. Its errors begin with this name, whichever op they come from.
template <class Functor>
decltype(auto) called(const OpName& name, const Functor& functor) {
  const Named scope(name);
  try {
    return functor();
  } catch (const Error& error) {
    if (scope.outermost()) composite::rethrow_as(name.op, error);
    throw;
  }
}

// Passes a record to the calling thread's interpreter, with the precision that the thread demands.
TENON_API void submit(const OpInfo& op, std::span<const Tensor* const> inputs, std::span<const Scalar> scalars,
                      const void* attributes, DeviceState* device, std::span<Tensor> outputs);

// Throws invalid_argument: a list or a text is too long for a record of `op`.
[[noreturn]] TENON_API void refuse_long(std::string_view op);

// ---- rules ----

// "mypkg::swish2: input is i32; it takes f32, f64."
TENON_API Status wrong_dtype(const OpInfo& op, size_t input, DType dtype, uint32_t dtypes);
TENON_API Status missing(const OpInfo& op, size_t input);

// The checks for every rule: the first `required` inputs are given, and the first one has one of the dtypes (bit 1 <<
// dtype; 0: any).
template <class Call>
Status check(const Call& call, size_t required, uint32_t dtypes) {
  for (size_t i = 0; i < required; ++i) {
    if (i >= call.inputs.size() || call.inputs[i] == nullptr) return missing(*call.op, i);
  }
  if (dtypes == 0 || required == 0) return {};
  const DType dtype = call.inputs[0]->dtype();
  if ((dtypes >> static_cast<uint32_t>(dtype) & 1) != 0) return {};
  return wrong_dtype(*call.op, 0, dtype, dtypes);
}

// The rule `like_input`: every result has the dtype and dims of the first tensor.
template <class Call>
Status infer_like_input(const Call& call, typename Call::Meta* outputs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    outputs[i].dtype = call.inputs[0]->dtype();
    outputs[i].dims = call.inputs[0]->dims();
  }
  return {};
}

// ---- functions on the host ----

// A tensor as a function on the host sees it: row-major elements that are computed.
struct HostTensor {
  DType dtype = DType::none;
  Dims dims;
  void* data = nullptr;  // null: an absent optional tensor, or one without elements

  bool defined() const { return dtype != DType::none; }
  int64_t elements() const { return element_count(dims); }
  // The elements, whose type must be T (float for f32). Errors: invalid_argument.
  template <class T>
  std::span<T> span() const {
    if (dtype_of<std::remove_const_t<T>>() != dtype) refuse_type(dtype_of<std::remove_const_t<T>>());
    return {static_cast<T*>(data), static_cast<size_t>(elements())};
  }

 private:
  [[noreturn]] TENON_API void refuse_type(DType asked) const;
};
using HostTensors = std::span<const HostTensor>;

// Carries out `call` by `function` on the host: copies its tensors there, and the results to the device of the call.
// Waits until the tensors are computed.
TENON_API void run_on_host(const OpCall& call, const std::function<void(HostTensors in, HostTensors out)>& function);

// The states of an op: one for each value of its attributes, made on first use and kept.
template <class State>
class States {
 public:
  template <class Make>
  std::shared_ptr<State> get(const OpCall& call, const Make& make) {
    const std::string key(static_cast<const char*>(call.attributes), call.op->attribute_bytes);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<State>& state = states_[key];
    if (state == nullptr) state = make();
    return state;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<State>> states_;
};

}  // namespace tenon::library
