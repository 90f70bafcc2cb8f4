// The border of the C API: arguments of C as C++ objects, and exceptions as errors.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/background/cancellation.h"
#include "core/background/compiling.h"
#include "core/tensor/tensor.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/c/tenon_c.h"

struct tenon_error {
  tenon::Status status;
};

struct tenon_cancellation {
  tenon::Cancellation cancellation;
};

namespace tenon::c {

// Stores the failure of `function` in *error, if `error` is not null, and returns its code.
tenon_status store_error(std::string_view function, const Status& status, tenon_error** error) noexcept;
// The exception that is being handled, as a failure.
Status caught() noexcept;

// Runs `body`, the body of the public function called `function`.
template <class F>
tenon_status guarded(std::string_view function, tenon_error** error, F&& body) noexcept {
  try {
    body();
    return TENON_OK;
  } catch (...) {
    return store_error(function, caught(), error);
  }
}

[[noreturn, gnu::cold]] void refuse_null(std::string_view argument);

// `pointer`, which must not be null.
template <class T>
T* needed(T* pointer, std::string_view argument) {
  if (pointer == nullptr) [[unlikely]]
    refuse_null(argument);
  return pointer;
}

[[noreturn, gnu::cold]] void refuse_size(size_t size);
[[noreturn, gnu::cold]] void refuse_newer(size_t size, size_t known);

// The options that the caller gave, which may be older or newer than ours. Members that the caller does not know are 0.
// Errors: invalid_argument (no size), unsupported (a member that we do not know is not 0).
template <class Options>
Options known_options(const Options* given) {
  static_assert(std::is_standard_layout_v<Options> && std::is_trivially_copyable_v<Options>);
  Options options{};
  if (given == nullptr) return options;
  const size_t size = given->size;
  if (size < sizeof(size_t)) refuse_size(size);
  std::memcpy(&options, given, std::min(size, sizeof options));
  const auto* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof options; i < size; ++i) {
    if (bytes[i] != 0) refuse_newer(size, sizeof options);
  }
  return options;
}

// Writes the members of `info` that the caller knows.
template <class Info>
void write_info(Info* out, Info info) {
  static_assert(std::is_standard_layout_v<Info> && std::is_trivially_copyable_v<Info>);
  const size_t size = needed(out, "info")->size;
  if (size < sizeof(size_t)) refuse_size(size);
  info.size = size;
  std::memcpy(out, &info, std::min(size, sizeof info));
}

// A handle is the counted object of the C++ API itself, so that no handle is allocated.
inline tenon_tensor* handle_of(Tensor tensor) {
  static_assert(sizeof(Tensor) == sizeof(void*));
  TensorImpl* impl = tensor.impl();
  if (impl != nullptr) impl->count.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<tenon_tensor*>(impl);
}
inline TensorImpl* impl_of(const tenon_tensor* tensor) {
  return reinterpret_cast<TensorImpl*>(const_cast<tenon_tensor*>(tensor));
}
inline Tensor tensor_of(const tenon_tensor* tensor, std::string_view argument = "tensor") {
  TensorImpl* impl = impl_of(needed(tensor, argument));
  impl->count.fetch_add(1, std::memory_order_relaxed);
  return Tensor(impl);
}
TensorList tensors_of(const tenon_tensor* const* tensors, size_t count, std::string_view argument);
// Writes handles to all tensors. `outputs` has room for them.
void write_handles(TensorList tensors, tenon_tensor** outputs);

// `text` as memory that tenon_free frees.
char* owned_text(std::string_view text);
// "cpu:0"; null: the default device.
Device device_of(const char* device);
// Errors: invalid_argument (no such dtype).
DType dtype_of(tenon_dtype dtype);
// Errors: invalid_argument (a rank outside 0 to 8, no dims).
Dims dims_of(int32_t rank, const int64_t* dims, std::string_view argument = "dims");
// A choice of TENON_DEFAULT, TENON_ON, TENON_OFF; empty: the default.
std::optional<bool> choice_of(int32_t choice, std::string_view member);
// The option `wait` of a program or model.
std::optional<Compiling> compiling_of(int32_t wait);

// While it lives, calls of this thread stop if `cancellation`, which may be null, asks for it.
class CancelledBy {
 public:
  explicit CancelledBy(const tenon_cancellation* cancellation) {
    if (cancellation != nullptr) scope_.emplace(cancellation->cancellation);
  }

 private:
  std::optional<CancellationScope> scope_;
};

}  // namespace tenon::c
