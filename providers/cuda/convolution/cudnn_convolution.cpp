// convolution and convolution_weight on cuDNN. cuDNN wants all operands in one order of axes, channels second or
// channels last; operands in another order are copied through the workspace. Added tensor, bias and relu become part of
// cuDNN's graph if it has an engine for that. Other epilogues, and those without an engine, run as kernels after it
// (convolution_tail.h).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "providers/cuda/convolution/convolution.h"
#include "providers/cuda/convolution/cudnn_way.h"
#include "providers/cuda/convolution/staged.h"

namespace tenon::provider::cuda {
namespace {

constexpr int32_t wanted_alignment = 16;                 // alignment that the plans are made for
constexpr uint64_t least_workspace = UINT64_C(1) << 30;  // limit of cuDNN's workspace; or twice the operands, if that
                                                         // is more
constexpr uint64_t workspace_share = 8;  // the workspace is at most this fraction (1 / n) of the device's memory

// Logs once that cuDNN is missing.
const std::string& tell_missing(const ep_device& device, const std::string& missing) {
  if (missing.empty()) return missing;
  device.cudnn->tell_once([&] {
    log_line(device.host, EP_LOG_WARNING, "load",
             "Convolutions on %s run as matrix products, which is slower, and their gradients run elsewhere: %s.",
             device.facts.name.c_str(), missing.c_str());
  });
  return missing;
}

// The steps of a launch: copies of inputs, cuDNN's plan, a copy of the result, the tail.
struct Parts {
  CudnnPlan plan;
  std::vector<int32_t> operands;  // operands of the plan
  std::vector<Staged> staged;
  std::optional<ConvolutionTail> tail;
  uint64_t zeros = 0;         // bytes
  uint64_t zeros_offset = 0;  // offset in the workspace
  uint64_t plan_offset = 0;   // offset of cuDNN's part of the workspace
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
    if (const ep_status status = copy(stream, launch, true, error); status != EP_STATUS_OK) return status;
    if (const ep_status status = execute(stream, launch, product, error); status != EP_STATUS_OK) return status;
    if (const ep_status status = copy(stream, launch, false, error); status != EP_STATUS_OK) return status;
    return parts_.tail ? parts_.tail->run(stream, launch, product, error) : EP_STATUS_OK;
  }

 private:
  // Copies the staged inputs (if `inputs`), or the staged result.
  ep_status copy(ep_stream* stream, const ep_launch& launch, bool inputs, ep_error** error) const {
    for (const Staged& each : parts_.staged) {
      if ((each.operand() != 0) != inputs) continue;
      if (const ep_status status = each.run(stream, launch, error); status != EP_STATUS_OK) return status;
    }
    if (!inputs || parts_.zeros == 0) return EP_STATUS_OK;
    const CUdeviceptr zeros = address_of(behind(launch.workspace, parts_.zeros_offset));
    const CUresult cleared = device->driver->memset_d8_async(zeros, 0, parts_.zeros, stream->handle);
    return cleared == CUDA_SUCCESS ? EP_STATUS_OK : driver_failed(device, cleared, "clearing memory", error);
  }

  // The addresses of the plan's tensors and their ids.
  struct Addresses {
    std::vector<int64_t> ids;
    std::vector<void*> pointers;

    void add(int64_t id, ep_buffer at) {
      ids.push_back(id);
      pointers.push_back(reinterpret_cast<void*>(address_of(at)));
    }
  };
  Addresses addresses(const ep_launch& launch, ep_buffer product) const {
    Addresses result;
    for (const int32_t index : parts_.operands) {
      ep_buffer at = index == 0 ? product : launch.operands[index];
      for (const Staged& each : parts_.staged) {
        if (each.operand() == index) at = each.in(launch);
      }
      result.add(id_of(index), at);
    }
    if (parts_.zeros != 0) result.add(zeros_id, behind(launch.workspace, parts_.zeros_offset));
    return result;
  }

