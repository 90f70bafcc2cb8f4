// Notes on the running test: the last function that it called and the last descriptor that it passed. They are in
// memory that the parent process can read after the child has died or hung.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::conformance {

// The notes, in memory shared by parent and child.
struct Running {
  std::atomic<uint64_t> calls;  // calls of all tests of the process
  char call[64];
  char descriptor[2000];
};

// Clears the texts of `notes` and writes all further notes there. The child calls it once per test.
void note_into(Running* notes);

void note_call(std::string_view function);
void note_descriptor(std::string_view text);

// ", in primitive_launch", or empty.
std::string call_text(const Running& running);
// "\n  the last descriptor: softmax axis=1 : ...", or empty.
std::string descriptor_text(const Running& running);
// The last descriptor of this process, for a violation of `function`. Empty if `function` takes no descriptor.
std::string descriptor_text_for(std::string_view function);

}  // namespace tenon::conformance
