#include "sdk/conformance/running.h"

#include <cstring>
#include <mutex>

#include "primitives/text/format.h"

namespace tenon::conformance {
namespace {

std::mutex mutex;  // several threads of a test may note calls
Running own;
Running* running = &own;

template <size_t Size>
void put(char (&field)[Size], std::string_view text) {
  field[text.copy(field, Size - 1)] = '\0';
}

template <size_t Size>
std::string taken(const char (&field)[Size]) {
  return std::string(field, strnlen(field, Size));
}

}  // namespace

void note_into(Running* notes) {
  const std::lock_guard lock(mutex);
  running = notes;
  put(running->call, {});
  put(running->descriptor, {});
}

void note_call(std::string_view function) {
  const std::lock_guard lock(mutex);
  put(running->call, function);
  ++running->calls;
}

void note_descriptor(std::string_view text) {
  const std::lock_guard lock(mutex);
  put(running->descriptor, text);
}

std::string call_text(const Running& running) {
  const std::string call = taken(running.call);
  return call.empty() ? call : fmt::format(", the last call was {}", call);
}

std::string descriptor_text(const Running& running) {
  const std::string text = taken(running.descriptor);
  return text.empty() ? text : fmt::format("\n  the last descriptor was {}", text);
}

std::string descriptor_text_for(std::string_view function) {
  const std::lock_guard lock(mutex);
  return function.starts_with("primitive_") ? descriptor_text(*running) : std::string();
}

}  // namespace tenon::conformance
