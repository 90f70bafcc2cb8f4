// Random programs on two asynchronous devices, of which one call goes wrong. See README.md.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "core/memory/allocator.h"
#include "core/tensor/device.h"
#include "core/tensor/device_state.h"
#include "core/tensor/error.h"
#include "core/tensor/storage.h"
#include "core/vm/vm.h"
#include "tests/e2e/faults/plan.h"
#include "tests/fakes/async/control.h"
#include "tests/unit/vm/program.h"

namespace tenon::testing {
namespace {

constexpr int kDevices = 2;
constexpr int kStreams = 3;
constexpr int kTries = 4;

struct DropStorage {
  void operator()(Storage* storage) const { storage->release_tensor(); }
};
using Handle = std::unique_ptr<Storage, DropStorage>;

// The first thing that was not as it must be.
class Verdict {
 public:
  void fail(const std::string& what) {
    std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = what;
  }
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }
  // An error must name the device, and what was being done there.
  void check(const Status& status) {
    const std::string& text = status.message();
    const bool device = text.find("faulty:") != std::string::npos;
    bool op = false;
    for (const char* word : {"mix", "copy", "upload", "download", "allocating", "creating", "mapping", "waiting",
                             "taking", "recording", "asking", "flushing", "bytes left"}) {
      op = op || text.find(word) != std::string::npos;
    }
    if (!device || !op) fail("an error that names no op or no device: " + text);
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// The two devices, opened anew when asked.
class Machine {
 public:
  Status open() {
    for (int i = 0; i < kDevices; ++i) {
      TENON_ASSIGN_OR_RETURN(devices_[i], device_state("faulty:" + std::to_string(i)));
      while (streams_[i] < kStreams) {
        TENON_ASSIGN_OR_RETURN(const uint16_t made, vm::create_stream(devices_[i]));
        streams_[i] = made + 1;
      }
    }
    return Status();
  }
  // As many tries as it takes one fault to pass.
  bool open_again(Verdict& verdict) {
    for (int i = 0; i < kTries; ++i) {
      const Status status = open();
      if (status.ok()) return true;
      verdict.check(status);
      if (status.code() == Code::device_lost) close(verdict);
    }
    return false;
  }
  void close(Verdict& verdict) {
    {
      std::lock_guard lock(mutex_);
      for (const auto& [key, kernel] : kernels_) kernel->release();
      kernels_.clear();
    }
    try {
      tenon::retire("faulty");
    } catch (const Error& error) {
      if (error.code() != Code::not_found) verdict.fail(std::string("retiring: ") + error.what());
    }
    for (int i = 0; i < kDevices; ++i) {
      devices_[i] = nullptr;
      streams_[i] = 0;
    }
    if (const uint64_t left = fakes::async_control().allocated_bytes; left != 0) {
      verdict.fail(std::to_string(left) + " bytes of device memory are left after retiring");
    }
  }

  DeviceState* device(int index) const { return devices_[index]; }

  Result<Kernel*> mix(int device, int64_t words) {
    std::lock_guard lock(mutex_);
    Kernel*& kernel = kernels_[{device, words}];
    if (kernel != nullptr) return kernel;
    const ep_primitive_desc desc = mix_desc(words);
    ep_primitive_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
    ep_primitive* made = nullptr;
    ep_error* error = nullptr;
    DeviceState* state = devices_[device];
    const ep_status code = state->ops.primitive_create(state->handle, &desc, &made, &info, &error);
    const Status status = loader::take_error(code, error, "creating mix on " + state->opened->spelling);
    if (!status.ok()) {
      kernels_.erase({device, words});
      return status;
    }
    kernel = new Kernel;
    kernel->device = state;
    kernel->primitive = made;
    return kernel;
  }

 private:
  static ep_primitive_desc mix_desc(int64_t words) {
    ep_primitive_desc desc{};
    desc.kind = fakes::kMix;
    desc.operand_count = 3;
    for (int i = 0; i < 3; ++i) {
      desc.operands[i].role = i == 0 ? EP_ROLE_DST : i == 1 ? EP_ROLE_SRC : EP_ROLE_SRC_B;
      desc.operands[i].dtype = EP_DTYPE_i32;
      desc.operands[i].rank = 1;
      desc.operands[i].dims[0] = words;
      desc.operands[i].strides[0] = 1;
    }
    return desc;
  }

  DeviceState* devices_[kDevices] = {};
  int streams_[kDevices] = {};
  std::mutex mutex_;
  std::map<std::pair<int, int64_t>, Kernel*> kernels_;
};

// Tries again what failed before anything was submitted. `last`: the answer of the last try.
template <class Try>
auto persist(Verdict& verdict, Try attempt) {
  auto result = attempt();
  for (int i = 1; i < kTries && !result.ok(); ++i) {
    verdict.check(result.status());
    result = attempt();
  }
  return result;
}

// What one thread of a program does and finds.
class Runner {
 public:
  Runner(Machine& machine, const Program& program, const std::map<int, Handle>* shared, Verdict& verdict)
      : machine_(machine), program_(program), shared_(shared), verdict_(verdict) {}

  void run(int thread, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      if (program_.instructions[i].thread == thread) step(i);
    }
  }

  BufferState state_of(Storage* storage) {
    BufferState state;
    state.words.resize(storage->bytes / 4);
    const Status status = vm::download(state.words.data(), {storage, 0, false, false}, storage->bytes);
    state.poisoned = !status.ok();
    if (!status.ok() && !is_asked_for(status)) verdict_.check(status);
    return state;
  }

  std::map<int, Handle> buffers;
  Outcome outcome;

 private:
  // What the program itself asks for says so, and which op.
  static bool is_asked_for(const Status& status) { return status.message().find("mix: ") != std::string::npos; }

  Storage* storage(int buffer) const {
    const auto own = buffers.find(buffer);
    if (own != buffers.end()) return own->second.get();
    const auto shared = shared_->find(buffer);
    return shared == shared_->end() ? nullptr : shared->second.get();
  }

  void step(size_t index) {
    const Instruction& one = program_.instructions[index];
    if (one.kind == Instruction::make) return make(one);
    Storage* dst = storage(one.dst);
    Storage* a = one.kind == Instruction::mix || one.kind == Instruction::copy ? storage(one.a) : dst;
    Storage* b = one.kind == Instruction::mix ? storage(one.b) : dst;
    if (dst == nullptr || a == nullptr || b == nullptr) {  // it could not be made: its device is lost
      buffers.erase(one.dst);
      return;
    }
    if (one.kind == Instruction::drop) buffers.erase(one.dst);
    if (one.kind == Instruction::read) outcome[static_cast<int>(index)] = state_of(dst);
    if (one.kind == Instruction::mix) mix(one, dst, a, b);
    if (one.kind == Instruction::copy) copy(one, dst, a);
  }

  void make(const Instruction& one) {
    const auto bytes = static_cast<uint64_t>(one.words) * 4;
    const auto made = persist(verdict_, [&]() -> Result<Storage*> {
      std::vector<vm::Ticket> waits;
      return Storage::make(machine_.device(one.device), bytes, &waits);
    });
    if (!made.ok()) return;
    buffers[one.dst] = Handle(made.value());
    if (one.tag < 0) return;
    const std::vector<uint32_t> words = seeded_words(one.tag, one.words);
    note(vm::upload({made.value(), 0, true, true}, words.data(), bytes, {}));
  }

  void mix(const Instruction& one, Storage* dst, Storage* a, Storage* b) {
    const int device = dst->device == machine_.device(0) ? 0 : 1;
    const auto kernel = persist(verdict_, [&] { return machine_.mix(device, one.words); });
    if (!kernel.ok()) return;
    const bool whole = static_cast<uint64_t>(one.words) * 4 == dst->bytes && one.a != one.dst && one.b != one.dst;
    const vm::Operand operands[] = {{dst, place(one.dst_first), true, whole},
                                    {a, place(one.a_first), false, false},
                                    {b, place(one.b_first), false, false}};
    ep_scalar scalars[2] = {{EP_DTYPE_i64, 0, {}}, {EP_DTYPE_i64, 0, {}}};
    scalars[0].value.i64 = one.tag;
    scalars[1].value.i64 = one.how;
    vm::OpLaunch launch;
    launch.kernel = kernel.value();
    launch.operands = operands;
    launch.scalars = scalars;
    launch.scalar_count = 2;
    launch.op = "mix";
    launch.stream = static_cast<uint16_t>(one.stream);
    note(vm::launch(launch, {}));
  }

  void copy(const Instruction& one, Storage* dst, Storage* src) {
    const uint64_t bytes = static_cast<uint64_t>(one.words) * 4;
    vm::set_current_stream(dst->device, static_cast<uint16_t>(one.stream));
    note(vm::copy({dst, place(one.dst_first), true, bytes == dst->bytes}, {src, place(one.a_first), false, false},
                  bytes, {}));
  }

  void note(const Status& status) {
    if (!status.ok() && !is_asked_for(status)) verdict_.check(status);
  }
  static uint64_t place(int64_t word) { return static_cast<uint64_t>(word) * 4; }

  Machine& machine_;
  const Program& program_;
  const std::map<int, Handle>* shared_;
  Verdict& verdict_;
};

size_t end_of_prologue(const Program& program) {
  size_t end = 0;
  while (end < program.instructions.size() && program.instructions[end].kind == Instruction::make &&
         program.instructions[end].dst < 4 && program.instructions[end].thread == 0) {
    ++end;
  }
  return end;
}

Outcome run(Machine& machine, const Program& program, Verdict& verdict) {
  const std::map<int, Handle> none;
  const size_t prologue = end_of_prologue(program), count = program.instructions.size();
  Runner shared(machine, program, &none, verdict);
  shared.run(0, 0, prologue);
  std::set<int> threads;
  for (const Instruction& one : program.instructions) threads.insert(one.thread);
  std::map<int, Runner> runners;
  for (int thread : threads) runners.try_emplace(thread, machine, program, &shared.buffers, verdict);
  std::vector<std::thread> others;
  for (int thread : threads) {
    if (thread != 0) others.emplace_back([&, thread] { runners.at(thread).run(thread, prologue, count); });
  }
  if (threads.contains(0)) runners.at(0).run(0, prologue, count);
  for (std::thread& other : others) other.join();
  Outcome outcome;
  for (auto& [thread, runner] : runners) {
    outcome.merge(runner.outcome);
    for (const auto& [buffer, handle] : runner.buffers) outcome[-1 - buffer] = runner.state_of(handle.get());
  }
  for (const auto& [buffer, handle] : shared.buffers) outcome[-1 - buffer] = shared.state_of(handle.get());
  return outcome;
}

bool equal(const Outcome& a, const Outcome& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && x.second == y.second;
         });
}

