#include "primitives/status/error.h"

#include <utility>

namespace tenon {

Error::Error(Status status) : std::runtime_error(status.message()), status_(std::move(status)) {}

Error::Error(Code code, std::string reason, std::string advice)
    : Error(Status(code, std::move(reason), std::move(advice))) {}

Error::Error(Subject subject, Code code, std::string reason, std::string advice)
    : Error(Status(subject, code, std::move(reason), std::move(advice))) {}

Error::~Error() = default;

}  // namespace tenon
