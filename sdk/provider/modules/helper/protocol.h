// What the plug-in and its compile helpers say to each other, over a socket that is descriptor 3 of the helper.
//
// The plug-in sends a Question and then `text_bytes` bytes of text. The helper answers with an Answer, then
// `output_bytes` bytes of what the compiler said, then `binary_bytes` bytes of what was made. Question after
// question comes over the same socket; the helper ends when the socket closes. Both sides are of one build, so the
// structs need no version.
#pragma once

#include <cstdint>

namespace tenon::provider::helper {

inline constexpr int socket_descriptor = 3;
inline constexpr uint64_t most_output_bytes = uint64_t{1} << 20;
inline constexpr uint64_t most_binary_bytes = uint64_t{64} << 20;

enum class Ask : uint32_t { identify, compile };

struct Question {
  Ask ask = Ask::compile;
  uint32_t target = 0;   // what the binary is for; a number that the provider and its engine agree on
  uint32_t seconds = 0;  // after which the helper may end itself
  uint32_t reserved = 0;
  uint64_t text_bytes = 0;
};

enum class Result : uint32_t {
  done,     // of identify: the output is "name version\nidentity", the identity one line
  refused,  // the compiler refuses the text
  failed,   // there is no compiler, or it failed for another reason; the output says why
};

struct Answer {
  Result result = Result::failed;
  uint32_t reserved = 0;
  uint64_t output_bytes = 0;
  uint64_t binary_bytes = 0;
};

}  // namespace tenon::provider::helper