// Empty if `outcome` is what the program gives with at most one instruction failing.
std::string explain(const Program& program, const Outcome& outcome) {
  if (equal(outcome, replay(program))) return {};
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (equal(outcome, replay(program, static_cast<int>(i)))) return {};
  }
  for (const auto& [key, state] : outcome) {
    if (key < 0 && equal(outcome, replay(program, key))) return {};
  }
  return "no one instruction that fails explains the outcome";
}

// The buffers that something of `lost` may have reached, at each read and at the end; nothing else may be wrong.
std::string explain_lost(const Program& program, const Outcome& outcome, int lost) {
  const Outcome wanted = replay(program);
  std::map<int, bool> tainted;  // by buffer
  std::map<int, int> device;
  std::set<int> doubtful;  // keys of the outcome
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& one = program.instructions[i];
    if (one.kind == Instruction::make) {
      device[one.dst] = one.device;
      tainted[one.dst] = one.device == lost;
    }
    if (one.kind == Instruction::mix) tainted[one.dst] = tainted[one.dst] || tainted[one.a] || tainted[one.b];
    if (one.kind == Instruction::copy) tainted[one.dst] = tainted[one.dst] || tainted[one.a];
    if (one.kind == Instruction::read && tainted[one.dst]) doubtful.insert(static_cast<int>(i));
  }
  for (const auto& [buffer, taint] : tainted) {
    if (taint) doubtful.insert(-1 - buffer);
  }
  for (const auto& [key, state] : wanted) {
    const auto found = outcome.find(key);
    const bool there = found != outcome.end() && !found->second.poisoned;
    if (there && (state.poisoned || found->second.words != state.words))
      return "a wrong number at " + std::to_string(key);
    if (!there && !state.poisoned && !doubtful.contains(key))
      return "an error on the healthy device at " + std::to_string(key);
  }
  return {};
}

