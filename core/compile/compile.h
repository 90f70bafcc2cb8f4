// compile: turns a function of tensors into one that is recorded at its first call and then runs as one program.
//
//   auto step = tenon::compile([&](const Tensor& x, const Tensor& y) {
//     const Tensor loss = tenon::mean(tenon::square(tenon::matmul(x, w) - y));
//     loss.backward();
//     tenon::NoGrad scope;
//     w -= 0.1 * w.grad();
//     w.set_grad({});
//     return loss;
//   });
//   for (...) tenon::Tensor loss = step(x, y);
//
// A recording serves calls of the same kind. Calls are of the same kind if these are equal: dtypes, ranks and devices
// of the arguments, which of them share memory and want gradients, grad and inference mode, hooks on leaves, precision,
// current device and streams. A recording serves all sizes, unless the function reads a size as a number with dims();
// core/ops/sizes.h describes how to avoid that. Up to eight kinds of calls are recorded. Further kinds run eagerly, and
// the log says so once (topic compile).
//
// Tensors from outside are state: each run reads their present elements, and ops inside may write them in place. A run
// writes each of them at its end, which counts as one write. Results own their elements, except a result that is the
// handle of an argument or of a tensor from outside: it is that tensor. If results want gradients, they carry the
// gradient of the whole function. A backward with create_graph records the function together with its gradient as
// another function, so gradients of every order exist; the state that it reads must not have changed since the call.
//
// A recording cannot see a C++ variable that changes, a handle that is assigned to, or an element that the host reads.
// Later calls would silently be wrong. So the second call is recorded too, and an error says where the two recordings
// differ. A variable that changes only later is not noticed: make it a tensor.
//
// Each run draws new random numbers, the same as an eager run would draw.
//
// For global tensors (core/global/global.h) a recording serves one layout and one size. It refuses reads of elements,
// control flow, and views from outside whose elements had to move.
//
// Threads: any may call. The function itself runs on one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/background/compiling.h"
#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

struct CompileOptions {
  std::string name = "a compiled function";  // used in error messages
  bool exact = false;  // results have the bits of the eager run; otherwise passes may change them within their bounds
  bool whole = true;   // false: where the host reads elements, the program ends and the function continues eagerly
  bool check = true;   // records the second call too and compares
  // Fuses ops that one kernel can compute. Default: the setting TENON_FUSE. Ignored if `exact` is true.
  std::optional<bool> fuse = {};
  std::optional<Compiling> compile = {};  // selects if runs wait for kernels; default: TENON_COMPILE
  // True: cheap values are computed again if a later backward then needs fewer saved values, or if a whole step then
  // needs less memory. False: values are only computed again to meet `memory_limit`.
  bool recompute = true;
  // The most bytes that the values of a run may take at any time, forward and backward together; 0: no limit. A value
  // counts from its computation to its last reader. Arguments, tensors from outside and workspaces of kernels do not
  // count. Values are computed again until the rest fits; backward may then read arguments that it would not read
  // otherwise. The limit holds for the sizes of the recorded call. For a whole step it counts the values between its
  // kernels. With a later backward it counts the values as recorded; a run may take more where nodes are fused, and
  // saved values live until backward ends.
  uint64_t memory_limit = 0;
  // tensors from outside that are constants: they are folded and packed, and a later write to one is an error
  TensorList frozen = {};
};

struct CompileStats {
  size_t recordings = 0;   // recorded kinds of calls
  size_t executables = 0;  // prepared programs, over all sizes
  size_t runs = 0;         // calls that ran a program
  size_t eager = 0;        // calls that ran the function eagerly, in whole or in part
};

// Bytes that the values of a recording take at the sizes of its first call. The fields `_before` are without
// recomputation.
struct CompileMemory {
  uint64_t saved = 0, saved_before = 0;  // values that forward keeps for a later backward
  uint64_t live = 0, live_before = 0;    // the most bytes that live at once, counted like memory_limit
  // bytes that a run allocates for values at its start; of the newest program, forward or backward, whichever is larger
  uint64_t planned = 0;
  std::string again = {};  // values that are computed again: "3 gelu, layer_norm"
};

