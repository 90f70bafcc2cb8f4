// The meaning of a graph of the fake cuDNN, and the checks of its content.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "providers/cuda/kernels/element.h"
#include "tests/fakes/cuda/cudnn.h"
#include "tests/fakes/cuda/tf32.h"

namespace tenon::fakes::cudnn {
namespace {

namespace provider = tenon::provider::cuda;

int32_t dtype_of(const Body& tensor) {
  switch (tensor.at(Attribute::TENSOR_DATA_TYPE).as<DataType>()) {
    case DataType::HALF: return EP_DTYPE_f16;
    case DataType::BFLOAT16: return EP_DTYPE_bf16;
    case DataType::DOUBLE: return EP_DTYPE_f64;
    default: return EP_DTYPE_f32;
  }
}

int64_t size_of(int32_t dtype) { return dtype == EP_DTYPE_f64 ? 8 : dtype == EP_DTYPE_f32 ? 4 : 2; }
std::vector<int64_t> dims_of(const Body& tensor) { return tensor.numbers(Attribute::TENSOR_DIMENSIONS); }
int64_t id_of(const Body& tensor) { return tensor.at(Attribute::TENSOR_UNIQUE_ID).as<int64_t>(); }
bool is_virtual(const Body& tensor) {
  return tensor.has(Attribute::TENSOR_IS_VIRTUAL) && tensor.at(Attribute::TENSOR_IS_VIRTUAL).as<bool>();
}

// The strides of a tensor without gaps.
std::vector<int64_t> dense(const std::vector<int64_t>& dims, bool channels_last) {
  std::vector<size_t> order;  // from the innermost axis
  if (channels_last) order.push_back(1);
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (axis != 1 || !channels_last) order.push_back(axis);
  }
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (const size_t axis : order) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

bool lies(const Body& tensor, bool channels_last) {
  const std::vector<int64_t> dims = dims_of(tensor), strides = tensor.numbers(Attribute::TENSOR_STRIDES);
  const std::vector<int64_t> wanted = dense(dims, channels_last);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1 && strides[axis] != wanted[axis]) return false;
  }
  return true;
}

std::string missing(const Body& body, std::initializer_list<Attribute> wanted) {
  for (const Attribute attribute : wanted) {
    if (!body.has(attribute)) return fmt::format("attribute {} is missing", static_cast<int>(attribute));
    for (const BodyPtr& each : body.at(attribute).bodies) {
      if (!each->finalized) return fmt::format("attribute {} is not finalized", static_cast<int>(attribute));
    }
  }
  return {};
}

std::string complaint_about_tensor(const Body& body) {
  const std::vector<int64_t> dims = dims_of(body), strides = body.numbers(Attribute::TENSOR_STRIDES);
  if (dims.size() < 4 || dims.size() > 5 || strides.size() != dims.size()) return "a tensor has 4 or 5 axes";
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] < 1 || strides[axis] < 1) return "a dim or a stride is not positive";
  }
  const auto alignment = body.at(Attribute::TENSOR_BYTE_ALIGNMENT).as<int64_t>();
  return alignment < 1 || alignment % size_of(dtype_of(body)) != 0 ? "the alignment holds no whole elements" : "";
}

std::string complaint_about_window(const Body& body) {
  const auto axes = body.at(Attribute::CONVOLUTION_SPATIAL_DIMS).as<int64_t>();
  for (const Attribute attribute : {Attribute::CONVOLUTION_DILATIONS, Attribute::CONVOLUTION_FILTER_STRIDES,
                                    Attribute::CONVOLUTION_PRE_PADDINGS, Attribute::CONVOLUTION_POST_PADDINGS}) {
    if (body.at(attribute).count != axes) return "a list of a window has another length than its axes";
  }
  return {};
}

std::string complaint_about_convolution(const Body& body) {
  const Names names = names_of(body.kind);
  const Body& window = body.body(names.window);
  const std::vector<int64_t> x = dims_of(body.body(names.x)), w = dims_of(body.body(names.w)),
                             y = dims_of(body.body(names.y));
  const auto axes = static_cast<size_t>(window.at(Attribute::CONVOLUTION_SPATIAL_DIMS).as<int64_t>());
  if (x.size() != axes + 2 || w.size() != axes + 2 || y.size() != axes + 2) return "a tensor has another rank";
  if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0) return "the channels do not fit";
  for (size_t axis = 0; axis < axes; ++axis) {
    const auto at = [&](Attribute attribute) { return window.at(attribute).as<int64_t>(axis); };
    const int64_t room = x[axis + 2] + at(Attribute::CONVOLUTION_PRE_PADDINGS) +
                         at(Attribute::CONVOLUTION_POST_PADDINGS) -
                         at(Attribute::CONVOLUTION_DILATIONS) * (w[axis + 2] - 1) - 1;
    if (room < 0 || room / at(Attribute::CONVOLUTION_FILTER_STRIDES) + 1 != y[axis + 2])
      return "the windows do not fit";
  }
  return {};
}

