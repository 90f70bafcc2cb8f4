// Host loops of optimisers: each tensor of the lists is read and written once.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/interpreter/host_loops/parts.h"
#include "core/interpreter/side_threads.h"
#include "core/ops/attributes.h"
#include "core/ops/floating_point.h"

namespace tenon::host_loops {
namespace {

// True if `count` inputs from `first` on are row-major in host memory, and each matches its parameter in the list that
// begins at `params`.
bool like_params(const OpCall& call, size_t params, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!at_hand(call, first + i)) return false;
    const TensorImpl &param = *call.inputs[params + i]->impl(), &other = *call.inputs[first + i]->impl();
    if (other.dtype != param.dtype || !(other.dims == param.dims)) return false;
    if (first != params && other.storage == param.storage) return false;
  }
  return true;
}

bool all_real(const OpCall& call, size_t first, size_t count) {
  return std::all_of(call.inputs.begin() + static_cast<std::ptrdiff_t>(first),
                     call.inputs.begin() + static_cast<std::ptrdiff_t>(first + count), [](const Tensor* tensor) {
                       const DType dtype = tensor->dtype();
                       return dtype == DType::f32 || dtype == DType::f64;
                     });
}

// Reads input `index`, a tensor of one number in host memory.
bool read_number(const OpCall& call, size_t index, double* number) {
  if (!lies_at_hand(call, index) || call.inputs[index]->elements() != 1) return false;
  const Tensor& tensor = *call.inputs[index];
  switch (tensor.dtype()) {
    case DType::f64: *number = *elements_of<double>(tensor); return true;
    case DType::f32: *number = static_cast<double>(*elements_of<float>(tensor)); return true;
    case DType::i64: *number = static_cast<double>(*elements_of<int64_t>(tensor)); return true;
    default: return false;
  }
}

template <class T>
T* written(const Tensor& tensor) {
  return static_cast<T*>(tensor.data());
}

void note_writes(const OpCall& call, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) call.inputs[i]->impl()->storage.note_write(call.op->name);
}

void give_params(const OpCall& call, size_t first) {
  for (size_t i = 0; i < call.outputs.size(); ++i) call.outputs[i] = *call.inputs[first + i];
}

constexpr int64_t kPiece = 128 * 1024;       // elements
constexpr uint64_t kWorthAThread = 1 << 20;  // elements: about half a millisecond of work

// Calls run(i, first, n) for elements [first, first + n) of each of `count` tensors of the list that begins at input
// `params`, on as many threads as the work justifies. The caller must have the default floating-point environment.
template <class Run>
void for_pieces(const OpCall& call, size_t params, size_t count, const Run& run) {
  uint64_t elements = 0;
  for (size_t i = 0; i < count; ++i) elements += static_cast<uint64_t>(call.inputs[params + i]->elements());
  const size_t helpers = side_threads(elements, kWorthAThread);
  if (helpers == 0) {
    for (size_t i = 0; i < count; ++i) run(i, 0, call.inputs[params + i]->elements());
    return;
  }
  struct Piece {
    size_t tensor;
    int64_t first, count;
  };
  std::vector<Piece> pieces;
  for (size_t i = 0; i < count; ++i) {
    const int64_t all = call.inputs[params + i]->elements();
    for (int64_t first = 0; first < all; first += kPiece) pieces.push_back({i, first, std::min(kPiece, all - first)});
  }
  share_with(helpers, pieces.size(), [&](size_t i) {
    const DefaultFloatingPoint floating_point;
    run(pieces[i].tensor, pieces[i].first, pieces[i].count);
  });
}

// The factors of one step of Adam, in the dtype of its tensors.
template <class T>
struct AdamFactors {
  T keep = 1;   // factor of the params: 1 - lr * weight_decay
  T sign = 1;   // factor of the gradient: -1 to maximise
  T decay = 0;  // factor of the params that is added to the gradient
  T first = 0;  // 1 - beta1
  T beta2 = 0;
  T second = 0;  // 1 - beta2
  T root = 1;    // 1 over the root of the second correction
  T eps = 0;
  T step = 0;  // lr over the first correction
};

// One block of each list, at the same positions.
template <class T>
struct AdamBlock {
  T* param;
  const T* grad;
  T* average;
  T* square_average;
  T* greatest;  // null unless AMSGrad
};