class Campaign {
 public:
  explicit Campaign(uint64_t seed)
      : plan_({Slot::memory_allocate, Slot::stream_create, Slot::stream_synchronize, Slot::stream_flush,
               Slot::stream_take_fault, Slot::copy, Slot::upload, Slot::download, Slot::event_create,
               Slot::event_record, Slot::event_query, Slot::event_host_wait, Slot::stream_wait_event,
               Slot::primitive_create, Slot::primitive_launch},
              seed),
        seed_(seed) {}

  Plan& plan() { return plan_; }
  fakes::Faulty& faulty() { return fakes::faulty(0); }

  // One program with one fault, then, now and then, one without.
  std::string round(uint64_t number) {
    Verdict verdict;
    fakes::async_control().delay_us = number % 4 == 0 ? 20 : 0;
    fakes::async_control().lazy = number % 5 == 0;
    const Program program = draw_program(seed_ * 1000003 + number);
    const Strike strike = plan_.next();
    prepare(strike, verdict);
    // A stream is synchronised where an event cannot be had.
    const bool led = strike.slot == Slot::stream_synchronize;
    faulty().arm(strike.slot, strike.trouble, led ? 0 : strike.nth,
                 led ? std::optional(Slot::event_record) : std::nullopt);
    const bool open = machine_.open_again(verdict);
    if (!open) verdict.fail("the devices cannot be opened again");
    const Outcome outcome = open ? run(machine_, program, verdict) : Outcome();
    const int lost = open ? settle(verdict) : -1;
    plan_.done(strike, faulty().disarm(), faulty().calls_since());
    if (verdict.text().empty()) {
      verdict.fail(lost >= 0 ? explain_lost(program, outcome, lost) : explain(program, outcome));
    }
    if (verdict.text().empty()) check_rest(verdict);
    if (lost >= 0) machine_.close(verdict);
    if (verdict.text().empty() && number % 16 == 0) go_on(number, verdict);
    if (verdict.text().empty()) return {};
    return "round " + std::to_string(number) + ": " + std::string(loader::slot_name(strike.slot)) + " call " +
           std::to_string(strike.nth) + ", " + std::string(fakes::trouble_names[static_cast<size_t>(strike.trouble)]) +
           ": " + verdict.text() + "\n" + print(program);
  }

