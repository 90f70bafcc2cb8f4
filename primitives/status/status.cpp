#include "primitives/status/status.h"

namespace tenon {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::unsupported: return "unsupported";
    case Code::fault: return "fault";
    case Code::invalid_argument: return "invalid argument";
    case Code::not_found: return "not found";
    case Code::out_of_host_memory: return "out of host memory";
    case Code::out_of_device_memory: return "out of device memory";
    case Code::device_lost: return "device lost";
    case Code::timeout: return "timeout";
    case Code::cancelled: return "cancelled";
    case Code::busy: return "busy";
    case Code::version: return "version";
    case Code::internal: return "internal";
  }
  return "unknown status";
}

Status::Status(Code code, std::string message, std::string remedy)
    : failure_(std::make_shared<const Failure>(Failure{code, std::move(message), std::move(remedy)})) {}

const std::string& Status::message() const {
  static const std::string none;
  return failure_ ? failure_->message : none;
}

const std::string& Status::remedy() const {
  static const std::string none;
  return failure_ ? failure_->remedy : none;
}

Status Status::with_context(std::string_view line) const {
  if (ok()) return *this;
  std::string message = failure_->message;
  message.append("\n").append(line);
  return Status(failure_->code, std::move(message), failure_->remedy);
}

}  // namespace tenon