template <class T, bool kGreatest>
[[gnu::always_inline]] inline void adam_block(const AdamBlock<T>& at, const AdamFactors<T>& f, int32_t n) {
  for (int32_t i = 0; i < n; ++i) {
    const T param = at.param[i];
    const T grad = at.grad[i] * f.sign + param * f.decay;
    const T average = at.average[i] + (grad - at.average[i]) * f.first;
    const T square_average = at.square_average[i] * f.beta2 + grad * grad * f.second;
    T root = square_average;
    if constexpr (kGreatest) {
      root = at.greatest[i] > square_average ? at.greatest[i] : square_average;
      at.greatest[i] = root;
    }
    at.average[i] = average;
    at.square_average[i] = square_average;
    at.param[i] = param * f.keep - average / (std::sqrt(root) * f.root + f.eps) * f.step;
  }
}

template <class T>
void adam_tensor(const AdamBlock<T>& all, const AdamFactors<T>& f, int64_t count) {
  by_blocks(
      count, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        AdamBlock<T> at = all;
        at.param += first;
        at.grad += first;
        at.average += first;
        at.square_average += first;
        if (at.greatest == nullptr) return adam_block<T, false>(at, f, n);
        at.greatest += first;
        adam_block<T, true>(at, f, n);
      });
}

struct AdamCall {
  double beta1, beta2, weight_decay, eps, step, lr;
  bool maximize, decoupled;
};

template <class T>
AdamFactors<T> adam_factors(const AdamCall& how) {
  AdamFactors<T> f;
  const double shrunk = how.lr * how.weight_decay;
  f.keep = static_cast<T>(how.decoupled ? 1 - shrunk : 1);
  f.sign = how.maximize ? -1 : 1;
  f.decay = static_cast<T>(how.decoupled ? 0 : how.weight_decay);
  f.first = static_cast<T>(1 - how.beta1);
  f.beta2 = static_cast<T>(how.beta2);
  f.second = static_cast<T>(1 - how.beta2);
  f.root = static_cast<T>(1 / std::sqrt(1 - std::pow(how.beta2, how.step)));
  f.eps = static_cast<T>(how.eps);
  f.step = static_cast<T>(how.lr / (1 - std::pow(how.beta1, how.step)));
  return f;
}

constexpr size_t kNumbers = 2;  // step and lr come before the lists

template <class T>
void adam_at(const OpCall& call, size_t lists, size_t i, bool greatest, const AdamFactors<T>& f, int64_t first,
             int64_t count) {
  const auto input = [&](size_t list) -> const Tensor& { return *call.inputs[kNumbers + list * lists + i]; };
  const AdamBlock<T> all{written<T>(input(0)) + first, elements_of<T>(input(1)) + first, written<T>(input(2)) + first,
                         written<T>(input(3)) + first, greatest ? written<T>(input(4)) + first : nullptr};
  adam_tensor(all, f, count);
}

template <class Attributes>
bool run_adam(const OpCall& call, bool decoupled) {
  const auto& a = call.attributes_as<Attributes>();
  const auto count = static_cast<size_t>(a.params_count);
  const auto greatest = static_cast<size_t>(a.max_exp_avg_sqs_count);
  AdamCall how{call.scalars[0].to_double(),
               call.scalars[1].to_double(),
               call.scalars[2].to_double(),
               call.scalars[3].to_double(),
               0,
               0,
               a.maximize != 0,
               decoupled};
  if (static_cast<size_t>(a.grads_count) != count || static_cast<size_t>(a.exp_avgs_count) != count ||
      static_cast<size_t>(a.exp_avg_sqs_count) != count || (greatest != 0 && greatest != count)) {
    return false;
  }
  if (!read_number(call, 0, &how.step) || !read_number(call, 1, &how.lr)) return false;
  for (size_t first = kNumbers; first < call.inputs.size(); first += count) {
    if (!like_params(call, kNumbers, first, count)) return false;
  }
  if (!all_real(call, kNumbers, count)) return false;
  const DefaultFloatingPoint floating_point;
  const auto f32 = adam_factors<float>(how);
  const auto f64 = adam_factors<double>(how);
  for_pieces(call, kNumbers, count, [&](size_t i, int64_t first, int64_t n) {
    const bool single = call.inputs[kNumbers + i]->dtype() == DType::f32;
    single ? adam_at(call, count, i, greatest != 0, f32, first, n)
           : adam_at(call, count, i, greatest != 0, f64, first, n);
  });
  note_writes(call, kNumbers, count);
  note_writes(call, kNumbers + 2 * count, call.inputs.size() - kNumbers - 2 * count);
  give_params(call, kNumbers);
  return true;
}