std::string complaint_about_pointwise(const Body& body) {
  const bool sums =
      body.body(Attribute::OPERATION_POINTWISE_PW_DESCRIPTOR).at(Attribute::POINTWISE_MODE).as<PointwiseMode>() ==
      PointwiseMode::ADD;
  if (sums != body.has(Attribute::OPERATION_POINTWISE_BDESC)) return "a sum has a second operand, others have none";
  const std::vector<int64_t> x = dims_of(body.body(Attribute::OPERATION_POINTWISE_XDESC));
  if (x != dims_of(body.body(Attribute::OPERATION_POINTWISE_YDESC))) return "the dims differ";
  if (!sums) return {};
  const std::vector<int64_t> b = dims_of(body.body(Attribute::OPERATION_POINTWISE_BDESC));
  if (b.size() != x.size()) return "the ranks differ";
  for (size_t axis = 0; axis < x.size(); ++axis) {
    if (b[axis] != 1 && b[axis] != x[axis]) return "the dims do not broadcast";
  }
  return {};
}

// The tensors that an operation reads. Its result is the last one.
std::vector<const Body*> tensors_of(const Body& operation) {
  if (!is_convolution(operation.kind)) {
    std::vector<const Body*> result = {&operation.body(Attribute::OPERATION_POINTWISE_XDESC)};
    if (operation.has(Attribute::OPERATION_POINTWISE_BDESC))
      result.push_back(&operation.body(Attribute::OPERATION_POINTWISE_BDESC));
    result.push_back(&operation.body(Attribute::OPERATION_POINTWISE_YDESC));
    return result;
  }
  const Names names = names_of(operation.kind);
  const Body *x = &operation.body(names.x), *w = &operation.body(names.w), *y = &operation.body(names.y);
  if (operation.kind == Kind::OPERATION_CONVOLUTION_BACKWARD_DATA) return {y, w, x};
  if (operation.kind == Kind::OPERATION_CONVOLUTION_BACKWARD_FILTER) return {x, y, w};
  return {x, w, y};
}

// Each operation reads tensors with memory, or the result of the operation before it; only the last result has memory.
std::string complaint_about_graph(const Body& body) {
  const std::vector<BodyPtr>& operations = body.at(Attribute::OPERATIONGRAPH_OPS).bodies;
  std::set<int64_t> written, bound;
  for (const BodyPtr& operation : operations) {
    std::vector<const Body*> tensors = tensors_of(*operation);
    const Body* result = tensors.back();
    tensors.pop_back();
    for (const Body* each : tensors) {
      if (is_virtual(*each) && written.count(id_of(*each)) == 0) return "a virtual tensor is read before it is written";
      if (!is_virtual(*each) && !bound.insert(id_of(*each)).second) return "two tensors have one name";
    }
    if (is_virtual(*result) == (operation == operations.back())) return "only the last result has memory";
    if (!is_virtual(*result) && !bound.insert(id_of(*result)).second) return "two tensors have one name";
    written.insert(id_of(*result));
  }
  return {};
}

using Elements = std::vector<double>;  // the elements of a tensor, row-major

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

// Calls visit(row-major index, offset by strides) for each element.
void each_element(const Body& tensor, const std::function<void(size_t, int64_t)>& visit) {
  const std::vector<int64_t> dims = dims_of(tensor), strides = tensor.numbers(Attribute::TENSOR_STRIDES);
  for (int64_t i = 0; i < count_of(dims); ++i) {
    int64_t left = i, offset = 0;
    for (size_t axis = dims.size(); axis-- > 0; left /= dims[axis]) offset += left % dims[axis] * strides[axis];
    visit(static_cast<size_t>(i), offset);
  }
}

Elements read(const Body& tensor, const void* from) {
  Elements result(static_cast<size_t>(count_of(dims_of(tensor))));
  provider::with_any_storage(dtype_of(tensor), [&](auto storage) {
    const auto* elements = static_cast<const decltype(storage)*>(from);
    each_element(tensor, [&](size_t i, int64_t offset) { result[i] = provider::widen<double>(elements[offset]); });
  });
  return result;
}

