#include "tests/fakes/cuda/fiber.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

namespace tenon::fakes::cuda {
namespace {

constexpr size_t stack_bytes = 128 * 1024;

}  // namespace

#if defined(__x86_64__)

// Saves the registers that a function must preserve (System V ABI, AMD64 supplement, 3.2.1), and continues with those
// at `to`. swapcontext does the same with a system call, which would take most of the time of a test.
extern "C" void tenon_fake_switch(void** from, void* to);
asm(R"(
  .text
  .hidden tenon_fake_switch
  .globl tenon_fake_switch
  .type tenon_fake_switch, @function
tenon_fake_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size tenon_fake_switch, . - tenon_fake_switch
)");

void Fiber::prepare(void (*entry)()) {
  if (stack_ == nullptr) stack_.reset(new char[stack_bytes]);
  // Six registers, the return address, and the address to which entry() would return: with these the stack is aligned
  // as after a call.
  constexpr size_t words = 8;
  const auto end = reinterpret_cast<uintptr_t>(stack_.get() + stack_bytes) & ~uintptr_t{15};
  uint64_t frame[words] = {};
  frame[words - 2] = reinterpret_cast<uint64_t>(entry);
  place_ = reinterpret_cast<void*>(end - sizeof frame);
  std::memcpy(place_, frame, sizeof frame);
}

void Fiber::switch_to(Fiber* to) { tenon_fake_switch(&place_, to->place_); }

#else

namespace {

// Uses the C library's function instead of the wrapper of the address sanitizer, which prints that it does not support
// the call.
template <class Function>
Function from_libc(const char* name) {
  static void* library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

void Fiber::prepare(void (*entry)()) {
  if (stack_ == nullptr) stack_.reset(new char[stack_bytes]);
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = stack_bytes;
  context_.uc_link = nullptr;
  static const auto make = from_libc<decltype(&makecontext)>("makecontext");
  make(&context_, entry, 0);
}

void Fiber::switch_to(Fiber* to) {
  static const auto change = from_libc<decltype(&swapcontext)>("swapcontext");
  change(&context_, &to->context_);
}

#endif

}  // namespace tenon::fakes::cuda