namespace compilation {
class Callable;
}

class TENON_API CompiledList {
 public:
  CompiledList(std::function<TensorList(const TensorList&)> function, CompileOptions options);

  // Errors: those of the function; invalid_argument: an undefined argument, something that a recording cannot see, a
  // second recording that differs, a write to a frozen tensor, or a memory limit that cannot be met.
  TensorList operator()(const TensorList& inputs) const;
  CompileStats stats() const;
  std::vector<CompileMemory> memory() const;  // by recording

 private:
  std::shared_ptr<compilation::Callable> callable_;  // copies share their recordings
};

// The result of compile(). It takes a list of tensors or single tensors, and returns what the function returns.
template <class Result>
class Compiled {
 public:
  explicit Compiled(CompiledList list) : list_(std::move(list)) {}

  Result operator()(const TensorList& inputs) const {
    TensorList results = list_(inputs);
    if constexpr (std::is_same_v<Result, Tensor>) return std::move(results[0]);
    if constexpr (std::is_same_v<Result, TensorList>) return results;
  }
  template <class... Inputs>
  requires(sizeof...(Inputs) > 0 && (std::is_convertible_v<const Inputs&, Tensor> && ...)) Result operator()(
      const Inputs&... inputs) const {
    return (*this)(TensorList{inputs...});
  }
  CompileStats stats() const { return list_.stats(); }
  std::vector<CompileMemory> memory() const { return list_.memory(); }

 private:
  CompiledList list_;
};

namespace compilation {

constexpr size_t kMostArguments = 8;

template <size_t>
using TensorAt = const Tensor&;

// Calls `function` with as many tensors as it takes.
template <class F, size_t... I>
decltype(auto) call_with(F& function, const TensorList& inputs, std::index_sequence<I...>) {
  return function(inputs[I]...);
}

template <class F, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, TensorAt<I>...>;
}

template <class F, size_t N = 0>
constexpr size_t arity() {
  if constexpr (std::is_invocable_v<F&, const TensorList&> || N > kMostArguments)
    return kMostArguments + 1;
  else if constexpr (takes<F>(std::make_index_sequence<N>()))
    return N;
  else
    return arity<F, N + 1>();
}

// Errors: invalid_argument unless `inputs` has `count` tensors.
TENON_API void check_count(const TensorList& inputs, size_t count);

template <class F>
decltype(auto) apply(F& function, const TensorList& inputs) {
  if constexpr (std::is_invocable_v<F&, const TensorList&>) {
    return function(inputs);
  } else {
    constexpr size_t count = arity<F>();
    static_assert(count <= kMostArguments, "compile: the function takes a TensorList or up to eight Tensors");
    check_count(inputs, count);
    return call_with(function, inputs, std::make_index_sequence<count>());
  }
}

template <class F>
using ResultOf =
    std::remove_cvref_t<decltype(compilation::apply(std::declval<F&>(), std::declval<const TensorList&>()))>;

}  // namespace compilation

// `function` takes a TensorList or up to eight Tensors, and returns a Tensor, a TensorList or nothing. The result keeps
// a copy of it.
template <class F>
Compiled<compilation::ResultOf<F>> compile(F function, CompileOptions options = {}) {
  using Result = compilation::ResultOf<F>;
  static_assert(std::is_same_v<Result, Tensor> || std::is_same_v<Result, TensorList> || std::is_void_v<Result>,
                "compile: the function gives a Tensor, a TensorList or nothing");
  auto kept = std::make_shared<F>(std::move(function));
  auto list = [kept](const TensorList& inputs) -> TensorList {
    if constexpr (std::is_void_v<Result>) {
      compilation::apply(*kept, inputs);
      return {};
    } else if constexpr (std::is_same_v<Result, Tensor>) {
      return {compilation::apply(*kept, inputs)};
    } else {
      return compilation::apply(*kept, inputs);
    }
  };
  return Compiled<Result>(CompiledList(std::move(list), std::move(options)));
}

}  // namespace tenon