struct SgdCall {
  double momentum, dampening, weight_decay, lr;
  bool nesterov, maximize;
};

template <class T>
struct SgdFactors {
  T sign, decay, momentum, fresh, step;
};

enum class Momentum { none, plain, nesterov };

template <class T, Momentum kMomentum>
[[gnu::always_inline]] inline void sgd_block(T* params, const T* grads, T* buffers, const SgdFactors<T>& f, int32_t n) {
  for (int32_t i = 0; i < n; ++i) {
    const T param = params[i];
    T grad = grads[i] * f.sign + param * f.decay;
    if constexpr (kMomentum != Momentum::none) {
      const T buffer = buffers[i] * f.momentum + grad * f.fresh;
      buffers[i] = buffer;
      grad = kMomentum == Momentum::nesterov ? grad + buffer * f.momentum : buffer;
    }
    params[i] = param - grad * f.step;
  }
}

template <class T>
void sgd_at(const OpCall& call, size_t lists, size_t i, const SgdCall& how, int64_t begin, int64_t count) {
  const SgdFactors<T> f{static_cast<T>(how.maximize ? -1 : 1), static_cast<T>(how.weight_decay),
                        static_cast<T>(how.momentum), static_cast<T>(1 - how.dampening), static_cast<T>(how.lr)};
  T* params = written<T>(*call.inputs[1 + i]) + begin;
  const T* grads = elements_of<T>(*call.inputs[1 + lists + i]) + begin;
  T* buffers = how.momentum == 0 ? nullptr : written<T>(*call.inputs[1 + 2 * lists + i]) + begin;
  const Momentum momentum = buffers == nullptr ? Momentum::none : how.nesterov ? Momentum::nesterov : Momentum::plain;
  by_blocks(
      count, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        T* const buffer = buffers == nullptr ? nullptr : buffers + first;
        switch (momentum) {
          case Momentum::none: return sgd_block<T, Momentum::none>(params + first, grads + first, buffer, f, n);
          case Momentum::plain: return sgd_block<T, Momentum::plain>(params + first, grads + first, buffer, f, n);
          default: return sgd_block<T, Momentum::nesterov>(params + first, grads + first, buffer, f, n);
        }
      });
}

}  // namespace

bool run_fused_adam_(const OpCall& call) { return run_adam<FusedAdamAttributes>(call, false); }
bool run_fused_adamw_(const OpCall& call) { return run_adam<FusedAdamwAttributes>(call, true); }

bool run_fused_sgd_(const OpCall& call) {
  const auto& a = call.attributes_as<FusedSgdAttributes>();
  const auto count = static_cast<size_t>(a.params_count);
  SgdCall how{call.scalars[0].to_double(),
              call.scalars[1].to_double(),
              call.scalars[2].to_double(),
              0,
              a.nesterov != 0,
              a.maximize != 0};
  const int64_t buffers = how.momentum == 0 ? 0 : a.params_count;
  if (a.grads_count != a.params_count || a.momentum_buffers_count != buffers) return false;
  if (how.nesterov && (how.momentum <= 0 || how.dampening != 0)) return false;
  if (!read_number(call, 0, &how.lr)) return false;
  for (size_t first = 1; first < call.inputs.size(); first += count) {
    if (!like_params(call, 1, first, count)) return false;
  }
  if (!all_real(call, 1, count)) return false;
  const DefaultFloatingPoint floating_point;
  for_pieces(call, 1, count, [&](size_t i, int64_t first, int64_t n) {
    call.inputs[1 + i]->dtype() == DType::f32 ? sgd_at<float>(call, count, i, how, first, n)
                                              : sgd_at<double>(call, count, i, how, first, n);
  });
  note_writes(call, 1, count);
  if (buffers != 0) note_writes(call, 1 + 2 * count, count);
  give_params(call, 1);
  return true;
}

}  // namespace tenon::host_loops
