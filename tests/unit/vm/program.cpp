#include "tests/unit/vm/program.h"

#include <algorithm>
#include <random>
#include <sstream>

#include "primitives/text/format.h"
#include "tests/fakes/async/control.h"

namespace tenon::testing {
namespace {

constexpr int kShared = 4;     // buffers that every thread reads
constexpr int kPerThread = 8;  // buffers of each thread

struct Known {
  int device;
  int64_t words;
};
using Buffers = std::map<int, Known>;

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed), few_and_large_(seed % 10 == 0) {}

  Program draw() {
    const int threads = chance(4) ? 2 + static_cast<int>(below(2)) : 1;
    for (int i = 0; i < kShared; ++i) add_make(0, i);
    shared_ = buffers_;
    for (int thread = 0; thread < threads; ++thread) {
      buffers_ = shared_;
      const int64_t count = 8 + below(40);
      for (int64_t i = 0; i < count; ++i) step(thread);
    }
    return std::move(program_);
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t n) { return below(n) == 0; }

  void step(int thread) {
    const int64_t draw = below(100);
    const int own = kShared + thread * kPerThread + static_cast<int>(below(few_and_large_ ? 2 : kPerThread));
    if (!buffers_.contains(own)) return draw < 40 ? add_make(thread, own) : add_mix(thread, own, true);
    if (draw < 50) return add_mix(thread, own, false);
    if (draw < 66) return add_copy(thread, own);
    if (draw < 76) return add_access(thread, own);
    if (draw < 80) return add_order(thread, draw < 79 ? Instruction::wait : Instruction::barrier);
    if (draw < 92) return add_drop(thread, own);
    Instruction read;
    read.thread = thread;
    read.kind = Instruction::read;
    read.dst = own;
    program_.instructions.push_back(read);
  }

  void add_make(int thread, int buffer) {
    Instruction make;
    make.thread = thread;
    make.dst = buffer;
    make.device = static_cast<int>(below(2));
    make.words = draw_words();
    make.tag = below(1000);
    buffers_[buffer] = {make.device, make.words};
    program_.instructions.push_back(make);
  }

  int64_t draw_words() {
    if (few_and_large_) return 8500 + below(3) * 100;
    constexpr int64_t sizes[] = {1, 4, 16, 16, 16, 48, 100, 400};
    return sizes[below(8)];
  }

  // Returns a buffer of `device` (-1: of any device), or -1 if there is none.
  int any(int device) {
    std::vector<int> fit;
    for (const auto& [number, known] : buffers_) {
      if (device < 0 || known.device == device) fit.push_back(number);
    }
    return fit.empty() ? -1 : fit[static_cast<size_t>(below(static_cast<int64_t>(fit.size())))];
  }

  void add_mix(int thread, int dst, bool fresh) {
    Instruction mix;
    mix.thread = thread;
    mix.kind = Instruction::mix;
    mix.dst = dst;
    const int device = fresh ? static_cast<int>(below(2)) : buffers_[dst].device;
    mix.a = any(device);
    mix.b = any(device);
    if (mix.a < 0) return;
    if (fresh) {
      buffers_[dst] = {device, std::min(buffers_[mix.a].words, buffers_[mix.b].words)};
      Instruction make;
      make.thread = thread;
      make.dst = dst;
      make.device = device;
      make.words = buffers_[dst].words;
      make.tag = -1;  // not filled, because the next instruction overwrites it
      program_.instructions.push_back(make);
    }
    mix.words = std::min({buffers_[dst].words, buffers_[mix.a].words, buffers_[mix.b].words});
    if (!fresh && chance(2)) mix.words = 1 + below(mix.words);
    mix.dst_first = below(buffers_[dst].words - mix.words + 1);
    mix.a_first = below(buffers_[mix.a].words - mix.words + 1);
    mix.b_first = below(buffers_[mix.b].words - mix.words + 1);
    if (mix.a == dst) mix.a_first = mix.dst_first;
    if (mix.b == dst) mix.b_first = mix.dst_first;
    mix.tag = below(1000);
    mix.stream = static_cast<int>(below(3));
    if (chance(14)) mix.how = 1 + below(2);
    program_.instructions.push_back(mix);
  }

