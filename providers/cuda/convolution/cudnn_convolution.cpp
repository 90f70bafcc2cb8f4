// convolution and convolution_weight on cuDNN. A convolution Y of images X with a filter W, its gradient with respect
// to X (a transposed convolution) and to W are one problem with another result. cuDNN wants all operands in one order
// of axes, planes or channels last; operands in another order are copied through the workspace. A bias, the sum with a
// tensor and a relu go into cuDNN's graph where it has an engine for that; other epilogues, and those that it has no
// engine for, run as kernels after it (convolution_tail.h).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "providers/cuda/convolution/convolution.h"
#include "providers/cuda/convolution/convolution_tail.h"
#include "providers/cuda/convolution/cudnn_graph.h"
#include "providers/cuda/movement/mover.h"

namespace tenon::provider::cuda {
namespace {

constexpr int32_t most_spatial = 3;
constexpr int32_t wanted_alignment = 16;                 // what the plans are made for
constexpr int64_t most_elements = INT64_C(0x7fffffff);   // of an operand; many of cuDNN's kernels count in 32 bits
constexpr uint64_t least_workspace = UINT64_C(1) << 30;  // cuDNN may take so much, or twice the operands,
constexpr uint64_t workspace_share = 8;                  // but at most one in so many bytes of the device

// The three operands of a problem by number, and which of them is its result.
struct Problem {
  ConvolutionResult result;
  int32_t x, w, y;
  int32_t spatial;
  int64_t groups;
  std::array<int64_t, most_spatial> stride, dilation, low, high;

  std::array<int32_t, 3> operands() const { return {x, w, y}; }
  int32_t src() const { return result == ConvolutionResult::X ? y : x; }
};

template <class Attributes>
void read_window(const Attributes& given, Problem* problem) {
  problem->spatial = given.spatial_rank;
  problem->groups = given.groups;
  std::copy_n(given.stride, most_spatial, problem->stride.begin());
  std::copy_n(given.dilation, most_spatial, problem->dilation.begin());
  std::copy_n(given.pad_low, most_spatial, problem->low.begin());
  std::copy_n(given.pad_high, most_spatial, problem->high.begin());
}

Problem problem_of(const ep_primitive_desc& desc) {
  Problem problem{};
  const int32_t src = find_operand(desc, EP_ROLE_SRC);
  if (desc.kind == EP_PRIMITIVE_convolution_weight) {
    read_window(desc.attributes.convolution_weight, &problem);
    problem.result = ConvolutionResult::W;
    problem.x = src;
    problem.w = 0;
    problem.y = find_operand(desc, EP_ROLE_GRADIENT);
    return problem;
  }
  read_window(desc.attributes.convolution, &problem);
  const bool transposed = desc.attributes.convolution.transposed != 0;
  problem.result = transposed ? ConvolutionResult::X : ConvolutionResult::Y;
  problem.x = transposed ? 0 : src;
  problem.w = find_operand(desc, EP_ROLE_WEIGHT);
  problem.y = transposed ? src : 0;
  return problem;
}

int64_t elements_of(const ep_operand_desc& operand) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    // Beyond most_elements the number itself is of no interest, and must not overflow.
    if (operand.dims[axis] > most_elements || count > most_elements) return INT64_MAX;
    count *= operand.dims[axis];
  }
  return count;
}

Refusal check_operand(const ep_primitive_desc& desc, int32_t index) {
  const ep_operand_desc& operand = desc.operands[index];
  const int64_t count = elements_of(operand);
  if (count == 0) return Refusal::because("operand %d has no elements", index);
  if (count > most_elements) {
    return Refusal::because("operand %d has more than %lld elements", index, static_cast<long long>(most_elements));
  }
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.strides[axis] == 0 && operand.dims[axis] != 1)
      return Refusal::because("operand %d is repeated by stride 0", index);
  }
  return {};
}