void write(const Body& tensor, const Elements& values, void* to) {
  provider::with_any_storage(dtype_of(tensor), [&](auto storage) {
    using Storage = decltype(storage);
    auto* elements = static_cast<Storage*>(to);
    each_element(tensor, [&](size_t i, int64_t offset) { elements[offset] = provider::cast<Storage>(values[i]); });
  });
}

// Dims and window, extended to three spatial axes.
struct Sizes {
  std::array<int64_t, 5> x, w, y;
  std::array<int64_t, 3> stride, dilation, low;
};

Sizes sizes_of(const Body& operation) {
  const Names names = names_of(operation.kind);
  const Body& window = operation.body(names.window);
  const auto axes = static_cast<size_t>(window.at(Attribute::CONVOLUTION_SPATIAL_DIMS).as<int64_t>());
  Sizes sizes{};
  const auto spread = [&](const std::vector<int64_t>& from, std::array<int64_t, 5>* to) {
    to->fill(1);
    std::copy_n(from.begin(), 2, to->begin());
    std::copy(from.begin() + 2, from.end(), to->end() - static_cast<int64_t>(axes));
  };
  spread(dims_of(operation.body(names.x)), &sizes.x);
  spread(dims_of(operation.body(names.w)), &sizes.w);
  spread(dims_of(operation.body(names.y)), &sizes.y);
  sizes.stride.fill(1);
  sizes.dilation.fill(1);
  for (size_t axis = 0; axis < axes; ++axis) {
    const size_t to = 3 - axes + axis;
    sizes.stride[to] = window.at(Attribute::CONVOLUTION_FILTER_STRIDES).as<int64_t>(axis);
    sizes.dilation[to] = window.at(Attribute::CONVOLUTION_DILATIONS).as<int64_t>(axis);
    sizes.low[to] = window.at(Attribute::CONVOLUTION_PRE_PADDINGS).as<int64_t>(axis);
  }
  return sizes;
}

size_t index_in(const std::array<int64_t, 5>& dims, const std::array<int64_t, 5>& at) {
  int64_t index = 0;
  for (size_t axis = 0; axis < 5; ++axis) index = index * dims[axis] + at[axis];
  return static_cast<size_t>(index);
}

// Calls visit(x, w, y) with the indices of the elements, for each product of the convolution.
template <class Visit>
void each_product(const Sizes& s, const Visit& visit) {
  const int64_t outputs = s.w[0] / (s.x[1] / s.w[1]);  // output channels of a group
  const int64_t positions = s.y[2] * s.y[3] * s.y[4], taps = s.w[2] * s.w[3] * s.w[4];
  for (int64_t n = 0; n < s.y[0]; ++n) {
    for (int64_t o = 0; o < s.y[1]; ++o) {
      for (int64_t e = 0; e < positions; ++e) {
        for (int64_t k = 0; k < taps; ++k) {
          const std::array<int64_t, 3> at = {e / (s.y[3] * s.y[4]), e / s.y[4] % s.y[3], e % s.y[4]};
          const std::array<int64_t, 3> tap = {k / (s.w[3] * s.w[4]), k / s.w[4] % s.w[3], k % s.w[4]};
          std::array<int64_t, 3> from{};
          bool inside = true;
          for (size_t axis = 0; axis < 3; ++axis) {
            from[axis] = at[axis] * s.stride[axis] - s.low[axis] + tap[axis] * s.dilation[axis];
            inside = inside && from[axis] >= 0 && from[axis] < s.x[axis + 2];
          }
          for (int64_t c = 0; inside && c < s.w[1]; ++c) {
            visit(index_in(s.x, {n, o / outputs * s.w[1] + c, from[0], from[1], from[2]}),
                  index_in(s.w, {o, c, tap[0], tap[1], tap[2]}), index_in(s.y, {n, o, at[0], at[1], at[2]}));
          }
        }
      }
    }
  }
}

Elements convolved(const Body& operation, const std::function<Elements(const Body&)>& value) {
  const Names names = names_of(operation.kind);
  const bool gives_x = operation.kind == Kind::OPERATION_CONVOLUTION_BACKWARD_DATA;
  const bool gives_w = operation.kind == Kind::OPERATION_CONVOLUTION_BACKWARD_FILTER;
  const auto load = [&](Attribute name, bool is_result) {
    const Body& tensor = operation.body(name);
    return is_result ? Elements(static_cast<size_t>(count_of(dims_of(tensor)))) : value(tensor);
  };
  Elements x = load(names.x, gives_x), w = load(names.w, gives_w), y = load(names.y, !gives_x && !gives_w);
  each_product(sizes_of(operation), [&](size_t i, size_t j, size_t k) {
    if (gives_x)
      x[i] += w[j] * y[k];
    else if (gives_w)
      w[j] += x[i] * y[k];
    else
      y[k] += x[i] * w[j];
  });
  return gives_x ? x : gives_w ? w : y;
}