  ep_status execute(ep_stream* stream, const ep_launch& launch, ep_buffer product, ep_error** error) const {
    const Addresses tensors = addresses(launch, product);
    void* own = reinterpret_cast<void*>(address_of(behind(launch.workspace, parts_.plan_offset)));
    if (parts_.plan.workspace == 0) own = nullptr;
    Cudnn& library = *device->cudnn;
    const std::lock_guard lock(library.mutex());
    CudnnCalls calls(library);
    const CudnnDescriptor pack = calls.create(cudnn::Kind::VARIANT_PACK);
    calls.set(pack, cudnn::Attribute::VARIANT_PACK_UNIQUE_IDS, cudnn::Type::INT64, std::span(tensors.ids));
    calls.set(pack, cudnn::Attribute::VARIANT_PACK_DATA_POINTERS, cudnn::Type::VOID_PTR, std::span(tensors.pointers));
    calls.set(pack, cudnn::Attribute::VARIANT_PACK_WORKSPACE, cudnn::Type::VOID_PTR, own);
    calls.finalize(pack, "addresses");
    if (calls.ok()) calls.keep(library.set_stream(library.handle(), stream->handle), "cudnnSetStream");
    if (calls.ok()) {
      calls.keep(library.execute(library.handle(), parts_.plan.plan.get(), pack.get()), "cudnnBackendExecute");
    }
    return calls.ok() ? EP_STATUS_OK : failed(calls, error);
  }

  // The library only reports that it failed. The driver knows if the device is lost.
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

CudnnLimits limits_of(const ep_device& device, const ep_primitive_desc& desc, const Way& way) {
  const CudnnProblem problem = problem_of(desc);
  uint64_t operands = 0;
  for (const int32_t index : problem.operands()) {
    const ep_operand_desc& operand = desc.operands[index];
    operands += static_cast<uint64_t>(elements_of(operand) * dtype_size(operand.dtype));
  }
  const bool is_f32 = desc.operands[problem.src()].dtype == EP_DTYPE_f32;
  return {std::min(std::max(least_workspace, 2 * operands), device.facts.memory / workspace_share),
          is_f32 && desc.precision == EP_PRECISION_RELAXED, is_f32 && !way.widened};
}

// Makes the steps other than the plan: copies and the tail.
Refusal make_rest(ep_device& device, const ep_primitive_desc& desc, const Way& way, const WayGraph& graph,
                  Parts* parts) {
  if (has_tail(desc) && !way.fused) {
    parts->tail.emplace();
    if (Refusal refusal = ConvolutionTail::make(device, desc, way.channels_last, &*parts->tail)) return refusal;
    parts->plan_offset += parts->tail->workspace();
  }
  for (const int32_t index : graph.staged()) {
    const ep_operand_desc dense = graph.dense(index);
    Staged& staged = parts->staged.emplace_back();
    if (Refusal refusal = Staged::make(device, index, desc.operands[index], dense, parts->plan_offset, &staged)) {
      return refusal;
    }
    parts->plan_offset += part_bytes(elements_of(dense), dtype_size(dense.dtype));
  }
  parts->zeros = graph.zeros();
  parts->zeros_offset = parts->plan_offset;
  parts->plan_offset += parts->zeros;
  parts->operands = graph.operands();
  return {};
}

// The rankings of engines to try. Narrow convolutions have a matrix product, which is faster than the engines of last
// resort. Those do not use tensor cores, so for f32 they are as good as others.
std::vector<cudnn::HeurMode> rankings_of(const ep_primitive_desc& desc) {
  const CudnnProblem problem = problem_of(desc);
  const bool narrow = dtype_size(desc.operands[problem.src()].dtype) == 2;
  if (narrow && problem.result == ConvolutionResult::Y) return {cudnn::HeurMode::INSTANT};
  return {cudnn::HeurMode::INSTANT, cudnn::HeurMode::FALLBACK};
}

}  // namespace

Refusal CudnnConvolution::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_no_problem(desc)) return refusal;
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
  const std::vector<Way> ways = ways_of(desc);
  std::vector<std::unique_ptr<WayGraph>> graphs;
  std::string last;
  const std::lock_guard lock(device.cudnn->mutex());
  for (const cudnn::HeurMode mode : rankings_of(desc)) {
    for (size_t i = 0; i < ways.size(); ++i) {
      if (wants_to_stop(device.host)) return Refusal::failure(EP_STATUS_CANCELLED, "the host asked to stop");
      if (i == graphs.size()) graphs.push_back(std::make_unique<WayGraph>(*device.cudnn, desc, ways[i]));
      Parts parts;
      last = graphs[i]->graph().plan(mode, limits_of(device, desc, ways[i]), &parts.plan);
      if (!last.empty()) continue;
      if (Refusal refusal = make_rest(device, desc, ways[i], *graphs[i], &parts)) return refusal;
      info.host_bytes = sizeof(CudnnPrimitive) + (UINT64_C(1) << 16);
      *out = make_primitive<CudnnPrimitive>(device, desc, std::move(parts));
      return {};
    }
  }
  return Refusal::because("cuDNN has no engine for it: %s", last.c_str());
}

}  // namespace tenon::provider::cuda