  void add_copy(int thread, int dst) {
    Instruction copy;
    copy.thread = thread;
    copy.kind = Instruction::copy;
    copy.dst = dst;
    copy.a = any(-1);
    if (copy.a == dst) return;
    copy.words = std::min(buffers_[dst].words, buffers_[copy.a].words);
    if (chance(2)) copy.words = 1 + below(copy.words);
    copy.dst_first = below(buffers_[dst].words - copy.words + 1);
    copy.a_first = below(buffers_[copy.a].words - copy.words + 1);
    copy.stream = static_cast<int>(below(3));
    program_.instructions.push_back(copy);
  }

  void add_access(int thread, int buffer) {
    Instruction access;
    access.thread = thread;
    access.kind = Instruction::access;
    access.dst = buffer;
    access.words = buffers_[buffer].words;
    if (chance(2)) access.words = 1 + below(access.words);
    access.dst_first = below(buffers_[buffer].words - access.words + 1);
    access.tag = below(1000);
    access.how = 1 + below(3);
    if (chance(10)) access.how |= kThrows;
    program_.instructions.push_back(access);
  }

  void add_order(int thread, Instruction::Kind kind) {
    Instruction order;
    order.thread = thread;
    order.kind = kind;
    order.device = static_cast<int>(below(2));
    if (kind == Instruction::wait) {
      order.stream = static_cast<int>(below(3));
      order.other_stream = static_cast<int>(below(3));
      order.other_device = static_cast<int>(below(2));
    }
    program_.instructions.push_back(order);
  }

  void add_drop(int thread, int buffer) {
    Instruction drop;
    drop.thread = thread;
    drop.kind = Instruction::drop;
    drop.dst = buffer;
    buffers_.erase(buffer);
    program_.instructions.push_back(drop);
  }

  std::mt19937_64 random_;
  bool few_and_large_;  // above 32 KiB, so that a block is reused as soon as it is free
  Program program_;
  Buffers shared_;
  Buffers buffers_;
};

constexpr std::string_view kHow[] = {"", " refused", " faults"};

std::string words_of(const Instruction& one) {
  switch (one.kind) {
    case Instruction::make:
      return fmt::format("new {} on {} words {} seed {}", one.dst, one.device, one.words, one.tag);
    case Instruction::mix:
      return fmt::format("mix {} {} = {} {} , {} {} words {} tag {} stream {}{}", one.dst, one.dst_first, one.a,
                         one.a_first, one.b, one.b_first, one.words, one.tag, one.stream,
                         kHow[static_cast<size_t>(one.how)]);
    case Instruction::copy:
      return fmt::format("copy {} {} = {} {} words {} stream {}", one.dst, one.dst_first, one.a, one.a_first, one.words,
                         one.stream);
    case Instruction::access:
      return fmt::format("access {} {} words {} tag {}{}{}{}", one.dst, one.dst_first, one.words, one.tag,
                         (one.how & kReads) != 0 ? " reads" : "", (one.how & kWrites) != 0 ? " writes" : "",
                         (one.how & kThrows) != 0 ? " throws" : "");
    case Instruction::wait:
      return fmt::format("wait {} on {} for {} on {}", one.stream, one.device, one.other_stream, one.other_device);
    case Instruction::barrier: return fmt::format("barrier on {}", one.device);
    case Instruction::drop: return fmt::format("drop {}", one.dst);
    case Instruction::read: return fmt::format("read {}", one.dst);
  }
  return {};
}

