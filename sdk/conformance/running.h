// What a test is doing, kept where the parent process can read it when the child has died or hangs: the function called
// last and the descriptor spoken of last.
#pragma once

#include <string>
#include <string_view>

namespace tenon::conformance {

// Memory that parent and child share.
struct Running {
  char call[64];
  char descriptor[2000];
};

// From here on notes go to `notes`, which is cleared. For the child, once per test.
void note_into(Running* notes);

void note_call(std::string_view function);
void note_descriptor(std::string_view text);

// ", in primitive_launch", or empty.
std::string call_text(const Running& running);
// "\n  the last descriptor: softmax axis=1 : ...", or empty.
std::string descriptor_text(const Running& running);
// The same of this process, for what `function` was found to do; empty for one that takes no descriptor.
std::string descriptor_text_for(std::string_view function);

}  // namespace tenon::conformance