Refusal check_types(const ep_primitive_desc& desc, const Problem& problem) {
  const int32_t dst = desc.operands[0].dtype;
  const int32_t src = desc.operands[problem.src()].dtype;
  if (!is_floating(src) || dtype_size(src) < 2) return Refusal::because("inputs of %s", dtype_name(src));
  const bool widens = dtype_size(src) == 2 && dst == EP_DTYPE_f32;
  if (dst != src && !widens) return Refusal::because("inputs of %s to %s", dtype_name(src), dtype_name(dst));
  for (uint32_t i = 1; i < desc.operand_count; ++i) {
    const auto index = static_cast<int32_t>(i);
    const bool is_input = index == problem.x || index == problem.w || index == problem.y;
    const int32_t wanted = is_input ? src : dst;
    if (desc.operands[i].dtype != wanted)
      return Refusal::because("operand %u is %s, not %s", i, dtype_name(desc.operands[i].dtype), dtype_name(wanted));
  }
  const int32_t sum = src == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32;
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != sum)
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  return {};
}

Refusal check_operands(const ep_primitive_desc& desc) {
  const Problem problem = problem_of(desc);
  if (desc.operand_count < 3 || desc.operands[0].role != EP_ROLE_DST || problem.x < 0 || problem.w < 0 || problem.y < 0)
    return Refusal::because("an operand is missing");
  if (is_dynamic(desc)) return Refusal::because("its sizes are not static");
  if (problem.spatial < 1 || problem.spatial > most_spatial)
    return Refusal::because("%d spatial axes", problem.spatial);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& each = desc.operands[i];
    const int32_t rank = each.role == EP_ROLE_BIAS ? 1 : problem.spatial + 2;
    if (is_scalar(each) || each.rank != rank) return Refusal::because("operand %u has rank %d", i, each.rank);
  }
  for (const int32_t index : problem.operands()) {
    if (Refusal refusal = check_operand(desc, index)) return refusal;
  }
  if (problem.result == ConvolutionResult::Y && desc.operands[0].dtype == EP_DTYPE_f64)
    return Refusal::because("f64 products are faster in cuBLASLt");
  return check_types(desc, problem);
}

// cuDNN's Y follows from X and the window. A transposed convolution may be asked for more: its X can have rows that no
// window reaches.
Refusal check_window(const ep_primitive_desc& desc) {
  const Problem problem = problem_of(desc);
  const int64_t *x = desc.operands[problem.x].dims, *w = desc.operands[problem.w].dims,
                *y = desc.operands[problem.y].dims;
  if (problem.groups < 1 || x[1] != problem.groups * w[1] || w[0] != y[1] || w[0] % problem.groups != 0 || x[0] != y[0])
    return Refusal::because("%lld groups do not fit its channels", static_cast<long long>(problem.groups));
  for (int32_t axis = 0; axis < problem.spatial; ++axis) {
    const auto at = static_cast<size_t>(axis);
    constexpr int64_t most = INT32_MAX;
    const int64_t stride = problem.stride[at], dilation = problem.dilation[at];
    const int64_t low = problem.low[at], high = problem.high[at];
    if (low < 0 || high < 0) return Refusal::because("a negative border of axis %d", axis);
    if (stride < 1 || dilation < 1) return Refusal::because("a stride or a dilation below 1 along axis %d", axis);
    if (stride > most || dilation > most || low > most || high > most)
      return Refusal::because("a window beyond 32 bits along axis %d", axis);
    const int64_t room = x[axis + 2] + low + high - dilation * (w[axis + 2] - 1) - 1;
    const int64_t positions = room < 0 ? 0 : room / stride + 1;
    if (positions != y[axis + 2]) {
      return Refusal::because("%lld windows fit along axis %d, not %lld", static_cast<long long>(positions), axis,
                              static_cast<long long>(y[axis + 2]));
    }
  }
  return {};
}

// Says once that there is no cuDNN.
const std::string& tell_missing(const ep_device& device, const std::string& missing) {
  if (missing.empty()) return missing;
  device.cudnn->tell_once([&] {
    log_line(device.host, EP_LOG_WARNING, "load",
             "Convolutions on %s run as matrix products, which is slower, and their gradients elsewhere: %s.",
             device.facts.name.c_str(), missing.c_str());
  });
  return missing;
}

// True if `operand` lies dense in this order of axes. Axes of length 1 lie anywhere.
bool lies(const ep_operand_desc& operand, bool channels_last) {
  ep_operand_desc dense = operand;
  set_dense_strides(&dense, channels_last);
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.dims[axis] != 1 && operand.strides[axis] != dense.strides[axis]) return false;
  }
  return true;
}