  // Nothing may be left of the devices.
  std::string finish() {
    Verdict verdict;
    machine_.close(verdict);
    return verdict.text();
  }

 private:
  // Brings about that the function will be called at all.
  void prepare(const Strike& strike, Verdict& verdict) {
    const bool anew = strike.slot == Slot::stream_create || strike.slot == Slot::event_create ||
                      strike.slot == Slot::primitive_create || strike.slot == Slot::memory_allocate;
    if (anew) machine_.close(verdict);
    if (strike.slot == Slot::stream_flush) fakes::async_control().lazy = true;
  }

  // Waits for both devices; the one that is lost, or -1.
  int settle(Verdict& verdict) {
    int lost = -1;
    for (int i = 0; i < kDevices; ++i) {
      for (Status status = vm::synchronize(machine_.device(i)); !status.ok();
           status = vm::synchronize(machine_.device(i))) {
        verdict.check(status);
      }
      std::vector<vm::Ticket> waits;
      const Result<Storage*> made = Storage::make(machine_.device(i), 4, &waits);
      if (!made.ok()) {
        lost = i;
        continue;
      }
      const Handle handle(made.value());
      uint32_t word = 7;
      const bool works = vm::upload({handle.get(), 0, true, true}, &word, 4, {}).ok() &&
                         vm::download(&word, {handle.get(), 0, false, false}, 4).ok();
      if (!works) lost = i;
    }
    return lost;
  }

  void check_rest(Verdict& verdict) {
    for (int i = 0; i < kDevices; ++i) {
      const uint64_t live = machine_.device(i)->allocator->stats().live;
      if (live != 0) verdict.fail(std::to_string(live) + " bytes leaked");
    }
    if (const std::string wrong = fakes::async_control().violation(); !wrong.empty()) verdict.fail(wrong);
  }

  void go_on(uint64_t number, Verdict& verdict) {
    if (!machine_.open_again(verdict)) return verdict.fail("the devices cannot be opened after the fault");
    const Program program = draw_program(~(seed_ * 1000003 + number));
    const Outcome outcome = run(machine_, program, verdict);
    settle(verdict);
    if (!equal(outcome, replay(program))) verdict.fail("the next program, without a fault, is not as its replay");
  }

  Plan plan_;
  Machine machine_;
  uint64_t seed_;
};

int campaign(uint64_t rounds, uint64_t seed, const char* slot, const char* trouble, const std::string& tally) {
  fakes::async_control().shadow = false;
  fakes::faulty(0).wrap(fakes::async_query);
  loader::register_provider("faulty", fakes::faulty_query(0));
  Campaign one(seed);
  one.plan().only(slot, trouble);
  one.plan().load(tally);
  for (uint64_t number = 0; number < rounds; ++number) {
    const std::string failure = one.round(number);
    if (failure.empty()) continue;
    std::printf("%s\n", failure.c_str());
    return 1;
  }
  if (const std::string left = one.finish(); !left.empty()) {
    std::printf("%s\n", left.c_str());
    return 1;
  }
  one.plan().report("random programs on wrapped asynchronous devices", one.faulty(), tally);
  return 0;
}

}  // namespace
}  // namespace tenon::testing

int main(int argc, char** argv) {
  uint64_t rounds = 2000, seed = 1;
  const char *slot = "", *trouble = "", *tally = "";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--slot") == 0) slot = argv[i + 1];
    if (std::strcmp(argv[i], "--trouble") == 0) trouble = argv[i + 1];
    if (std::strcmp(argv[i], "--tally") == 0) tally = argv[i + 1];
  }
  return tenon::testing::campaign(rounds, seed, slot, trouble, tally);
}
