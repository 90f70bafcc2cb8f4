#include "primitives/status/status.h"

#include <algorithm>

#include "primitives/text/format.h"

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

struct Status::Composed : Failure {
  explicit Composed(Failure parts);
  std::string message, remedy;
};

namespace {

// "<first line of the reason> (rule E01).", then the details. A full stop before the rule moves behind it.
std::string reason_with_rule(const std::string& reason, const std::string& rule) {
  if (rule.empty()) return reason;
  const size_t end = std::min(reason.find('\n'), reason.size());
  size_t stop = end;
  while (stop > 0 && reason[stop - 1] == '.') --stop;
  return fmt::format("{} (rule {}).{}", reason.substr(0, stop), rule, reason.substr(end));
}

std::string subject_and_reason(const Failure& parts) {
  std::string text = reason_with_rule(parts.reason, parts.rule);
  if (parts.subject.empty()) return text;
  return fmt::format("{}{} {}", parts.subject, parts.arguments.empty() ? ":" : parts.arguments, text);
}

std::string compose_message(const Failure& parts) {
  std::string text = subject_and_reason(parts);
  for (const std::string& line : parts.context) text.append("\n").append(line);
  return text;
}

std::string compose_remedy(const Failure& parts) {
  if (parts.suggestion.empty()) return parts.advice;
  return fmt::format("Did you mean {}?{}{}", parts.suggestion, parts.advice.empty() ? "" : " ", parts.advice);
}

}  // namespace

Status::Composed::Composed(Failure parts)
    : Failure(std::move(parts)), message(compose_message(*this)), remedy(compose_remedy(*this)) {}

Status::Status(Failure failure) : failure_(std::make_shared<const Composed>(std::move(failure))) {}

Status::Status(Code code, std::string reason, std::string advice)
    : Status(Failure{.code = code, .reason = std::move(reason), .advice = std::move(advice)}) {}

Status::Status(Subject subject, Code code, std::string reason, std::string advice)
    : Status(Failure{.code = code,
                     .subject = std::string(subject.name),
                     .reason = std::move(reason),
                     .advice = std::move(advice)}) {}

const Failure& Status::parts() const {
  static const Failure none{.code = Code::ok};
  return failure_ ? *failure_ : none;
}

const std::string& Status::message() const {
  static const std::string none;
  return failure_ ? static_cast<const Composed&>(*failure_).message : none;
}

const std::string& Status::remedy() const {
  static const std::string none;
  return failure_ ? static_cast<const Composed&>(*failure_).remedy : none;
}

std::string Status::sentence() const {
  const std::string text = subject_and_reason(parts());
  return text.substr(0, text.find('\n'));
}

Status Status::with_context(std::string_view line) const {
  if (ok()) return *this;
  Failure parts = *failure_;
  if (std::find(parts.context.begin(), parts.context.end(), line) != parts.context.end()) return *this;
  parts.context.emplace_back(line);
  return Status(std::move(parts));
}

Status Status::with_subject(std::string_view subject) const {
  if (ok()) return *this;
  Failure parts = *failure_;
  parts.subject = subject;
  return Status(std::move(parts));
}

Status Status::with_rule(std::string_view rule) const {
  if (ok()) return *this;
  Failure parts = *failure_;
  parts.rule = rule;
  return Status(std::move(parts));
}

Status Status::with_caller(std::string_view caller) const {
  if (ok()) return *this;
  Failure parts = *failure_;
  const std::string rule = std::exchange(parts.rule, {});
  parts.reason = subject_and_reason(parts);
  parts.rule = rule;
  parts.subject = caller;
  parts.arguments.clear();
  return Status(std::move(parts));
}

}  // namespace tenon