// The order of axes in which the operands lie, the source first of all.
bool prefers_channels_last(const ep_primitive_desc& desc, const Problem& problem) {
  for (const int32_t index : {problem.src(), problem.x, problem.y, problem.w}) {
    const bool last = lies(desc.operands[index], true);
    if (last != lies(desc.operands[index], false)) return last;
  }
  return false;
}

// A way to compute: in which order of axes, and whether the tail is part of cuDNN's graph.
struct Way {
  bool channels_last;
  bool fused;
};

bool is_relu(const ep_epilogue& epilogue) { return epilogue.arity == 1 && epilogue.op == EP_UNARY_relu; }

// True if cuDNN's graph can hold the bias and all epilogues.
bool can_fuse(const ep_primitive_desc& desc) {
  const int32_t bias = find_operand(desc, EP_ROLE_BIAS);
  const ep_operand_desc& dst = desc.operands[0];
  if (desc.kind != EP_PRIMITIVE_convolution || desc.attributes.convolution.transposed != 0) return false;
  if ((bias < 0 && desc.epilogue_count == 0) || dst.dtype == EP_DTYPE_f64) return false;
  if (bias >= 0 && desc.operands[bias].strides[0] != 1 && desc.operands[bias].dims[0] != 1) return false;
  for (uint32_t i = 0; i < desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    if (is_relu(epilogue)) continue;
    if (epilogue.arity != 2 || epilogue.op != EP_BINARY_add || epilogue.role == 0) return false;
    const int32_t added = find_operand(desc, epilogue.role);
    if (added < 0 || check_operand(desc, added)) return false;
  }
  return true;
}

// Two orders of axes, the given one first.
std::vector<Way> ways_of(const ep_primitive_desc& desc) {
  const bool given = prefers_channels_last(desc, problem_of(desc));
  std::vector<Way> ways;
  if (can_fuse(desc)) ways = {{given, true}};
  const bool narrow = dtype_size(desc.operands[0].dtype) == 2;
  if (!ways.empty() && narrow) ways.push_back({!given, true});
  ways.push_back({given, false});
  ways.push_back({!given, false});
  return ways;
}

// An operand that lies in another order than cuDNN's is copied to the workspace, or from it.
struct Staged {
  int32_t operand;
  ep_operand_desc dense;
  uint64_t offset;  // in the workspace
  Mover mover;
};

// Names of tensors in a graph; 0 could mean none.
int64_t id_of(int32_t operand) { return operand + 1; }
constexpr int64_t first_virtual_id = EP_MAX_OPERANDS + 1;

// Builds the graph of one way, and notes which operands are staged.
class Building {
 public:
  Building(Cudnn& library, const ep_primitive_desc& desc, const Way& way)
      : desc_(desc), problem_(problem_of(desc)), way_(way), graph_(library) {}

  void build() {
    const bool f64 = desc_.operands[problem_.x].dtype == EP_DTYPE_f64;
    const size_t x = operand(problem_.x), w = operand(problem_.w);
    size_t y = way_.fused ? between() : operand(problem_.y);
    graph_.convolve(problem_.result, window(), f64 ? EP_DTYPE_f64 : EP_DTYPE_f32, x, w, y);
    if (way_.fused) add_tail(y);
  }
  CudnnGraph& graph() { return graph_; }
  // The operands of the graph that lie in another order.
  std::vector<int32_t> staged() const { return staged_; }
  const std::vector<int32_t>& operands() const { return operands_; }

  // Operand `index` in the order of this way; the result may have the product's dtype.
  ep_operand_desc dense(int32_t index) const {
    ep_operand_desc operand = desc_.operands[index];
    if (index == 0 && !way_.fused) operand.dtype = ConvolutionTail::product_of(desc_, way_.channels_last).dtype;
    set_dense_strides(&operand, way_.channels_last);
    return operand;
  }