bool parse_line(const std::string& line, Instruction* one) {
  std::istringstream in(line);
  std::string word;
  std::string skip;
  char sign = 0;
  in >> skip >> one->thread >> sign >> word;
  if (word == "new") {
    one->kind = Instruction::make;
    in >> one->dst >> skip >> one->device >> skip >> one->words >> skip >> one->tag;
  } else if (word == "mix") {
    one->kind = Instruction::mix;
    in >> one->dst >> one->dst_first >> sign >> one->a >> one->a_first >> sign >> one->b >> one->b_first >> skip >>
        one->words >> skip >> one->tag >> skip >> one->stream;
    if (!in) return false;
    std::string how;
    if (in >> how) one->how = how == "refused" ? fakes::kMixRefused : fakes::kMixFaults;
    return true;
  } else if (word == "copy") {
    one->kind = Instruction::copy;
    in >> one->dst >> one->dst_first >> sign >> one->a >> one->a_first >> skip >> one->words >> skip >> one->stream;
  } else if (word == "access") {
    one->kind = Instruction::access;
    in >> one->dst >> one->dst_first >> skip >> one->words >> skip >> one->tag;
    if (!in) return false;
    for (std::string does; in >> does;) one->how |= does == "reads" ? kReads : does == "writes" ? kWrites : kThrows;
    return true;
  } else if (word == "wait") {
    one->kind = Instruction::wait;
    in >> one->stream >> skip >> one->device >> skip >> one->other_stream >> skip >> one->other_device;
  } else if (word == "barrier") {
    one->kind = Instruction::barrier;
    in >> skip >> one->device;
  } else if (word == "drop" || word == "read") {
    one->kind = word == "drop" ? Instruction::drop : Instruction::read;
    in >> one->dst;
  } else {
    return false;
  }
  return static_cast<bool>(in);
}

bool fits(const Buffers& buffers, int buffer, int64_t first, int64_t words) {
  const auto found = buffers.find(buffer);
  return found != buffers.end() && first >= 0 && words > 0 && first + words <= found->second.words;
}

bool whole(const BufferState& state, const Instruction& one) {
  return one.words == static_cast<int64_t>(state.words.size());
}

void replay_mix(std::map<int, BufferState>& buffers, const Instruction& one) {
  BufferState& dst = buffers[one.dst];
  const BufferState a = buffers[one.a];
  const BufferState b = buffers[one.b];
  const bool overwrites = whole(dst, one) && one.a != one.dst && one.b != one.dst;
  dst.poisoned = a.poisoned || b.poisoned || (dst.poisoned && !overwrites) || one.how != fakes::kMixRuns;
  if (dst.poisoned) return;
  for (int64_t i = 0; i < one.words; ++i) {
    dst.words[static_cast<size_t>(one.dst_first + i)] = 31 * a.words[static_cast<size_t>(one.a_first + i)] +
                                                        b.words[static_cast<size_t>(one.b_first + i)] +
                                                        static_cast<uint32_t>(one.tag);
  }
}

void replay_copy(std::map<int, BufferState>& buffers, const Instruction& one) {
  BufferState& dst = buffers[one.dst];
  const BufferState& src = buffers[one.a];
  dst.poisoned = src.poisoned || (dst.poisoned && !whole(dst, one));
  if (dst.poisoned) return;
  std::copy_n(src.words.begin() + one.a_first, one.words, dst.words.begin() + one.dst_first);
}

// The words that a reading access sees.
BufferState replay_access(std::map<int, BufferState>& buffers, const Instruction& one) {
  BufferState& dst = buffers[one.dst];
  const auto first = dst.words.begin() + one.dst_first;
  BufferState seen{dst.device, {first, first + one.words}, dst.poisoned || (one.how & kThrows) != 0};
  if ((one.how & kWrites) == 0) return seen;
  const bool overwrites = (one.how & kReads) == 0 && whole(dst, one);
  dst.poisoned = (dst.poisoned && !overwrites) || (one.how & kThrows) != 0;
  if (!dst.poisoned) change_words(one, &*first);
  return seen;
}

}  // namespace

void change_words(const Instruction& access, uint32_t* words) {
  const std::vector<uint32_t> fresh = seeded_words(access.tag, access.words);
  for (size_t i = 0; i < fresh.size(); ++i) {
    words[i] = (access.how & kReads) != 0 ? 31 * words[i] + static_cast<uint32_t>(access.tag) : fresh[i];
  }
}

Program draw_program(uint64_t seed) { return Drawer(seed).draw(); }

