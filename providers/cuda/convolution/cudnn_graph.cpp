#include "providers/cuda/convolution/cudnn_graph.h"

#include <fmt/core.h>

#include <algorithm>

#include "sdk/provider/descriptor.h"

namespace tenon::provider::cuda {
namespace {

using cudnn::Attribute;
using cudnn::Kind;
using cudnn::NumericalNote;
using cudnn::Type;

// The alignment of every address, even if the descriptor promises less. It is a multiple of the size of every element.
constexpr int64_t tensor_alignment = 16;

// Why an engine with `note` is refused. Winograd's transforms and FFTs mix neighbours: the error of a result then
// depends on elements outside its window, and a NaN spreads to it.
const char* objection(NumericalNote note, const CudnnLimits& limits) {
  switch (note) {
    case NumericalNote::NONDETERMINISTIC: return "its bits differ from run to run";
    case NumericalNote::REDUCED_PRECISION_REDUCTION: return "it sums in a narrower type";
    case NumericalNote::TENSOR_CORE: return limits.is_f32 && !limits.may_narrow ? "tensor cores round f32" : nullptr;
    case NumericalNote::DOWN_CONVERT_INPUTS: return limits.may_narrow ? nullptr : "it rounds its inputs";
    case NumericalNote::FFT: return limits.may_narrow ? nullptr : "an FFT mixes neighbours";
    case NumericalNote::WINOGRAD:
    case NumericalNote::WINOGRAD_TILE_4x4:
    case NumericalNote::WINOGRAD_TILE_6x6:
    case NumericalNote::WINOGRAD_TILE_13x13:
      return limits.may_narrow ? nullptr : "Winograd's transforms mix neighbours";
    default: return nullptr;
  }
}

const char* text_of(Kind kind) {
  switch (kind) {
    case Kind::TENSOR: return "a tensor";
    case Kind::CONVOLUTION: return "a convolution";
    case Kind::POINTWISE: return "an element-wise function";
    case Kind::OPERATIONGRAPH: return "a graph";
    case Kind::ENGINEHEUR: return "a ranking";
    case Kind::ENGINECFG: return "an engine's configuration";
    case Kind::ENGINE: return "an engine";
    case Kind::EXECUTION_PLAN: return "a plan";
    case Kind::VARIANT_PACK: return "addresses";
    default: return "an operation";
  }
}

std::string text_of(Attribute attribute) { return fmt::format("attribute {}", static_cast<int32_t>(attribute)); }

std::vector<cudnn::Descriptor> pointers(const std::vector<CudnnDescriptor>& descriptors) {
  std::vector<cudnn::Descriptor> result(descriptors.size());
  std::transform(descriptors.begin(), descriptors.end(), result.begin(),
                 [](const CudnnDescriptor& each) { return each.get(); });
  return result;
}

// The attribute names of a convolution's operation.
struct OperationNames {
  Kind kind;
  Attribute alpha, beta, convolution, x, w, y;
};

constexpr OperationNames names_of(ConvolutionResult result) {
  switch (result) {
    case ConvolutionResult::X:
      return {Kind::OPERATION_CONVOLUTION_BACKWARD_DATA,      Attribute::OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              Attribute::OPERATION_CONVOLUTION_BWD_DATA_BETA, Attribute::OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              Attribute::OPERATION_CONVOLUTION_BWD_DATA_DX,   Attribute::OPERATION_CONVOLUTION_BWD_DATA_W,
              Attribute::OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvolutionResult::W:
      return {Kind::OPERATION_CONVOLUTION_BACKWARD_FILTER,      Attribute::OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              Attribute::OPERATION_CONVOLUTION_BWD_FILTER_BETA, Attribute::OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              Attribute::OPERATION_CONVOLUTION_BWD_FILTER_X,    Attribute::OPERATION_CONVOLUTION_BWD_FILTER_DW,
              Attribute::OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default:
      return {Kind::OPERATION_CONVOLUTION_FORWARD,           Attribute::OPERATION_CONVOLUTION_FORWARD_ALPHA,
              Attribute::OPERATION_CONVOLUTION_FORWARD_BETA, Attribute::OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              Attribute::OPERATION_CONVOLUTION_FORWARD_X,    Attribute::OPERATION_CONVOLUTION_FORWARD_W,
              Attribute::OPERATION_CONVOLUTION_FORWARD_Y};
  }
}

}  // namespace

cudnn::DataType cudnn_type(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16: return cudnn::DataType::HALF;
    case EP_DTYPE_bf16: return cudnn::DataType::BFLOAT16;
    case EP_DTYPE_f64: return cudnn::DataType::DOUBLE;
    default: return cudnn::DataType::FLOAT;
  }
}

void CudnnCalls::keep(cudnn::Status status, const char* call, const char* what) {
  if (!ok() || status == cudnn::SUCCESS) return;
  status_ = status;
  char more[256] = {};
  library_.get_last_error_string(more, sizeof more);
  more[sizeof more - 1] = '\0';
  failure_ = fmt::format("{}{}{}: {} ({})", call, what[0] != '\0' ? ", " : "", what, library_.get_error_string(status),
                         status);
  if (more[0] != '\0') failure_ += fmt::format(": {}", more);
}

CudnnDescriptor CudnnCalls::create(Kind kind) {
  cudnn::Descriptor made = nullptr;
  if (ok()) keep(library_.descriptor_create(kind, &made), "cudnnBackendCreateDescriptor", text_of(kind));
  return {library_, ok() ? made : nullptr};
}

void CudnnCalls::finalize(const CudnnDescriptor& descriptor, const char* name) {
  if (ok()) keep(library_.descriptor_finalize(descriptor.get()), "cudnnBackendFinalize", name);
}

void CudnnCalls::set(const CudnnDescriptor& descriptor, Attribute attribute, Type type, int64_t count,
                     const void* values) {
  if (!ok()) return;
  const cudnn::Status status = library_.attribute_set(descriptor.get(), attribute, type, count, values);
  if (status != cudnn::SUCCESS) keep(status, "cudnnBackendSetAttribute", text_of(attribute).c_str());
}

int64_t CudnnCalls::get(const CudnnDescriptor& descriptor, Attribute attribute, Type type, int64_t most, void* values) {
  int64_t count = 0;
  if (!ok()) return 0;
  const cudnn::Status status = library_.attribute_get(descriptor.get(), attribute, type, most, &count, values);
  if (status != cudnn::SUCCESS) keep(status, "cudnnBackendGetAttribute", text_of(attribute).c_str());
  return ok() ? count : 0;
}

size_t CudnnGraph::add(const CudnnTensor& tensor) {
  CudnnDescriptor descriptor = calls_.create(Kind::TENSOR);
  const auto rank = static_cast<size_t>(tensor.rank);
  calls_.set(descriptor, Attribute::TENSOR_DATA_TYPE, Type::DATA_TYPE, cudnn_type(tensor.dtype));
  calls_.set(descriptor, Attribute::TENSOR_DIMENSIONS, Type::INT64, std::span(tensor.dims.data(), rank));
  calls_.set(descriptor, Attribute::TENSOR_STRIDES, Type::INT64, std::span(tensor.strides.data(), rank));
  calls_.set(descriptor, Attribute::TENSOR_UNIQUE_ID, Type::INT64, tensor.id);
  calls_.set(descriptor, Attribute::TENSOR_BYTE_ALIGNMENT, Type::INT64, tensor_alignment);
  calls_.set(descriptor, Attribute::TENSOR_IS_VIRTUAL, Type::BOOLEAN, tensor.is_virtual);
  calls_.finalize(descriptor, "a tensor");
  tensors_.push_back(std::move(descriptor));
  return tensors_.size() - 1;
}

void CudnnGraph::add_operation(CudnnDescriptor operation, const char* name) {
  calls_.finalize(operation, name);
  operations_.push_back(std::move(operation));
}

void CudnnGraph::convolve(ConvolutionResult result, const CudnnWindow& window, int32_t compute, size_t x, size_t w,
                          size_t y) {
  CudnnDescriptor convolution = calls_.create(Kind::CONVOLUTION);
  const auto spatial = static_cast<size_t>(window.spatial);
  calls_.set(convolution, Attribute::CONVOLUTION_COMP_TYPE, Type::DATA_TYPE, cudnn_type(compute));
  calls_.set(convolution, Attribute::CONVOLUTION_CONV_MODE, Type::CONVOLUTION_MODE,
             cudnn::ConvolutionMode::CROSS_CORRELATION);
  calls_.set(convolution, Attribute::CONVOLUTION_SPATIAL_DIMS, Type::INT64, int64_t{window.spatial});
  const auto set_axes = [&](Attribute attribute, const std::array<int64_t, 3>& values) {
    calls_.set(convolution, attribute, Type::INT64, std::span(values.data(), spatial));
  };
  set_axes(Attribute::CONVOLUTION_FILTER_STRIDES, window.stride);
  set_axes(Attribute::CONVOLUTION_DILATIONS, window.dilation);
  set_axes(Attribute::CONVOLUTION_PRE_PADDINGS, window.low);
  set_axes(Attribute::CONVOLUTION_POST_PADDINGS, window.high);
  calls_.finalize(convolution, "a window");

  const OperationNames names = names_of(result);
  CudnnDescriptor operation = calls_.create(names.kind);
  calls_.set(operation, names.convolution, convolution);
  calls_.set(operation, names.x, tensors_[x]);
  calls_.set(operation, names.w, tensors_[w]);
  calls_.set(operation, names.y, tensors_[y]);
  if (compute == EP_DTYPE_f64) {
    calls_.set(operation, names.alpha, Type::DOUBLE, 1.0);
    calls_.set(operation, names.beta, Type::DOUBLE, 0.0);
  } else {
    calls_.set(operation, names.alpha, Type::FLOAT, 1.0F);
    calls_.set(operation, names.beta, Type::FLOAT, 0.0F);
  }
  parts_.push_back(std::move(convolution));
  add_operation(std::move(operation), "a convolution");
}

CudnnDescriptor CudnnGraph::pointwise(cudnn::PointwiseMode mode) {
  CudnnDescriptor function = calls_.create(Kind::POINTWISE);
  calls_.set(function, Attribute::POINTWISE_MODE, Type::POINTWISE_MODE, mode);
  calls_.set(function, Attribute::POINTWISE_MATH_PREC, Type::DATA_TYPE, cudnn::DataType::FLOAT);
  if (mode == cudnn::PointwiseMode::RELU_FWD) {
    calls_.set(function, Attribute::POINTWISE_NAN_PROPAGATION, Type::NAN_PROPOGATION,
               cudnn::NanPropagation::PROPAGATE_NAN);
  }
  calls_.finalize(function, "an element-wise function");
  CudnnDescriptor operation = calls_.create(Kind::OPERATION_POINTWISE);
  calls_.set(operation, Attribute::OPERATION_POINTWISE_PW_DESCRIPTOR, function);
  parts_.push_back(std::move(function));
  return operation;
}

void CudnnGraph::sum(size_t x, size_t b, size_t y) {
  CudnnDescriptor operation = pointwise(cudnn::PointwiseMode::ADD);
  calls_.set(operation, Attribute::OPERATION_POINTWISE_XDESC, tensors_[x]);
  calls_.set(operation, Attribute::OPERATION_POINTWISE_BDESC, tensors_[b]);
  calls_.set(operation, Attribute::OPERATION_POINTWISE_YDESC, tensors_[y]);
  add_operation(std::move(operation), "a sum");
}

void CudnnGraph::relu(size_t x, size_t y) {
  CudnnDescriptor operation = pointwise(cudnn::PointwiseMode::RELU_FWD);
  calls_.set(operation, Attribute::OPERATION_POINTWISE_XDESC, tensors_[x]);
  calls_.set(operation, Attribute::OPERATION_POINTWISE_YDESC, tensors_[y]);
  add_operation(std::move(operation), "a relu");
}

std::vector<CudnnDescriptor> CudnnGraph::ranking(cudnn::HeurMode mode, CudnnCalls* calls) {
  CudnnDescriptor ranking = calls->create(Kind::ENGINEHEUR);
  calls->set(ranking, Attribute::ENGINEHEUR_OPERATION_GRAPH, graph_);
  calls->set(ranking, Attribute::ENGINEHEUR_MODE, Type::HEUR_MODE, mode);
  calls->finalize(ranking, "a ranking");
  int64_t count = calls->get(ranking, Attribute::ENGINEHEUR_RESULTS, Type::BACKEND_DESCRIPTOR, 0, nullptr);
  // cuDNN fills descriptors that the caller has created.
  std::vector<CudnnDescriptor> found;
  for (int64_t i = 0; i < count; ++i) found.push_back(calls->create(Kind::ENGINECFG));
  std::vector<cudnn::Descriptor> out = pointers(found);
  count = calls->get(ranking, Attribute::ENGINEHEUR_RESULTS, Type::BACKEND_DESCRIPTOR, count, out.data());
  if (static_cast<size_t>(count) < found.size()) found.resize(static_cast<size_t>(count));
  return found;
}

std::string CudnnGraph::why_not(const CudnnDescriptor& engine_config, const CudnnLimits& limits) const {
  CudnnCalls calls(library_);
  const CudnnDescriptor engine = calls.create(Kind::ENGINE);
  cudnn::Descriptor out = engine.get();
  calls.get(engine_config, Attribute::ENGINECFG_ENGINE, Type::BACKEND_DESCRIPTOR, 1, &out);
  std::array<NumericalNote, 32> notes{};
  const int64_t count = calls.get(engine, Attribute::ENGINE_NUMERICAL_NOTE, Type::NUMERICAL_NOTE,
                                  static_cast<int64_t>(notes.size()), notes.data());
  for (const NumericalNote note : std::span(notes).first(std::min(static_cast<size_t>(count), notes.size()))) {
    if (const char* why = objection(note, limits)) return why;
  }
  return calls.failure();
}

std::string CudnnGraph::plan(cudnn::HeurMode mode, const CudnnLimits& limits, CudnnPlan* out) {
  if (graph_.get() == nullptr) {
    graph_ = calls_.create(Kind::OPERATIONGRAPH);
    const std::vector<cudnn::Descriptor> operations = pointers(operations_);
    calls_.set(graph_, Attribute::OPERATIONGRAPH_HANDLE, Type::HANDLE, library_.handle());
    calls_.set(graph_, Attribute::OPERATIONGRAPH_OPS, Type::BACKEND_DESCRIPTOR, std::span(operations));
    calls_.finalize(graph_, "a graph");
  }
  if (!calls_.ok()) return calls_.failure();
  CudnnCalls asking(library_);
  std::vector<CudnnDescriptor> candidates = ranking(mode, &asking);
  if (!asking.ok()) return asking.failure();
  std::string last = "it offers no engine";
  for (CudnnDescriptor& candidate : candidates) {
    last = why_not(candidate, limits);
    if (!last.empty()) continue;
    CudnnCalls calls(library_);
    CudnnDescriptor plan = calls.create(Kind::EXECUTION_PLAN);
    calls.set(plan, Attribute::EXECUTION_PLAN_HANDLE, Type::HANDLE, library_.handle());
    calls.set(plan, Attribute::EXECUTION_PLAN_ENGINE_CONFIG, candidate);
    calls.finalize(plan, "a plan");
    int64_t workspace = 0;
    calls.get(plan, Attribute::EXECUTION_PLAN_WORKSPACE_SIZE, Type::INT64, 1, &workspace);
    last = calls.failure();
    if (!calls.ok()) continue;
    if (static_cast<uint64_t>(workspace) > limits.workspace) {
      last = fmt::format("it wants {} bytes of workspace, and {} are the most", workspace, limits.workspace);
      continue;
    }
    out->plan = std::move(plan);
    out->engine_config = std::move(candidate);
    out->workspace = static_cast<uint64_t>(workspace);
    return {};
  }
  return last;
}

}  // namespace tenon::provider::cuda