Elements pointwise(const Body& operation, const std::function<Elements(const Body&)>& value) {
  const Body& tensor = operation.body(Attribute::OPERATION_POINTWISE_XDESC);
  Elements x = value(tensor);
  if (!operation.has(Attribute::OPERATION_POINTWISE_BDESC)) {
    const bool keeps_nan =
        operation.body(Attribute::OPERATION_POINTWISE_PW_DESCRIPTOR).has(Attribute::POINTWISE_NAN_PROPAGATION);
    for (double& each : x) each = each > 0 || (keeps_nan && std::isnan(each)) ? each : 0;
    return x;
  }
  const Body& other = operation.body(Attribute::OPERATION_POINTWISE_BDESC);
  const Elements b = value(other);
  const std::vector<int64_t> dims = dims_of(tensor), added = dims_of(other);
  for (size_t i = 0; i < x.size(); ++i) {
    auto left = static_cast<int64_t>(i);
    int64_t from = 0, stride = 1;
    for (size_t axis = dims.size(); axis-- > 0; left /= dims[axis]) {
      if (added[axis] != 1) from += left % dims[axis] * stride;
      stride *= added[axis];
    }
    x[i] += b[static_cast<size_t>(from)];
  }
  return x;
}

}  // namespace

bool is_convolution(Kind kind) {
  return kind == Kind::OPERATION_CONVOLUTION_FORWARD || kind == Kind::OPERATION_CONVOLUTION_BACKWARD_DATA ||
         kind == Kind::OPERATION_CONVOLUTION_BACKWARD_FILTER;
}

Names names_of(Kind kind) {
  using A = Attribute;
  if (kind == Kind::OPERATION_CONVOLUTION_BACKWARD_DATA) {
    return {A::OPERATION_CONVOLUTION_BWD_DATA_ALPHA,     A::OPERATION_CONVOLUTION_BWD_DATA_BETA,
            A::OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, A::OPERATION_CONVOLUTION_BWD_DATA_DX,
            A::OPERATION_CONVOLUTION_BWD_DATA_W,         A::OPERATION_CONVOLUTION_BWD_DATA_DY};
  }
  if (kind == Kind::OPERATION_CONVOLUTION_BACKWARD_FILTER) {
    return {A::OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,     A::OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            A::OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, A::OPERATION_CONVOLUTION_BWD_FILTER_X,
            A::OPERATION_CONVOLUTION_BWD_FILTER_DW,        A::OPERATION_CONVOLUTION_BWD_FILTER_DY};
  }
  return {A::OPERATION_CONVOLUTION_FORWARD_ALPHA,     A::OPERATION_CONVOLUTION_FORWARD_BETA,
          A::OPERATION_CONVOLUTION_FORWARD_CONV_DESC, A::OPERATION_CONVOLUTION_FORWARD_X,
          A::OPERATION_CONVOLUTION_FORWARD_W,         A::OPERATION_CONVOLUTION_FORWARD_Y};
}

