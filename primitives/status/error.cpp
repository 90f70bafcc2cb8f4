#include "primitives/status/error.h"

#include <utility>

namespace tenon {

Error::Error(Status status) : std::runtime_error(status.message()), status_(std::move(status)) {}

Error::Error(Code code, std::string message, std::string remedy)
    : Error(Status(code, std::move(message), std::move(remedy))) {}

Error::~Error() = default;

}  // namespace tenon
