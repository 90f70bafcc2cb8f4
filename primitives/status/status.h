// Status and Result<T>: the error values of everything inside Tenon. The public C++ API throws tenon::Error with the
// same text. A message is a full sentence with the values in it; `remedy` says what to do, if we know; each layer above
// may add one line of context.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "ep_api/ep_api.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// The EP_STATUS_* codes, as a C++ enum.
enum class Code : ep_status {
  ok = EP_STATUS_OK,
  unsupported = EP_STATUS_UNSUPPORTED,
  fault = EP_STATUS_FAULT,
  invalid_argument = EP_STATUS_INVALID_ARGUMENT,
  not_found = EP_STATUS_NOT_FOUND,
  out_of_host_memory = EP_STATUS_OUT_OF_HOST_MEMORY,
  out_of_device_memory = EP_STATUS_OUT_OF_DEVICE_MEMORY,
  device_lost = EP_STATUS_DEVICE_LOST,
  timeout = EP_STATUS_TIMEOUT,
  cancelled = EP_STATUS_CANCELLED,
  busy = EP_STATUS_BUSY,
  version = EP_STATUS_VERSION,
  internal = EP_STATUS_INTERNAL,
};

// "invalid argument", "out of device memory", ...
std::string_view code_name(Code code);

// Success (one null pointer) or a failure. Copying a failure shares its text.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message, std::string remedy = {});

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return failure_ ? failure_->code : Code::ok; }
  // The sentence, then one line per context added; empty when ok.
  const std::string& message() const;
  const std::string& remedy() const;

  // The same failure with one more line: "  while running node 14 (/encoder/MatMul) on cuda:0".
  Status with_context(std::string_view line) const;

 private:
  struct Failure {
    Code code;
    std::string message;
    std::string remedy;
  };
  std::shared_ptr<const Failure> failure_;
};

// A value, or the failure to make it. value() may be called only if ok().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {}

  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace tenon

#pragma GCC visibility pop

#define TENON_CONCAT_INNER_(a, b) a##b
#define TENON_CONCAT_(a, b) TENON_CONCAT_INNER_(a, b)

// Returns from the enclosing function if `expression` (a Status) failed.
#define TENON_RETURN_IF_ERROR(expression)                                      \
  do {                                                                         \
    if (::tenon::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// `TENON_ASSIGN_OR_RETURN(auto x, make_x());` returns the failure of a Result or binds its value.
#define TENON_ASSIGN_OR_RETURN(target, expression) \
  TENON_ASSIGN_OR_RETURN_INNER_(TENON_CONCAT_(result_, __LINE__), target, expression)
#define TENON_ASSIGN_OR_RETURN_INNER_(result, target, expression) \
  auto result = (expression);                                     \
  if (!result.ok()) return result.status();                       \
  target = std::move(result).value()
