// CallSite: the op and the program part that the calling thread works for. Each submitted instruction carries it, so
// that a later error names what the caller wrote. Internal to the library.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon {

// An op and its arguments as a caller writes them. All texts are static.
struct OpName {
  std::string_view op;
  std::span<const std::string_view> arguments = {};  // one per input of the op's record; empty: unknown
};

struct CallSite {
  const OpName* called = nullptr;      // the op that was called, if this op works for it
  const std::string* label = nullptr;  // the part of the program: "node 14 (/encoder/MatMul)"
};

inline thread_local constinit CallSite call_site{};

// While this object lives, the calling thread works for the op `name`, unless it already works for another op.
class CalledScope {
 public:
  explicit CalledScope(const OpName& name) : previous_(call_site.called) {
    if (previous_ == nullptr || previous_->op == name.op) call_site.called = &name;
  }
  ~CalledScope() { call_site.called = previous_; }
  CalledScope(const CalledScope&) = delete;
  CalledScope& operator=(const CalledScope&) = delete;

 private:
  const OpName* previous_;
};

}  // namespace tenon
