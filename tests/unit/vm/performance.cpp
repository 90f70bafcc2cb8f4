#include "tests/unit/vm/performance.h"

#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

namespace tenon::testing {
namespace {

// One thread of a program.
class Performer {
 public:
  Performer(const Program& program, Machine& machine, const Judge& judge, const std::map<int, StorageHandle>* shared)
      : program_(program), machine_(machine), judge_(judge), shared_(shared) {}

  void run(int thread, size_t from, size_t to) {
    for (size_t i = from; i < to && result.stopped.ok(); ++i) {
      if (program_.instructions[i].thread == thread) result.stopped = step(i);
    }
  }

  BufferState state_of(Storage* storage) {
    BufferState state;
    const Result<std::vector<uint32_t>> words = machine_.download(storage);
    state.poisoned = !words.ok();
    if (words.ok()) state.words = words.value();
    if (!words.ok()) (void)judge_(Instruction::read, words.status());
    return state;
  }

  // The words that the functions of reading accesses saw. All work has ended.
  void collect_seen() {
    for (const auto& [index, seen] : seen_) result.outcome[index] = *seen;
    seen_.clear();
  }

  Performance result;

 private:
  Storage* storage(int buffer) const {
    const auto own = result.buffers.find(buffer);
    if (own != result.buffers.end()) return own->second.get();
    const auto shared = shared_->find(buffer);
    return shared == shared_->end() ? nullptr : shared->second.get();
  }

  Status step(size_t index) {
    const Instruction& one = program_.instructions[index];
    if (one.kind == Instruction::make) return make(one);
    if (one.kind == Instruction::wait || one.kind == Instruction::barrier) return judged(one.kind, order(one));
    const bool filled = unfilled_.erase(one.dst) == 0;
    if (const auto own = result.buffers.find(one.dst); filled && own != result.buffers.end()) {
      if (Status stirred = machine_.stir(own->second, index); !stirred.ok()) return judged(one.kind, stirred);
    }
    Storage* dst = storage(one.dst);
    Storage* a = one.kind == Instruction::mix || one.kind == Instruction::copy ? storage(one.a) : dst;
    Storage* b = one.kind == Instruction::mix ? storage(one.b) : dst;
    const bool absent = dst == nullptr || a == nullptr || b == nullptr;
    if (absent || one.kind == Instruction::drop) {
      result.buffers.erase(one.dst);
      return Status();
    }
    if (one.kind == Instruction::access) return judged(one.kind, access(index, dst));
    if (one.kind == Instruction::read) result.outcome[static_cast<int>(index)] = state_of(dst);
    if (one.kind == Instruction::mix) return judged(one.kind, mix(one, dst, a, b));
    if (one.kind == Instruction::copy) return judged(one.kind, copy(one, dst, a));
    return Status();
  }

  Status make(const Instruction& one) {
    Result<StorageHandle> made = machine_.allocate(one.device, static_cast<uint64_t>(one.words));
    if (!made.ok()) return judge_(one.kind, made.status());
    Storage* storage = made.value().get();
    result.reused_pending += storage->reads.empty() ? 0 : 1;
    result.buffers[one.dst] = std::move(made).value();
    if (one.tag < 0) unfilled_.insert(one.dst);
    if (one.tag < 0) return Status();
    return judged(one.kind, machine_.upload(storage, 0, seeded_words(one.tag, one.words)));
  }

  Status mix(const Instruction& one, Storage* dst, Storage* a, Storage* b) {
    const int device = dst->device == machine_.device(0) ? 0 : 1;
    const bool whole = covers(one, dst) && one.a != one.dst && one.b != one.dst;
    return machine_.mix(device, one.stream, view(dst, one.dst_first), view(a, one.a_first), view(b, one.b_first),
                        one.words, one.tag, one.how, whole);
  }

  Status order(const Instruction& one) {
    DeviceState* device = machine_.device(one.device);
    if (one.kind == Instruction::barrier) return vm::barrier(device);
    return vm::wait_stream(device, static_cast<uint16_t>(one.stream), machine_.device(one.other_device),
                           static_cast<uint16_t>(one.other_stream));
  }

  Status access(size_t index, Storage* dst) {
    const Instruction& one = program_.instructions[index];
    const auto seen = std::make_shared<BufferState>();
    seen->poisoned = true;
    const bool writes = (one.how & kWrites) != 0;
    if (!writes) seen_[static_cast<int>(index)] = seen;
    return machine_.access(view(dst, one.dst_first), one.words, (one.how & kReads) != 0, writes,
                           [&one, seen, writes](uint32_t* words) {
                             if ((one.how & kThrows) != 0) throw std::runtime_error("mix: asked for a refusal.");
                             if (writes) return change_words(one, words);
                             seen->words.assign(words, words + one.words);
                             seen->poisoned = false;
                           });
  }

  Status copy(const Instruction& one, Storage* dst, Storage* src) {
    vm::set_current_stream(dst->device, static_cast<uint16_t>(one.stream));
    return machine_.copy(view(dst, one.dst_first), view(src, one.a_first), one.words, covers(one, dst));
  }

  Status judged(Instruction::Kind kind, const Status& status) { return status.ok() ? status : judge_(kind, status); }

  static bool covers(const Instruction& one, const Storage* dst) {
    return static_cast<uint64_t>(one.words) * 4 == dst->bytes;
  }
  static Machine::View view(Storage* storage, int64_t first) { return {storage, static_cast<uint64_t>(first)}; }

  const Program& program_;
  Machine& machine_;
  const Judge& judge_;
  const std::map<int, StorageHandle>* shared_;
  std::map<int, std::shared_ptr<BufferState>> seen_;  // indexed by instruction
  std::set<int> unfilled_;                            // buffers that the next instruction overwrites
};

// The index at which the instructions of the other threads begin. Earlier instructions are shared.
size_t end_of_prologue(const Program& program) {
  size_t end = 0;
  while (end < program.instructions.size() && program.instructions[end].kind == Instruction::make &&
         program.instructions[end].dst < 4 && program.instructions[end].thread == 0) {
    ++end;
  }
  return end;
}

}  // namespace

Performance perform(const Program& program, Machine& machine, const Judge& judge) {
  const std::map<int, StorageHandle> none;
  const size_t prologue = end_of_prologue(program);
  const size_t count = program.instructions.size();
  Performer first(program, machine, judge, &none);
  first.run(0, 0, prologue);
  Performance& all = first.result;

  std::map<int, Performer> performers;
  for (const Instruction& one : program.instructions) {
    performers.try_emplace(one.thread, program, machine, judge, &all.buffers);
  }
  if (all.stopped.ok()) {
    const auto body = [&](int thread) { performers.at(thread).run(thread, prologue, count); };
    std::vector<std::thread> others;
    for (const auto& entry : performers) {
      if (entry.first != 0) others.emplace_back(body, entry.first);
    }
    if (performers.contains(0)) body(0);
    for (std::thread& other : others) other.join();
  }

  const Status drained = vm::drain_all();
  if (all.stopped.ok()) all.stopped = drained;
  for (auto& [thread, performer] : performers) {
    performer.collect_seen();
    Performance& one = performer.result;
    all.outcome.merge(one.outcome);
    all.reused_pending += one.reused_pending;
    if (all.stopped.ok()) all.stopped = one.stopped;
    all.buffers.merge(one.buffers);
  }
  if (all.stopped.ok()) {
    for (const auto& [buffer, handle] : all.buffers) all.outcome[-1 - buffer] = first.state_of(handle.get());
  }
  return std::move(all);
}

}  // namespace tenon::testing
