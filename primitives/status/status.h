// Status and Result<T>: the error values of everything inside Tenon. The public C++ API throws tenon::Error with the
// same text. A failure is kept in parts, so that code that adds to it or asks about it reads no text. The text is
// composed from the parts in one place.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

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

// The parts of a failure, each of which may be empty, except for the code and the reason.
struct Failure {
  Code code = Code::internal;
  std::string subject = {};               // the op or function that failed: "add"
  std::string arguments = {};             // its arguments: "(f32 [2], f32 [3])"
  std::string reason = {};                // a sentence with the values in it, then lines of details
  std::string rule = {};                  // the rule of ep_api/README.md that was broken: "E01"
  std::vector<std::string> context = {};  // a line per layer above, the innermost first
  std::string suggestion = {};            // the nearest valid name: "cpu". The remedy then begins "Did you mean cpu?"
  std::string advice = {};                // the rest of the remedy: what to do, if we know
};

// The op or function that failed, as an argument of the constructors of Status and Error.
struct Subject {
  std::string_view name;
};

// Success (one null pointer) or a failure. Copying a failure shares its parts and text.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string reason, std::string advice = {});
  Status(Subject subject, Code code, std::string reason, std::string advice = {});
  explicit Status(Failure failure);

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return failure_ ? failure_->code : Code::ok; }
  // The sentence, then one line per context added; empty when ok.
  const std::string& message() const;
  // "<subject>: <reason>" or "<subject><arguments> <reason>", and the rule. It has no context and no details, and is
  // empty when ok.
  std::string sentence() const;
  // The suggestion and the advice; empty when ok.
  const std::string& remedy() const;
  // The parts; all are empty when ok.
  const Failure& parts() const;

  // The same failure with one more line of context, unless it has this line already:
  // "  while running node 14 (/encoder/MatMul) on cuda:0".
  Status with_context(std::string_view line) const;
  // The same failure with another subject or rule.
  Status with_subject(std::string_view subject) const;
  Status with_rule(std::string_view rule) const;
  // The same failure as one of `caller`, which had called the subject: "softmax: exp: ...".
  Status with_caller(std::string_view caller) const;

 private:
  struct Composed;  // the parts and the text
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
