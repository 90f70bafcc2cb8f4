// Fiber: a stack on which a thread of the process can continue, and which it can leave at any call.
#pragma once

#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tenon::fakes::cuda {

class Fiber {
 public:
  // Makes the next switch to this fiber call entry(), which never returns.
  void prepare(void (*entry)());
  // Leaves this fiber, which is running, and continues `to`. Returns when another switch comes back.
  void switch_to(Fiber* to);

 private:
  std::unique_ptr<char[]> stack_;  // empty: the stack of the process's thread
#if defined(__x86_64__)
  void* place_ = nullptr;  // stack pointer, where the registers are saved
#else
  ucontext_t context_;
#endif
};

}  // namespace tenon::fakes::cuda
