// Gradients of gathering, joining, splitting and padding.
#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/functors/positions.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "core/ops/sized_ops.h"

namespace tenon::gradients {
namespace {

// `x` padded with zeros along `axis`.
Tensor padded(const Tensor& x, int32_t axis, int64_t low, int64_t high) {
  Dims pads = Dims::filled(2 * (x.rank() - axis), 0);
  pads[pads.rank() - 2] = low;
  pads[pads.rank() - 1] = high;
  return low == 0 && high == 0 ? x : tenon::pad(x, pads);
}

// Zeros in the shape of input 0.
Tensor zeros(const autograd::Backward& b) {
  return b.general(0, [&](const IntList& dims) { return tenon::zeros(dims, b.grad().dtype(), b.grad().device()); });
}

// Reflected padding of one axis copies elements; the gradient of each copy is added to its source: at the low end
// elements 1 .. low, at the high end the elements before the last.
Tensor of_reflected(const Tensor& grad, int32_t axis, int64_t low, int64_t high) {
  const int64_t size = grad.dims()[axis] - low - high;
  Tensor inner = tenon::narrow(grad, axis, low, size);
  if (low > 0) {
    const Tensor part = tenon::flip(tenon::narrow(grad, axis, 0, low), axis);
    inner = inner + padded(part, axis, 1, size - 1 - low);
  }
  if (high > 0) {
    const Tensor part = tenon::flip(tenon::narrow(grad, axis, low + size, high), axis);
    inner = inner + padded(part, axis, size - 1 - high, 1);
  }
  return inner;
}

// Like of_reflected, for padding that repeats the edge.
Tensor of_repeated(const Tensor& grad, int32_t axis, int64_t low, int64_t high) {
  const int64_t size = grad.dims()[axis] - low - high;
  Tensor inner = tenon::narrow(grad, axis, low, size);
  if (low > 0) {
    inner = inner + padded(tenon::sum(tenon::narrow(grad, axis, 0, low), axis, true), axis, 0, size - 1);
  }
  if (high > 0) {
    inner = inner + padded(tenon::sum(tenon::narrow(grad, axis, low + size, high), axis, true), axis, size - 1, 0);
  }
  return inner;
}

// The gradient of elements that were taken along an axis at `positions`.
void of_elements(const autograd::Backward& b, std::string_view op, int32_t axis, const Tensor& positions) {
  b.give(0, functors::scatter_at(op, EP_GATHER_ELEMENTS, EP_SCATTER_ADD, zeros(b), axis, positions, b.grad()));
}

// A call of scatter_reduce. Tensors of rank 0 are lists of one element here.
struct ScatterReduce {
  explicit ScatterReduce(const autograd::Backward& b)
      : dim(b.attributes<ScatterReduceAttributes>().dim),
        include_self(b.attributes<ScatterReduceAttributes>().include_self != 0),
        grad(list(b.grad())),
        input(list(b.input(0))),
        index(list(b.input(1))),
        whole(list(b.input(2))),
        src(whole),
        result(list(b.result())) {
    for (int32_t axis = 0; axis < src.rank(); ++axis) {
      if (index.dim(axis) < src.dim(axis)) src = tenon::narrow(src, axis, 0, index.dim(axis));
    }
  }

  static Tensor list(const Tensor& x) { return x.rank() == 0 ? tenon::reshape(x, 1) : x; }
  Tensor gathered(const Tensor& x) const { return tenon::gather(x, dim, index); }
  Tensor added(const Tensor& to, const Tensor& updates) const { return tenon::scatter_add(to, dim, index, updates); }
  // `x`, but 0 where there is an update if the input does not contribute to the result there.
  Tensor of_input(const Tensor& x) const { return include_self ? x : tenon::scatter(x, dim, index, Scalar(0)); }

  // Gives the gradients of input and of the elements of src that are used.
  void give(const autograd::Backward& b, const Tensor& to_input, const Tensor& to_src) const {
    if (b.wants(0)) b.give(0, tenon::reshape(of_input(to_input), input_dims(b, 0)));
    if (!b.wants(2)) return;
    Dims pads;
    for (int32_t axis = whole.rank(); axis-- > 0;) {
      pads.push_back(0);
      pads.push_back(whole.dim(axis) - src.dim(axis));
    }
    b.give(2, tenon::reshape(tenon::pad(to_src, pads), input_dims(b, 2)));
  }
  static Dims input_dims(const autograd::Backward& b, size_t i) { return b.input(i).dims(); }