std::vector<uint32_t> seeded_words(int64_t seed, int64_t words) {
  std::vector<uint32_t> values(static_cast<size_t>(words));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<uint32_t>(seed * 7919 + static_cast<int64_t>(i) * 104729 + 1);
  return values;
}

std::string print(const Program& program) {
  std::string text;
  for (const Instruction& one : program.instructions) text += fmt::format("thread {}: {}\n", one.thread, words_of(one));
  return text;
}

std::optional<Program> parse(std::string_view text) {
  Program program;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    if (!parse_line(line, &program.instructions.emplace_back())) return std::nullopt;
  }
  return program;
}

bool is_valid(const Program& program) {
  Buffers buffers;
  std::map<int, bool> filled;
  for (const Instruction& one : program.instructions) {
    switch (one.kind) {
      case Instruction::make:
        if (one.words <= 0 || !buffers.try_emplace(one.dst, Known{one.device, one.words}).second) return false;
        filled[one.dst] = one.tag >= 0;
        break;
      case Instruction::mix:
        if (!fits(buffers, one.dst, one.dst_first, one.words) || !fits(buffers, one.a, one.a_first, one.words) ||
            !fits(buffers, one.b, one.b_first, one.words)) {
          return false;
        }
        if (buffers[one.a].device != buffers[one.dst].device || buffers[one.b].device != buffers[one.dst].device)
          return false;
        if (!filled[one.a] || !filled[one.b]) return false;
        if (!filled[one.dst] && one.words != buffers[one.dst].words) return false;
        filled[one.dst] = true;
        break;
      case Instruction::copy:
        if (!fits(buffers, one.dst, one.dst_first, one.words) || !fits(buffers, one.a, one.a_first, one.words))
          return false;
        if (!filled[one.a] || (!filled[one.dst] && one.words != buffers[one.dst].words)) return false;
        filled[one.dst] = true;
        break;
      case Instruction::access:
        if (!fits(buffers, one.dst, one.dst_first, one.words)) return false;
        if (!filled[one.dst] && (one.how != kWrites || one.words != buffers[one.dst].words)) return false;
        filled[one.dst] = true;
        break;
      case Instruction::wait:
      case Instruction::barrier: break;
      case Instruction::drop:
        if (buffers.erase(one.dst) == 0) return false;
        break;
      case Instruction::read:
        if (!buffers.contains(one.dst) || !filled[one.dst]) return false;
        break;
    }
  }
  return std::all_of(buffers.begin(), buffers.end(), [&](const auto& entry) { return filled[entry.first]; });
}

Outcome replay(const Program& program, int failing) {
  Outcome outcome;
  std::map<int, BufferState> buffers;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& one = program.instructions[i];
    switch (one.kind) {
      case Instruction::make: buffers[one.dst] = {one.device, seeded_words(one.tag, one.words), false}; break;
      case Instruction::mix: replay_mix(buffers, one); break;
      case Instruction::copy: replay_copy(buffers, one); break;
      case Instruction::access: {
        const BufferState seen = replay_access(buffers, one);
        if ((one.how & kWrites) == 0) outcome[static_cast<int>(i)] = seen;
        break;
      }
      case Instruction::wait:
      case Instruction::barrier: break;
      case Instruction::drop: buffers.erase(one.dst); break;
      case Instruction::read: outcome[static_cast<int>(i)] = buffers[one.dst]; break;
    }
    if (static_cast<int>(i) != failing) continue;
    const bool sees = one.kind == Instruction::read || (one.kind == Instruction::access && (one.how & kWrites) == 0);
    const bool orders = one.kind == Instruction::wait || one.kind == Instruction::barrier;
    if (sees) outcome[failing].poisoned = true;
    if (!sees && !orders && one.kind != Instruction::drop) buffers[one.dst].poisoned = true;
  }
  for (const auto& [number, state] : buffers) outcome[-1 - number] = state;
  if (failing < 0 && outcome.contains(failing)) outcome[failing].poisoned = true;
  return outcome;
}

}  // namespace tenon::testing
