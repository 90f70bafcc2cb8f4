// Program: a sequence of instructions on numbered buffers, drawn from a seed, and its result when it is executed
// sequentially on plain vectors. It prints as text that can be parsed again.
//
//   thread 0: new 3 on 1 words 16 seed 77
//   thread 0: mix 3 0 = 4 2 , 5 0 words 8 tag 9 stream 2        (dst first, a first, b first)
//   thread 0: mix 3 0 = 4 2 , 5 0 words 8 tag 9 stream 2 refused | faults
//   thread 0: copy 3 0 = 4 2 words 8 stream 1
//   thread 0: access 3 0 words 8 tag 9 reads writes throws      (any of the three)
//   thread 0: wait 2 on 1 for 0 on 0                            (stream and device)
//   thread 0: barrier on 1
//   thread 0: drop 3
//   thread 0: read 3
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::testing {

struct Instruction {
  enum Kind { make, mix, copy, access, wait, barrier, drop, read };

  int thread = 0;
  Kind kind = make;
  int dst = 0, a = 0, b = 0;  // buffers
  int64_t dst_first = 0, a_first = 0, b_first = 0;
  int64_t words = 0;
  int64_t tag = 0;  // the tag of a mix; the seed of a make
  int64_t how = 0;  // fakes::kMix...; for access kReads, kWrites, kThrows
  int stream = 0;
  int device = 0;
  int other_stream = 0, other_device = 0;  // for wait

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

// The behaviour of the function of an access. With kReads it stores the words that it sees. With kWrites it writes
// seeded words. With both it changes each word w to 31*w + tag.
constexpr int64_t kReads = 1;
constexpr int64_t kWrites = 2;
constexpr int64_t kThrows = 4;  // throws and does nothing else

struct Program {
  std::vector<Instruction> instructions;

  friend bool operator==(const Program&, const Program&) = default;
};

// The content of a buffer. `poisoned`: the content is unreliable.
struct BufferState {
  int device = 0;
  std::vector<uint32_t> words;
  bool poisoned = false;

  friend bool operator==(const BufferState& x, const BufferState& y) {
    return x.poisoned == y.poisoned && (x.poisoned || x.words == y.words);
  }
};

// The results. For each `read` and each access that only reads, the key is its index in the program. For each buffer
// alive at the end, the key is -1 - its number.
using Outcome = std::map<int, BufferState>;

Program draw_program(uint64_t seed);
std::vector<uint32_t> seeded_words(int64_t seed, int64_t words);

// Changes `words` like the function of a writing access.
void change_words(const Instruction& access, uint32_t* words);

std::string print(const Program& program);
std::optional<Program> parse(std::string_view text);
// True if every instruction names buffers that exist at that point, and ranges inside them.
bool is_valid(const Program& program);

// The value of `failing` below if no instruction fails.
constexpr int kNone = 1 << 30;
// Replays the program. `failing` is the index of the instruction that fails, so that its result is poisoned, or -1 -
// the number of the buffer whose final read fails.
Outcome replay(const Program& program, int failing = kNone);

}  // namespace tenon::testing