  int64_t dim;
  bool include_self;
  Tensor grad, input, index, whole, src, result;
};

void of_scattered_mean(const autograd::Backward& b, const ScatterReduce& call) {
  const Tensor start = call.include_self ? tenon::ones_like(call.input) : tenon::zeros_like(call.input);
  const Tensor count = tenon::clamp(call.added(start, tenon::ones_like(call.src)), Scalar(1), std::nullopt);
  const Tensor share = call.grad / count;
  call.give(b, share, call.gathered(share));
}

// The product of all other factors is the result divided by this factor. If this factor is the only update that is 0,
// it is the product computed without it.
void of_scattered_product(const autograd::Backward& b, const ScatterReduce& call) {
  const auto product = [&](const Tensor& input, const Tensor& src) {
    return tenon::scatter_reduce(input, call.dim, call.index, src, "prod", call.include_self);
  };
  const Tensor input = tenon::where(tenon::eq(call.input, 0), 1, call.input);
  const Tensor to_input = call.grad * (product(input, call.src) / input);
  const Tensor zero = tenon::eq(call.src, 0);
  const Tensor zeros = call.added(tenon::zeros_like(call.input), tenon::cast(zero, call.input.dtype()));
  const Tensor alone = tenon::logical_and(zero, tenon::eq(call.gathered(zeros), 1));
  const Tensor others = call.grad * product(call.input, tenon::where(alone, 1, call.src));
  const Tensor quotient = call.gathered(call.grad * call.result) / tenon::where(zero, 1, call.src);
  call.give(b, to_input, tenon::where(alone, call.gathered(others), quotient));
}

// Equal extrema share the gradient. As in PyTorch, an element of the input counts as one of them even if it was only
// compared.
void of_scattered_extremum(const autograd::Backward& b, const ScatterReduce& call) {
  const DType dtype = call.input.dtype();
  const Tensor in_input = tenon::eq(call.input, call.result);
  const Tensor in_src = tenon::eq(call.src, call.gathered(call.result));
  const Tensor count = call.added(tenon::cast(in_input, dtype), tenon::cast(in_src, dtype));
  const Tensor share = call.grad / tenon::maximum(count, 1.0);
  call.give(b, tenon::where(in_input, share, 0), tenon::where(in_src, call.gathered(share), 0));
}

}  // namespace

void scatter_reduce(const autograd::Backward& b) {
  const ScatterReduce call(b);
  const std::string_view reduce = b.attributes<ScatterReduceAttributes>().reduce.view();
  if (reduce == "sum") return call.give(b, call.grad, call.gathered(call.grad));
  if (reduce == "mean") return of_scattered_mean(b, call);
  reduce == "prod" ? of_scattered_product(b, call) : of_scattered_extremum(b, call);
}

void gather_slices(const autograd::Backward& b) {
  const int32_t axis = b.attributes<AxisAttributes>().axis;
  const Tensor index = tenon::reshape(b.input(1), -1);
  SymDims slices = b.sizes(0);
  slices[axis] = size_at(index, 0);
  const Tensor grad = tenon::reshape(b.grad(), SizeList(slices));
  b.give(0, functors::scatter_at("gather_slices", EP_GATHER_SLICES, EP_SCATTER_ADD, zeros(b), axis, index, grad));
}

void gather(const autograd::Backward& b) { of_elements(b, "gather", b.attributes<AxisAttributes>().axis, b.input(1)); }

void gather_nd(const autograd::Backward& b) {
  b.give(0, tenon::scatter_nd(zeros(b), b.input(1), b.grad(), "sum", b.attributes<CoordinatesAttributes>().batch));
}

// Elements taken along an axis at the positions in result 1.
void scan_positions(const autograd::Backward& b) {
  of_elements(b, "scan", b.attributes<ScanAttributes>().scan.axis, b.result(1));
}
void sort(const autograd::Backward& b) {
  of_elements(b, "sort", b.attributes<SortAttributes>().sort.axis, b.result(1));
}
void topk(const autograd::Backward& b) {
  of_elements(b, "topk", b.attributes<TopKAttributes>().top_k.axis, b.result(1));
}

// The inputs of the record: destination, index, updates. An update that another one has replaced gets no gradient. To
// find the update that stayed, the numbers of the updates are scattered and gathered.
void scatter(const autograd::Backward& b) {
  const ep_scatter_attributes& how = b.attributes<ScatterAttributes>().scatter;
  const Tensor index = b.input(1);
  const bool slices = how.mode == EP_GATHER_SLICES;
  const bool coordinates = how.mode == EP_GATHER_COORDINATES;
  const auto gathered = [&](const Tensor& x) {
    if (coordinates) return tenon::gather_nd(x, index, how.axis);
    return slices ? tenon::gather_slices(x, how.axis, index) : functors::gather_at(x, how.axis, index);
  };
  if (how.op == EP_SCATTER_ADD) {
    if (b.wants(0)) b.give(0, b.grad());
    if (b.wants(2)) b.give(2, gathered(b.grad()));
    return;
  }
  if (how.op != EP_SCATTER_ASSIGN) {
    throw Error(Subject{"scatter"}, Code::unsupported,
                "only updates that are assigned or added have a gradient, not products and extrema.",
                "Call scatter_reduce, whose products and extrema have one.");
  }
  const Tensor grad = b.grad();
  const Tensor before = tenon::full(grad.dims(), Scalar(-1), DType::i64, grad.device());
  const Tensor like = gathered(before);
  const Tensor numbers = tenon::reshape(tenon::arange(like.elements(), DType::i64, grad.device()), like.dims());
  const Tensor last = functors::scatter_at("scatter", how.mode, EP_SCATTER_ASSIGN, before, how.axis, index, numbers);
  if (b.wants(0)) b.give(0, tenon::where(tenon::lt(last, 0), grad, 0));
  if (b.wants(2)) b.give(2, tenon::where(tenon::eq(gathered(last), numbers), gathered(grad), 0));
}

void concat(const autograd::Backward& b) {
  const int32_t axis = b.attributes<AxisAttributes>().axis;
  if (tenon::is_open(b.grad())) {
    SymDim start = 0;
    for (size_t i = 0; i < b.input_count(); ++i) {
      const SymDim length = b.sizes(i)[axis];
      if (b.wants(i)) b.give(i, sized::narrow(b.grad(), axis, start, length));
      start = start + length;
    }
    return;
  }
  int64_t start = 0;
  for (size_t i = 0; i < b.input_count(); ++i) {
    const int64_t length = b.dims(i)[axis];
    if (b.wants(i)) b.give(i, tenon::narrow(b.grad(), axis, start, length));
    start += length;
  }
}

void split(const autograd::Backward& b) {
  const auto& attributes = b.attributes<SplitSizesAttributes>();
  const auto known = std::find_if(b.grads().begin(), b.grads().end(), [](const Tensor& g) { return g.defined(); });
  TensorList parts(b.grads().begin(), b.grads().end());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].defined()) continue;
    SymDims dims = sizes(*known);
    dims[static_cast<int32_t>(attributes.axis)] = attributes.sizes[i];
    parts[i] = tenon::zeros(SizeList(dims), known->dtype(), known->device());
  }
  b.give(0, tenon::concat(parts, attributes.axis));
}

void pad(const autograd::Backward& b) {
  const ep_pad_attributes& window = b.attributes<PadAttributes>().window;
  Tensor grad = b.grad();
  for (int32_t axis = 0; axis < grad.rank(); ++axis) {
    const int64_t low = window.low[axis];
    const int64_t high = window.high[axis];
    if (low == 0 && high == 0) continue;
    switch (window.mode) {
      case EP_PAD_REFLECT: grad = of_reflected(grad, axis, low, high); break;
      case EP_PAD_EDGE: grad = of_repeated(grad, axis, low, high); break;
      default: grad = tenon::narrow(grad, axis, low, grad.dims()[axis] - low - high);
    }
  }
  b.give(0, grad);
}

}  // namespace tenon::gradients
