#include "loader/host/error.h"

#include "loader/loader.h"

namespace tenon::loader {
namespace {

ep_error& out_of_memory_error() {
  static auto* error = new ep_error{EP_STATUS_OUT_OF_HOST_MEMORY, "out of host memory.", ""};
  return *error;
}

// Made when the program starts, so that it is there when memory is not.
[[maybe_unused]] const ep_error& made_early = out_of_memory_error();

bool is_known(ep_status status) { return status > EP_STATUS_OK && status <= EP_STATUS_INTERNAL; }

}  // namespace

ep_error* make_error(ep_status status, std::string_view sentence, std::string_view remedy) noexcept {
  try {
    return new ep_error{status, std::string(sentence), std::string(remedy)};
  } catch (...) {
    return &out_of_memory_error();
  }
}

void release_error(ep_error* error) noexcept {
  if (error != &out_of_memory_error()) delete error;
}

Status take_error(ep_status status, ep_error* error, std::string_view doing) {
  if (status == EP_STATUS_OK) {
    release_error(error);
    return {};
  }
  const Code code = is_known(status) ? static_cast<Code>(status) : Code::internal;
  std::string sentence = error ? error->sentence : std::string();
  std::string remedy = error ? error->remedy : std::string();
  release_error(error);
  if (sentence.empty()) sentence = "the provider gave no reason for its answer '" + std::string(code_name(code)) + "'.";
  if (!is_known(status)) sentence += " Its status " + std::to_string(status) + " is none of the known ones.";
  const Status failure(code, std::move(sentence), std::move(remedy));
  return doing.empty() ? failure : failure.with_context("  while " + std::string(doing));
}

}  // namespace tenon::loader
