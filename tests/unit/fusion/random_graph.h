// Random graphs over the ops that the compiler fuses: chains of maps, views, reductions and norms over a few inputs of
// shapes that broadcast, of several dtypes, with sizes that are numbers or open.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/graph/recorder.h"
#include "core/ops/functors/positions.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::codegen {

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : seed_(seed) {
    std::mt19937 random(seed);
    const size_t count = 5 + random() % 30;
    for (uint32_t i = 0; i < count; ++i) steps_.push_back(i);
    const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9};
    for (int64_t& size : base_) size = sizes[random() % std::size(sizes)];
    if (random() % 24 == 0) base_[random() % 3] = 0;
    open_ = random() % 8;
  }

  // The graph without the step at index `at`.
  RandomGraph without(size_t at) const {
    RandomGraph smaller = *this;
    smaller.steps_.erase(smaller.steps_.begin() + static_cast<ptrdiff_t>(at));
    return smaller;
  }
  size_t size() const { return steps_.size(); }

  // A name that a hostile model may give to inputs and nodes to inject text into kernels or paths. It must appear in no
  // kernel.
  static constexpr const char* kHostile = "*/ hostile \\\n\"'%s{}; ../../hostile #define";

  graph::Graph record() {
    graph::Recorder::Options options;
    options.name = kHostile;
    graph::Recorder recorder(Device::current(), options);
    const InterpreterScope scope(recorder);
    values_.clear();
    add_input(&recorder, {base_[0], base_[1], base_[2]});
    add_input(&recorder, {base_[0], base_[1], base_[2]});
    add_input(&recorder, {base_[2]});
    add_input(&recorder, {base_[0], 1, base_[2]});
    add_input(&recorder, {base_[1], base_[2]});
    for (const uint32_t number : steps_) {
      random_.seed(seed_ * 64 + number);
      recorder.label(fmt::format("{} {}", kHostile, number));
      step();
    }
    random_.seed(seed_);
    TensorList outputs{values_.back()};
    for (size_t i = below(3); i > 0; --i) outputs.push_back(pick());
    return recorder.finish(outputs);
  }

 private:
  uint32_t below(size_t end) { return static_cast<uint32_t>(random_() % end); }
  const Tensor& pick() { return values_[values_.size() - 1 - below(std::min<size_t>(values_.size(), 8))]; }
  void give(const Tensor& value) {
    if (count(value) <= 1 << 12) values_.push_back(value);
  }

  // The dims with hints for open sizes. Reading open sizes as numbers would bind them.
  static const Dims& hints(const Tensor& value) { return value.impl()->dims; }
  static int64_t count(const Tensor& value) { return element_count(hints(value)); }

  void add_input(graph::Recorder* recorder, const Dims& dims) {
    std::vector<std::string> names;
    for (const int64_t size : dims) {
      const auto at = static_cast<size_t>(std::find(base_, base_ + 3, size) - base_);
      names.push_back(size > 1 && at < 3 && (open_ >> at & 1) != 0 ? fmt::format("d{} {}", size, kHostile) : "");
    }
    values_.push_back(recorder->input(DType::f32, dims, names, fmt::format("{} {}", kHostile, values_.size())));
  }

  void step() {
    const Tensor x = pick();
    const auto axis = static_cast<int64_t>(x.rank() == 0 ? 0 : below(static_cast<size_t>(x.rank())));
    switch (below(20)) {
      case 0: return give(tanh(x));
      case 1: return give(exp(clamp(x, Scalar(-3.0), Scalar(3.0))));
      case 2: return give(sqrt(add(abs(x), Scalar(0.5))));
      case 3: return give(mul(x, Scalar(0.5)));
      case 4: return give(maximum(x, neg(x)));
      case 5: return views(x, axis);
      case 6: return views(x, axis);
      case 7: return types(x);
      case 8: return reductions(x, axis);
      case 9: return reductions(x, axis);
      case 10: return norms(x, axis);
      case 11: return norms(x, axis);
      case 12: return give(gelu(x));
      default: return binary(x, pick());
    }
  }

  void binary(const Tensor& a, const Tensor& b) {
    for (int32_t i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
      const int64_t x = hints(a)[a.rank() - i], y = hints(b)[b.rank() - i];
      if (x != y && x != 1 && y != 1) return give(add(a, Scalar(0.25)));
    }
    switch (below(5)) {
      case 0: return give(add(a, b));
      case 1: return give(sub(a, b));
      case 2: return give(mul(a, tanh(b)));
      case 3: return give(where(gt(values_[0], Scalar(0.0)), Scalar(0.5), Scalar(-0.5)));
      default: return give(div(a, add(abs(b), Scalar(1.0))));
    }
  }

  void views(const Tensor& x, int64_t axis) {
    if (x.rank() == 0) return;
    const int64_t size = hints(x)[static_cast<int32_t>(axis)];
    switch (below(9)) {
      case 7: return put(x, axis, size);
      case 8: {
        std::vector<int64_t> ends(static_cast<size_t>(2 * x.rank()), 0);
        for (int64_t& end : ends) end = below(2);
        return give(pad(x, ends, "constant", Scalar(0.25)));
      }
      case 0: return give(reshape(x, {-1}));
      case 1: return give(unsqueeze(x, axis));
      case 2: {
        Dims order;
        for (int32_t i = 0; i < x.rank(); ++i) order.push_back((i + axis) % x.rank());
        return give(permute(x, order));
      }
      case 3: return give(size < 2 ? x : slice(x, axis, 1, kEnd));
      case 4: return give(size < 1 ? x : select(x, axis, size / 2));
      case 5: return give(size == 1 ? unsqueeze(x, 0) : concat({x, mul(x, Scalar(2.0))}, axis));
      default: return x.rank() >= 2 && count(x) > 0 ? give(flatten(x, 0, 1)) : give(x);
    }
  }

  // Replaces every second element of x, starting with the first, by the half of it.
  void put(const Tensor& x, int64_t axis, int64_t size) {
    if (size < 3) return give(x);
    give(slice_scatter(x, mul(slice(x, axis, 0, kEnd, 2), Scalar(0.5)), axis, 0, kEnd, 2));
  }

  void types(const Tensor& x) {
    switch (below(4)) {
      case 3:
        return x.rank() == 0 || count(x) == 0 ? give(x)
                                              : give(cast(softmax(cast(x, DType::f16), x.rank() - 1), DType::f32));
      case 0: return give(cast(cast(x, DType::bf16), DType::f32));
      case 1: return give(cast(mul(cast(x, DType::f16), Scalar(0.5)), DType::f32));
      default: return give(cast(add(cast(x, DType::f64), Scalar(0.5)), DType::f32));
    }
  }

  void reductions(const Tensor& x, int64_t axis) {
    if (x.rank() == 0 || count(x) == 0) return;
    const bool keep = below(2) == 0;
    switch (below(4)) {
      case 0: return give(mean(x, Dims{axis}, keep));
      case 1: return give(amax(x, Dims{axis}, keep));
      case 2: return give(mul(sum(x, Dims{axis}, keep), Scalar(0.1)));
      default: return give(tanh(sum(x, x.rank() > 1 ? Dims{0, 1} : Dims{0}, keep)));
    }
  }

  void norms(const Tensor& x, int64_t axis) {
    if (x.rank() == 0 || count(x) == 0) return;
    switch (below(5)) {
      case 4: {  // parts of the graph run on any indices, which may count from the end
        const auto place = static_cast<int32_t>(axis < 0 ? axis + x.rank() : axis);
        return give(functors::gather_at(log_softmax(x, axis), place, argmax(neg(x), axis, true)));
      }
      case 0: return give(mul(x, rsqrt(add(mean(square(x), Dims{axis}, true), Scalar(0.1)))));
      case 1: return give(softmax(x, axis));
      case 2: return give(layer_norm(x, {hints(x)[x.rank() - 1]}, Tensor(), Tensor(), 0.1));
      default: {
        const Tensor centred = sub(x, mean(x, Dims{axis}, true));
        return give(div(centred, add(amax(abs(centred), Dims{axis}, true), Scalar(1.0))));
      }
    }
  }

  static constexpr int64_t kEnd = INT64_MAX;

  uint32_t seed_;
  std::vector<uint32_t> steps_;
  int64_t base_[3] = {1, 1, 1};
  uint32_t open_ = 0;
  std::mt19937 random_;
  TensorList values_;
};

}  // namespace tenon::codegen