 private:
  // A tensor of at least two spatial axes, since cuDNN has no fewer.
  CudnnTensor tensor(const ep_operand_desc& dense, int64_t id, bool is_virtual) const {
    const int32_t axes = std::max(problem_.spatial, 2) + 2;
    CudnnTensor made{id, dense.dtype, axes, {}, {}, is_virtual};
    const int32_t added = axes - dense.rank;
    for (int32_t axis = 0; axis < axes; ++axis) {
      const auto at = static_cast<size_t>(axis);
      const int32_t from = axis < 2 ? axis : axis - added;
      const bool is_there = axis < 2 || from >= 2;
      made.dims[at] = is_there ? dense.dims[from] : 1;
      made.strides[at] = is_there ? dense.strides[from] : dense.strides[2] * dense.dims[2];
    }
    return made;
  }

  size_t operand(int32_t index) {
    const ep_operand_desc& given = desc_.operands[index];
    const ep_operand_desc made = dense(index);
    // A product in the workspace is written in this order.
    const bool in_workspace = made.dtype != given.dtype;
    if (!in_workspace && !lies(given, way_.channels_last)) staged_.push_back(index);
    operands_.push_back(index);
    return graph_.add(tensor(made, id_of(index), false));
  }

  // A tensor of the result's dims between two operations. It is never rounded.
  size_t between() {
    ep_operand_desc made = dense(0);
    made.dtype = EP_DTYPE_f32;
    return graph_.add(tensor(made, first_virtual_id + virtual_++, true));
  }

  size_t bias(int32_t index) {
    ep_operand_desc made = desc_.operands[0];
    for (int32_t axis = 0; axis < made.rank; ++axis) {
      if (axis != 1) made.dims[axis] = 1;
    }
    set_dense_strides(&made, way_.channels_last);
    operands_.push_back(index);
    return graph_.add(tensor(made, id_of(index), false));
  }

  void add_tail(size_t value) {
    const int32_t bias_index = find_operand(desc_, EP_ROLE_BIAS);
    uint32_t left = desc_.epilogue_count + (bias_index >= 0 ? 1 : 0);
    const auto next = [&] { return --left == 0 ? operand(0) : between(); };
    if (bias_index >= 0) {
      const size_t added = bias(bias_index);
      const size_t to = next();
      graph_.sum(value, added, to);
      value = to;
    }
    for (uint32_t i = 0; i < desc_.epilogue_count; ++i) {
      const ep_epilogue& epilogue = desc_.epilogues[i];
      if (is_relu(epilogue)) {
        const size_t to = next();
        graph_.relu(value, to);
        value = to;
        continue;
      }
      const size_t added = operand(find_operand(desc_, epilogue.role));
      const size_t to = next();
      graph_.sum(value, added, to);
      value = to;
    }
  }

  CudnnWindow window() const {
    const int32_t spatial = std::max(problem_.spatial, 2);
    CudnnWindow made{spatial, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}};
    const int32_t first = spatial - problem_.spatial;
    for (int32_t axis = 0; axis < problem_.spatial; ++axis) {
      const auto to = static_cast<size_t>(first + axis), from = static_cast<size_t>(axis);
      made.stride[to] = problem_.stride[from];
      made.dilation[to] = problem_.dilation[from];
      made.low[to] = problem_.low[from];
      made.high[to] = problem_.high[from];
    }
    return made;
  }

  const ep_primitive_desc& desc_;
  const Problem problem_;
  const Way way_;
  CudnnGraph graph_;
  std::vector<int32_t> staged_;
  std::vector<int32_t> operands_;
  int64_t virtual_ = 0;
};

// What a launch does, in order: copies of inputs, cuDNN's plan, a copy of the result, the tail.
struct Parts {
  CudnnPlan plan;
  std::vector<int32_t> operands;  // of the plan
  std::vector<Staged> staged;
  std::optional<ConvolutionTail> tail;
  uint64_t plan_offset = 0;  // of cuDNN's part of the workspace
};

class CudnnPrimitive final : public ep_primitive {
 public:
  CudnnPrimitive(const ep_primitive_desc& desc, Parts parts) : desc_(desc), parts_(std::move(parts)) {}
  ~CudnnPrimitive() override {
    const Current current(device);
    const std::lock_guard lock(device->cudnn->mutex());
    parts_.plan = {};
  }

