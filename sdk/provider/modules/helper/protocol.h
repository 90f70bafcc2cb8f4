// The messages between the plug-in and its compile helpers. The socket is descriptor 3 of the helper.
//
// The plug-in sends a Question and then `text_bytes` bytes of text. The helper answers with an Answer, then
// `output_bytes` bytes of the compiler's output, then `binary_bytes` bytes of the binary. The same
// socket carries all questions; the helper ends when the socket closes. Both sides belong to one build, so the structs
// need no version.
#pragma once

#include <cstdint>

namespace tenon::provider::helper {

inline constexpr int socket_descriptor = 3;
inline constexpr uint64_t most_output_bytes = uint64_t{1} << 20;
inline constexpr uint64_t most_binary_bytes = uint64_t{64} << 20;

enum class Ask : uint32_t { identify, compile };

struct Question {
  Ask ask = Ask::compile;
  uint32_t target = 0;   // the binary's target; provider and engine agree on the numbers
  uint32_t seconds = 0;  // time after which the helper may end itself
  uint32_t reserved = 0;
  uint64_t text_bytes = 0;
};

enum class Result : uint32_t {
  done,     // after identify, the output is "name version\nidentity" (two lines)
  refused,  // the compiler rejected the text
  failed,   // no compiler, or another failure; the output says why
};

struct Answer {
  Result result = Result::failed;
  uint32_t reserved = 0;
  uint64_t output_bytes = 0;
  uint64_t binary_bytes = 0;
};

}  // namespace tenon::provider::helper
