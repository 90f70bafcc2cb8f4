// Random programs over the ops that passes look for: with writes through overlapping views, several outputs, constants,
// nested control flow, and values of f32, f64, i32 and bool.
#pragma once

#include <functional>
#include <random>
#include <vector>

#include "core/graph/regions/control_flow.h"
#include "core/ops/functors/positions.h"
#include "core/ops/ops.h"

namespace tenon::graph {

#if defined(__has_feature)
#define TENON_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TENON_SANITIZED 0
#endif
constexpr bool kSanitized = TENON_SANITIZED;  // each op takes much longer: tests make fewer programs

using Program = std::function<TensorList(const TensorList&)>;

// Magnitudes from 0.5 to 1.5, of both signs.
inline Tensor random_tensor(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> magnitudes(0.5f, 1.5f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = random() % 2 == 0 ? magnitudes(random) : -magnitudes(random);
  return Tensor::from<float>(data, dims);
}

// Whole numbers from -3 to 3.
inline Tensor random_numbers(const Dims& dims, uint32_t seed) {
  return cast(mul(random_tensor(dims, seed), Scalar(2.0)), DType::i32);
}

class RandomProgram {
 public:
  // `smooth`: a small change of an input or of a rounding changes no result much. Takes three inputs: two of f32 and
  // one of i32, of shape [4, 4]. `control`: with control flow, which passes on no gradient if it is recorded.
  RandomProgram(uint32_t seed, int size, bool smooth, bool control = true)
      : seed_(seed), smooth_(smooth), control_(control) {
    for (int i = 0; i < size; ++i) steps_.push_back(static_cast<uint32_t>(i));
  }

  // The program without the step at index `at`. The other steps do not change.
  RandomProgram without(size_t at) const {
    RandomProgram smaller = *this;
    smaller.steps_.erase(smaller.steps_.begin() + static_cast<ptrdiff_t>(at));
    return smaller;
  }
  size_t size() const { return steps_.size(); }

  // The program with its constants converted by `place`, for example to global tensors.
  RandomProgram with_constants(std::function<Tensor(const Tensor&)> place) const {
    RandomProgram placed = *this;
    placed.place_ = std::move(place);
    return placed;
  }

  TensorList operator()(const TensorList& inputs) {
    floats_ = {add(inputs[0], Scalar(0.25)), add(inputs[1], Scalar(0.25))};
    whole_ = {mul(inputs[2], Scalar(int64_t{1}))};
    truths_ = {gt(inputs[2], Scalar(int64_t{0}))};
    for (uint32_t number : steps_) {
      random_.seed(seed_ * 64 + number);
      step();
    }
    random_.seed(seed_);
    TensorList outputs{floats_.back(), floats_[floats_.size() / 2], pick(floats_), pick(whole_), pick(truths_)};
    outputs.push_back(cast(pick(floats_), DType::f64));
    return outputs;
  }

 private:
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  const Tensor& pick(const TensorList& from) { return from[below(static_cast<uint32_t>(from.size()))]; }
  Tensor constant(const Dims& dims) { return constant(dims, below(5)); }
  Tensor constant(const Dims& dims, uint32_t seed) {
    const Tensor made = random_tensor(dims, seed);
    return place_ ? place_(made) : made;
  }

  void step() {
    switch (below(control_ ? 6 : 5)) {
      case 0: return views();
      case 1: return writes();
      case 2: return patterns();
      case 3: return types();
      case 4: return arithmetic();
      default: return control(below(2));
    }
  }

  void give(const Tensor& value) { floats_.push_back(value); }

  void arithmetic() {
    const Tensor a = pick(floats_), b = pick(floats_);
    switch (below(10)) {
      case 0: return give(mul(a, Scalar(0.5)));
      case 1: return give(add(a, b));
      case 2: return give(maximum(a, neg(b)));
      case 3: return give(softmax(a, static_cast<int64_t>(below(2))));
      case 4: return give(relu(add(matmul(tanh(a), tanh(b)), a)));
      case 5: return give(add(a, Scalar(below(2) == 0 ? 0.0 : -0.0)));
      case 6: return give(sub(mul(a, Scalar(1.0)), Scalar(0.0)));
      case 7: return give(add(constant({4, 4}), mul(constant({4}), a)));
      case 8: return give(div(matmul(tanh(a), constant({4, 4})), Scalar(4.0)));
      default: return give(clamp(matmul(tanh(a), tanh(b)), Scalar(-0.5), Scalar(0.75)));
    }
  }

  // A function of a region. Its ops were drawn before, because eager code calls one branch and a recorder both.
  static Tensor inside(uint32_t what, const Tensor& a, const Tensor& b) {
    switch (what) {
      case 0: return add(mul(a, Scalar(0.5)), b);
      case 1: return tanh(matmul(tanh(a), random_tensor({4, 4}, 3)));
      case 2: return maximum(softmax(a, 1), add(neg(b), Scalar(0.0)));
      default: return a;
    }
  }

  // Control flow that reads values around it, with `depth` more levels inside.
  Tensor controlled(uint32_t kind, uint32_t what, const Tensor& a, const Tensor& b, const Tensor& truth,
                    uint32_t depth) {
    const auto body = [&, what, depth](const Tensor& x, const Tensor& y) {
      return depth == 0 ? inside(what, x, y) : controlled((kind + 1) % 3, (what + 1) % 4, x, y, truth, depth - 1);
    };
    if (kind == 0) {
      return cond(
          any(truth),
          [&](const TensorList& x) {
            return TensorList{body(x[0], b), x[1], b};
          },
          [&](const TensorList& x) {
            return TensorList{x[2], tanh(x[0]), a};
          },
          {a, b, a})[0];
    }
    if (kind == 1) {
      return while_loop([](const TensorList& s) { return lt(s[1], Scalar(int64_t{3})); },
                        [&](const TensorList& s) {
                          return TensorList{tanh(body(s[0], a)), add(s[1], Scalar(int64_t{1}))};
                        },
                        {b, full({}, Scalar(static_cast<int64_t>(what)), DType::i64)})[0];
    }
    const Scanned made = scan(
        [&](const TensorList& c, const TensorList& x) {
          const Tensor next = tanh(body(add(c[0], x[0]), b));
          return Scanned{{next}, {select(next, 0, 1), x[0]}};
        },
        {a}, {b});
    return what == 0 ? made.carry[0] : made.ys[0];
  }

  void control(uint32_t depth) {
    const Tensor a = pick(floats_), b = pick(floats_), truth = pick(truths_);
    const uint32_t kind = below(3), what = below(4);
    give(controlled(kind, what, a, b, truth, depth));
  }

  void views() {
    const Tensor a = pick(floats_), b = pick(floats_);
    switch (below(7)) {
      case 0: return give(permute(a, {1, 0}));
      case 1: return give(expand(slice(a, 0, 1, 2, 1), {4, 4}));
      case 2: return give(sub(reshape(contiguous(a), {4, 4}), select(b, 0, 2)));
      case 3: return give(permute(permute(a, {1, 0}), {1, 0}));
      case 4: return give(squeeze(unsqueeze(slice(a, 1, 0, 4), 0), {0}));
      case 5: return give(pad(slice(pad(a, {0, 0, 0, 0}), 0, 1), {0, 0, 1, 0}));
      default: return give(concat(TensorList{slice(a, 0, 0, 2), slice(b, 0, 2, 4)}, 0));
    }
  }

  // In-place ops, through views that overlap others.
  void writes() {
    const Tensor a = pick(floats_), b = pick(floats_);
    if (a.strides()[0] == 0 || a.strides()[1] == 0) return;
    switch (below(5)) {
      case 0: {
        Tensor part = select(a, static_cast<int64_t>(below(2)), static_cast<int64_t>(below(4)));
        mul_(part, Scalar(0.75));
        return;
      }
      case 1: {
        Tensor part = slice(a, 1, 1, 4, 2);
        copy_(part, slice(b, 1, 0, 2, 1));
        return;
      }
      case 2: {
        Tensor whole = a;
        add_(whole, tanh(b));
        return;
      }
      case 3: {
        if (!a.contiguous()) return;
        Tensor part = slice(reshape(a, {16}), 0, 3, 9, 3);
        fill_(part, Scalar(0.5));
        return;
      }
      default: return give(clone(a));
    }
  }

  Tensor rows(const Tensor& x) { return sub(x, mean(x, {-1}, true)); }

  // Patterns that exporters write.
  void patterns() {
    const Tensor a = pick(floats_);
    switch (below(9)) {
      case 8: {
        const Tensor index = minimum(maximum(slice(pick(whole_), 1, 0, 1), Scalar(int64_t{-4})), Scalar(int64_t{3}));
        return give(add(a, functors::gather_at(log_softmax(tanh(a), 1), 1, index)));
      }
      case 0: {
        const Tensor centred = rows(a);
        const Tensor square = below(2) == 0 ? mul(centred, centred) : pow(centred, Scalar(2.0));
        const Tensor norm = div(centred, sqrt(add(mean(square, {-1}, true), Scalar(0.125))));
        return give(add(mul(norm, constant({4})), constant({4})));
      }
      case 1: return give(mul(mul(a, Scalar(0.5)), add(erf(div(a, Scalar(1.4142135623730951))), Scalar(1.0))));
      case 2: return give(mul(a, sigmoid(a)));
      case 3: return give(div(Scalar(1.0), sqrt(add(pow(a, Scalar(2.0)), Scalar(1.0)))));
      case 4: {
        const Tensor row = tanh(slice(a, 0, 1, 2));
        const Tensor left = matmul(row, constant({4, 2})), right = matmul(row, constant({4, 2}, 7));
        return give(add(a, concat(TensorList{add(left, constant({2})), add(right, constant({2}))}, 1)));
      }
      case 6: {
        if (!smooth_) return give(relu(a));
        const Tensor keys = slice(reshape(contiguous(tanh(a)), {1, 4, 2, 2}), 1, 0, 2);
        const Tensor all = reshape(expand(unsqueeze(keys, 2), {1, 2, 2, 2, 2}), {1, 4, 2, 2});
        const Tensor queries = reshape(contiguous(tanh(pick(floats_))), {1, 4, 2, 2});
        return give(reshape(contiguous(matmul(queries, below(2) == 0 ? all : permute(all, {0, 1, 3, 2}))), {4, 4}));
      }
      case 5: {
        if (!smooth_) return give(tanh(a));
        const Tensor image = reshape(contiguous(tanh(a)), {1, 4, 2, 2});
        const Tensor made = conv(image, constant({4, 4, 1, 1}), constant({4}));
        const Tensor normal = batch_norm(made, constant({4}), constant({4}), constant({4}), square(constant({4})));
        return give(reshape(relu(normal), {4, 4}));
      }
      default: return give(add(mul(matmul(tanh(a), constant({4, 4})), Scalar(0.3)), constant({4})));
    }
  }

  void types() {
    const Tensor a = pick(floats_), n = pick(whole_), truth = pick(truths_);
    switch (below(smooth_ ? 6 : 9)) {
      case 0: return give(cast(cast(a, DType::f64), DType::f32));
      case 1: return give(cast(exp(tanh(cast(a, DType::f64))), DType::f32));
      case 2: return whole_.push_back(add(n, cast(cast(pick(whole_), DType::i64), DType::i32)));
      case 3: return whole_.push_back(maximum(add(n, Scalar(int64_t{0})), cast(truth, DType::i32)));
      case 4: return truths_.push_back(logical_and(truth, lt(n, pick(whole_))));
      case 5: return give(where(truth, a, pick(floats_)));
      case 6: return whole_.push_back(cast(mul(tanh(a), Scalar(3.0)), DType::i32));
      case 7: return truths_.push_back(gt(a, pick(floats_)));
      default: return give(cast(cast(tanh(a), DType::f16), DType::f32));
    }
  }

  std::mt19937 random_;
  uint32_t seed_;
  bool smooth_;
  bool control_;
  std::function<Tensor(const Tensor&)> place_;
  std::vector<uint32_t> steps_;
  TensorList floats_, whole_, truths_;
};

}  // namespace tenon::graph