  uint64_t workspace(const ep_shape*) const override { return parts_.plan_offset + parts_.plan.workspace; }
  bool has_workspace() const override { return workspace(nullptr) != 0; }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const bool wide = parts_.tail && parts_.tail->workspace() != 0;
    const ep_buffer product = wide ? launch.workspace : launch.operands[0];
    for (const Staged& each : parts_.staged) {
      if (each.operand == 0) continue;
      const ep_status status = copy(stream, launch, each, true, error);
      if (status != EP_STATUS_OK) return status;
    }
    if (const ep_status status = execute(stream, launch, product, error); status != EP_STATUS_OK) return status;
    for (const Staged& each : parts_.staged) {
      if (each.operand != 0) continue;
      const ep_status status = copy(stream, launch, each, false, error);
      if (status != EP_STATUS_OK) return status;
    }
    return parts_.tail ? parts_.tail->run(stream, launch, product, error) : EP_STATUS_OK;
  }

 private:
  ep_status copy(ep_stream* stream, const ep_launch& launch, const Staged& staged, bool in, ep_error** error) const {
    const auto index = static_cast<uint32_t>(staged.operand);
    const OperandShape given = shape_of(desc_.operands[index], nullptr, 0);
    const OperandShape dense = shape_of(staged.dense, nullptr, 0);
    const CUdeviceptr outside = address_of(launch.operands[index]);
    const CUdeviceptr inside = address_of(behind(launch.workspace, staged.offset));
    return in ? staged.mover.run(stream, dense, inside, given, outside, error)
              : staged.mover.run(stream, given, outside, dense, inside, error);
  }

  ep_status execute(ep_stream* stream, const ep_launch& launch, ep_buffer product, ep_error** error) const {
    std::vector<int64_t> ids;
    std::vector<void*> addresses;
    for (const int32_t index : parts_.operands) {
      ep_buffer at = index == 0 ? product : launch.operands[index];
      for (const Staged& each : parts_.staged) {
        if (each.operand == index) at = behind(launch.workspace, each.offset);
      }
      ids.push_back(id_of(index));
      addresses.push_back(reinterpret_cast<void*>(address_of(at)));
    }
    void* own = reinterpret_cast<void*>(address_of(behind(launch.workspace, parts_.plan_offset)));
    if (parts_.plan.workspace == 0) own = nullptr;

    Cudnn& library = *device->cudnn;
    const std::lock_guard lock(library.mutex());
    CudnnCalls calls(library);
    const CudnnDescriptor pack = calls.create(cudnn::Kind::VARIANT_PACK);
    calls.set(pack, cudnn::Attribute::VARIANT_PACK_UNIQUE_IDS, cudnn::Type::INT64, std::span(ids));
    calls.set(pack, cudnn::Attribute::VARIANT_PACK_DATA_POINTERS, cudnn::Type::VOID_PTR, std::span(addresses));
    calls.set(pack, cudnn::Attribute::VARIANT_PACK_WORKSPACE, cudnn::Type::VOID_PTR, own);
    calls.finalize(pack, "addresses");
    if (calls.ok()) calls.keep(library.set_stream(library.handle(), stream->handle), "cudnnSetStream");
    if (calls.ok()) {
      calls.keep(library.execute(library.handle(), parts_.plan.plan.get(), pack.get()), "cudnnBackendExecute");
    }
    return calls.ok() ? EP_STATUS_OK : failed(calls, error);
  }

  // The library only says that it failed. The driver says whether the device is lost.
  ep_status failed(const CudnnCalls& calls, ep_error** error) const {
    size_t free_bytes = 0;
    size_t total = 0;
    const CUresult result = device->driver->mem_get_info(&free_bytes, &total);
    if (status_of(result) == EP_STATUS_DEVICE_LOST) {
      return driver_failed(device, result, "launching a convolution", error);
    }
    std::string operands;
    for (const int32_t index : problem_of(desc_).operands()) {
      const ep_operand_desc& operand = desc_.operands[index];
      operands += fmt::format("{}{} [{}]", operands.empty() ? "" : ", ", dtype_name(operand.dtype),
                              fmt::join(operand.dims, operand.dims + operand.rank, ", "));
    }
    const bool no_memory = calls.status() == cudnn::DEVICE_ALLOCATION_FAILED;
    return fail_text(host, error, no_memory ? EP_STATUS_OUT_OF_DEVICE_MEMORY : EP_STATUS_INTERNAL,
                     fmt::format("cuDNN failed on a {} of images, filter and response {}: {}.", kind_name(desc_.kind),
                                 operands, calls.failure()));
  }

  ep_primitive_desc desc_;
  Parts parts_;
};

