// A Status as an exception: what the public C++ API throws.
#pragma once

#include <stdexcept>
#include <string>

#include "primitives/status/status.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// what() is the full message. code() is the kind of failure, for programs. remedy() says what to do about it, if we
// know.
class Error : public std::runtime_error {
 public:
  explicit Error(Status status);
  Error(Code code, std::string reason, std::string advice = {});
  Error(Subject subject, Code code, std::string reason, std::string advice = {});
  ~Error() override;

  const Status& status() const { return status_; }
  Code code() const { return status_.code(); }
  const std::string& remedy() const { return status_.remedy(); }

 private:
  Status status_;
};

// Throws tenon::Error unless `status` is ok.
inline void throw_if_error(const Status& status) {
  if (!status.ok()) throw Error(status);
}

// Returns the value of `result`, or throws its failure.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw Error(result.status());
  return std::move(result).value();
}

}  // namespace tenon
#pragma GCC visibility pop
