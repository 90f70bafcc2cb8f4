// compile: a function of tensors that is recorded at its first call and runs as one program from then on.
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
// A recording serves the calls that look alike: dtypes, ranks and devices of the arguments, which of them share memory
// and want gradients, grad and inference mode, whether leaves have hooks, precision, current device and streams. It
// serves every size that decided nothing: reading dims() as numbers decides (core/ops/sizes.h says how to read them
// without). Another kind of call is recorded too, up to eight; after that it runs eagerly, and one line of the log says
// so (topic compile).
//
// Tensors from outside are state: each run reads what they hold then, and ops inside may write them in place. A run
// writes them at its end, and counts as one write of each. Results own their elements; a result that is an argument
// or a tensor from outside, unchanged as a handle, is that tensor. If results want gradients, they carry the gradient
// of the whole function. A backward that creates a graph records the function again, with its gradient, as a function
// of its own, so gradients have gradients of every order; the state that it reads must be as it was before the call.
//
// What a recording cannot see would make later calls silently wrong: a C++ variable that changes, a handle that is
// assigned to, an element that the host reads. So the second call is recorded too, and an error says where it differs
// from the first. A variable that changes only later is not seen: make it a tensor.
//
// Random numbers are drawn anew by each run, those that the eager run would draw.
//
// Of global tensors (core/global/global.h) a recording serves one layout and one size. A read of elements, control flow
// and views from outside whose elements had to move are refused.
//
// Threads: any may call. The function itself runs on one at a time.
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
  std::string name = "a compiled function";  // what errors call it
  bool exact = false;  // results have the bits of the eager run; else passes may move them within their bounds
  bool whole = true;   // false: where the host reads elements the program ends, and the function goes on eagerly
  bool check = true;   // the second call is recorded and compared
  // Whether ops that one kernel can compute become one; as TENON_FUSE says, if it is not given. Exact programs have
  // none.
  std::optional<bool> fuse = {};
  std::optional<Compiling> compile = {};  // whether programs wait for their kernels; as TENON_COMPILE says
  // What costs next to no time is computed again, where a backward that comes later needs less kept for it, or a whole
  // step less memory at once. False: only a limit of memory has values computed twice.
  bool recompute = true;
  // Bytes that the values of a run may take at once, forward and backward together: each is there until its last
  // reader, and arguments, tensors from outside and what kernels need beside them do not count. 0: no limit. Values are
  // computed again until they fit. Of a whole step these are the values between its kernels. Where a backward comes
  // later they are those that were recorded: a run takes more where nodes become one kernel, and what was saved is held
  // until backward is over. It holds for the sizes of the call that is recorded. Backward may then read arguments that
  // it would not read without it.
  uint64_t memory_limit = 0;
  TensorList frozen = {};  // tensors from outside that are constants: folded and packed; writing one is an error later
};

struct CompileStats {
  size_t recordings = 0;   // kinds of calls that were recorded
  size_t executables = 0;  // programs that were prepared, of all sizes
  size_t runs = 0;         // calls that ran a program
  size_t eager = 0;        // calls that ran the function eagerly, in whole or in part
};

// What the values of a recording take, in bytes, at the sizes of its first call.
struct CompileMemory {
  uint64_t saved = 0, saved_before = 0;  // what forward keeps for a backward to come; if nothing was computed twice
  uint64_t live = 0, live_before = 0;    // what lives at once at most, as memory_limit counts it; the same
  uint64_t planned = 0;    // what a run allocates for values at its begin; the newest program, its larger half
  std::string again = {};  // what is computed twice: "3 gelu, layer_norm"
};

namespace lazy {
class Callable;
}

class TENON_API CompiledList {
 public:
  CompiledList(std::function<TensorList(const TensorList&)> function, CompileOptions options);

  // Errors: those of the function; invalid_argument (undefined arguments; what a recording cannot see, or what the
  // second call shows; a frozen tensor that was written; a limit of memory that cannot be met).
  TensorList operator()(const TensorList& inputs) const;
  CompileStats stats() const;
  std::vector<CompileMemory> memory() const;  // by recording

 private:
  std::shared_ptr<lazy::Callable> callable_;  // copies share recordings
};

// What compile() gives: called with a list of tensors or with tensors, it gives what the function gives.
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

namespace lazy {

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

// Errors: invalid_argument, if `inputs` are not `count`.
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
using ResultOf = std::remove_cvref_t<decltype(lazy::apply(std::declval<F&>(), std::declval<const TensorList&>()))>;

}  // namespace lazy

// `function` takes a TensorList or up to eight Tensors, and gives a Tensor, a TensorList or nothing. It is kept.
template <class F>
Compiled<lazy::ResultOf<F>> compile(F function, CompileOptions options = {}) {
  using Result = lazy::ResultOf<F>;
  static_assert(std::is_same_v<Result, Tensor> || std::is_same_v<Result, TensorList> || std::is_void_v<Result>,
                "compile: the function gives a Tensor, a TensorList or nothing");
  auto kept = std::make_shared<F>(std::move(function));
  auto list = [kept](const TensorList& inputs) -> TensorList {
    if constexpr (std::is_void_v<Result>) {
      lazy::apply(*kept, inputs);
      return {};
    } else if constexpr (std::is_same_v<Result, Tensor>) {
      return {lazy::apply(*kept, inputs)};
    } else {
      return lazy::apply(*kept, inputs);
    }
  };
  return Compiled<Result>(CompiledList(std::move(list), std::move(options)));
}

}  // namespace tenon