CudnnLimits limits_of(const ep_device& device, const ep_primitive_desc& desc) {
  uint64_t operands = 0;
  for (const int32_t index : problem_of(desc).operands()) {
    const ep_operand_desc& operand = desc.operands[index];
    operands += static_cast<uint64_t>(elements_of(operand) * dtype_size(operand.dtype));
  }
  const int32_t src = desc.operands[problem_of(desc).src()].dtype;
  return {std::min(std::max(least_workspace, 2 * operands), device.facts.memory / workspace_share),
          desc.precision == EP_PRECISION_FAST && src == EP_DTYPE_f32, src == EP_DTYPE_f32};
}

// What is needed beside the plan: copies, and the tail.
Refusal make_rest(ep_device& device, const ep_primitive_desc& desc, const Way& way, const Building& building,
                  Parts* parts) {
  const bool has_tail = find_operand(desc, EP_ROLE_BIAS) >= 0 || desc.epilogue_count != 0;
  if (has_tail && !way.fused) {
    parts->tail.emplace();
    if (Refusal refusal = ConvolutionTail::make(device, desc, way.channels_last, &*parts->tail)) return refusal;
    parts->plan_offset += parts->tail->workspace();
  }
  for (const int32_t index : building.staged()) {
    Staged staged{index, building.dense(index), parts->plan_offset, {}};
    if (Refusal refusal = Mover::make(device, staged.dense.dtype, &staged.mover)) return refusal;
    parts->plan_offset += part_bytes(elements_of(staged.dense), dtype_size(staged.dense.dtype));
    parts->staged.push_back(std::move(staged));
  }
  parts->operands = building.operands();
  return {};
}

}  // namespace

Refusal CudnnConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = check_operands(desc)) return refusal;
  if (Refusal refusal = check_window(desc)) return refusal;
  if (Refusal refusal = ConvolutionTail::why_not(desc)) return refusal;
  const std::string& missing = tell_missing(device, device.cudnn->load());
  if (!missing.empty()) return Refusal::because("%s", missing.c_str());
  for (uint32_t i = 0; i < desc.operand_count; ++i) info.alignment[i] = wanted_alignment;
  return {};
}

Refusal CudnnConvolution::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                               ep_primitive_info& info) {
  const std::string& missing = tell_missing(device, device.cudnn->start());
  if (!missing.empty()) return Refusal::because("%s", missing.c_str());
  const CudnnLimits limits = limits_of(device, desc);
  const std::vector<Way> ways = ways_of(desc);
  std::vector<std::unique_ptr<Building>> buildings;
  std::string last;
  const std::lock_guard lock(device.cudnn->mutex());
  for (const cudnn::HeurMode mode : {cudnn::HeurMode::INSTANT, cudnn::HeurMode::FALLBACK}) {
    // The engines of last resort are slow, and a convolution has its matrix product.
    if (mode == cudnn::HeurMode::FALLBACK && problem_of(desc).result == ConvolutionResult::Y) break;
    for (size_t i = 0; i < ways.size(); ++i) {
      if (wants_to_stop(device.host)) return Refusal::failure(EP_STATUS_CANCELLED, "the host asked to stop");
      if (i == buildings.size()) {
        buildings.push_back(std::make_unique<Building>(*device.cudnn, desc, ways[i]));
        buildings[i]->build();
      }
      Parts parts;
      last = buildings[i]->graph().plan(mode, limits, &parts.plan);
      if (!last.empty()) continue;
      if (Refusal refusal = make_rest(device, desc, ways[i], *buildings[i], &parts)) return refusal;
      info.host_bytes = sizeof(CudnnPrimitive) + (UINT64_C(1) << 16);
      *out = make_primitive<CudnnPrimitive>(device, desc, std::move(parts));
      return {};
    }
  }
  return Refusal::because("cuDNN has no engine for it: %s", last.c_str());
}

}  // namespace tenon::provider::cuda