std::string complaint_about(const Body& body) {
  using A = Attribute;
  std::string found;
  const Names names = names_of(body.kind);
  switch (body.kind) {
    case Kind::TENSOR:
      found = missing(body, {A::TENSOR_DATA_TYPE, A::TENSOR_DIMENSIONS, A::TENSOR_STRIDES, A::TENSOR_UNIQUE_ID,
                             A::TENSOR_BYTE_ALIGNMENT});
      return found.empty() ? complaint_about_tensor(body) : found;
    case Kind::CONVOLUTION:
      found = missing(body, {A::CONVOLUTION_COMP_TYPE, A::CONVOLUTION_CONV_MODE, A::CONVOLUTION_SPATIAL_DIMS,
                             A::CONVOLUTION_DILATIONS, A::CONVOLUTION_FILTER_STRIDES, A::CONVOLUTION_PRE_PADDINGS,
                             A::CONVOLUTION_POST_PADDINGS});
      return found.empty() ? complaint_about_window(body) : found;
    case Kind::OPERATION_CONVOLUTION_FORWARD:
    case Kind::OPERATION_CONVOLUTION_BACKWARD_DATA:
    case Kind::OPERATION_CONVOLUTION_BACKWARD_FILTER:
      found = missing(body, {names.alpha, names.beta, names.window, names.x, names.w, names.y});
      return found.empty() ? complaint_about_convolution(body) : found;
    case Kind::POINTWISE: return missing(body, {A::POINTWISE_MODE, A::POINTWISE_MATH_PREC});
    case Kind::OPERATION_POINTWISE:
      found = missing(
          body, {A::OPERATION_POINTWISE_PW_DESCRIPTOR, A::OPERATION_POINTWISE_XDESC, A::OPERATION_POINTWISE_YDESC});
      return found.empty() ? complaint_about_pointwise(body) : found;
    case Kind::OPERATIONGRAPH:
      found = missing(body, {A::OPERATIONGRAPH_HANDLE, A::OPERATIONGRAPH_OPS});
      return found.empty() ? complaint_about_graph(body) : found;
    case Kind::ENGINEHEUR: return missing(body, {A::ENGINEHEUR_OPERATION_GRAPH, A::ENGINEHEUR_MODE});
    case Kind::EXECUTION_PLAN: return missing(body, {A::EXECUTION_PLAN_HANDLE, A::EXECUTION_PLAN_ENGINE_CONFIG});
    case Kind::VARIANT_PACK:
      found = missing(body, {A::VARIANT_PACK_UNIQUE_IDS, A::VARIANT_PACK_DATA_POINTERS, A::VARIANT_PACK_WORKSPACE});
      if (!found.empty()) return found;
      return body.at(A::VARIANT_PACK_UNIQUE_IDS).count == body.at(A::VARIANT_PACK_DATA_POINTERS).count
                 ? ""
                 : "not as many addresses as names";
    default: return "it comes from the library";
  }
}

// The rules of cuDNN 9.28 on an H100: all tensors have one order of axes and one type. A convolution that is not
// transposed may be followed by the sum with a tensor, a bias, and a relu; the bias is always present.
bool is_served(const Body& graph) {
  const std::vector<BodyPtr>& operations = graph.at(Attribute::OPERATIONGRAPH_OPS).bodies;
  bool planes = true, last = true;
  std::set<int32_t> types;
  std::string steps;
  for (const BodyPtr& operation : operations) {
    const std::vector<const Body*> tensors = tensors_of(*operation);
    for (const Body* tensor : tensors) {
      planes = planes && lies(*tensor, false);
      last = last && lies(*tensor, true);
      if (!is_virtual(*tensor)) types.insert(dtype_of(*tensor));
    }
    if (is_convolution(operation->kind)) continue;
    const bool spreads = tensors.size() == 3 && dims_of(*tensors[1])[2] == 1 && dims_of(*tensors[0])[2] != 1;
    steps += tensors.size() == 2 ? 'r' : spreads ? 'b' : 'z';
  }
  const bool is_known = steps.empty() || steps == "b" || steps == "br" || steps == "zb" || steps == "zbr";
  if (!steps.empty() && operations[0]->kind != Kind::OPERATION_CONVOLUTION_FORWARD) return false;
  return is_known && types.size() == 1 && (planes || last);
}

bool is_gradient_of_filter(const Body& graph) {
  return graph.at(Attribute::OPERATIONGRAPH_OPS).bodies[0]->kind == Kind::OPERATION_CONVOLUTION_BACKWARD_FILTER;
}

std::vector<int64_t> names_bound(const Body& graph) {
  std::vector<int64_t> names;
  for (const BodyPtr& operation : graph.at(Attribute::OPERATIONGRAPH_OPS).bodies) {
    for (const Body* tensor : tensors_of(*operation)) {
      if (!is_virtual(*tensor)) names.push_back(id_of(*tensor));
    }
  }
  return names;
}

void compute(const Body& graph, const std::map<int64_t, void*>& addresses, bool rounds_to_tf32) {
  std::map<int64_t, Elements> values;  // the elements of virtual tensors
  const auto value = [&](const Body& tensor) {
    return is_virtual(tensor) ? values.at(id_of(tensor)) : read(tensor, addresses.at(id_of(tensor)));
  };
  const auto factor = [&](const Body& tensor) {
    Elements elements = value(tensor);
    if (!rounds_to_tf32 || dtype_of(tensor) == EP_DTYPE_f64) return elements;
    for (double& each : elements) each = cuda::to_tf32(each);
    return elements;
  };
  for (const BodyPtr& operation : graph.at(Attribute::OPERATIONGRAPH_OPS).bodies) {
    const Elements result =
        is_convolution(operation->kind) ? convolved(*operation, factor) : pointwise(*operation, value);
    const Body& tensor = *tensors_of(*operation).back();
    if (is_virtual(tensor))
      values[id_of(tensor)] = result;
    else
      write(tensor, result, addresses.at(id_of(tensor)));
  }
}

}  // namespace tenon::fakes::cudnn
