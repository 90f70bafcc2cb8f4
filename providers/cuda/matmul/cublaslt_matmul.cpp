// matmul on cuBLASLt. f32 stays f32: no TF32, and no reduced precision in partial sums, unless the caller chooses
// speed. (CUBLAS_COMPUTE_32F never uses TF32. The pedantic type would also forbid optimisations that do not change
// precision, and thereby the fast kernels.)
#include <algorithm>
#include <memory>

#include "providers/cuda/matmul/matmul.h"
#include "providers/cuda/matmul/problem.h"

namespace tenon::provider::cuda {
namespace {

// Bytes; every launch aligns each operand so, even if the descriptor promises less.
constexpr int32_t wanted_alignment = 16;
constexpr uint64_t most_workspace =
    32 * 1024 * 1024;  // workspace: NVIDIA's advice for Hopper, and more than its advice for others

cudaDataType_t data_type(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16: return CUDA_R_16F;
    case EP_DTYPE_bf16: return CUDA_R_16BF;
    case EP_DTYPE_f64: return CUDA_R_64F;
    default: return CUDA_R_32F;
  }
}

// The compute types for inputs of `dtype`, preferred type first.
std::vector<cublasComputeType_t> compute_types(int32_t dtype, int32_t precision) {
  if (dtype == EP_DTYPE_f64) return {CUBLAS_COMPUTE_64F};
  if (dtype == EP_DTYPE_f32 && precision == EP_PRECISION_RELAXED) {
    return {CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F};
  }
  return {CUBLAS_COMPUTE_32F};
}

// Owns one cuBLASLt descriptor.
template <class Handle, class Destroy>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (handle_ != nullptr) destroy_(handle_);
  }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), destroy_(other.destroy_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  Handle get() const { return handle_; }
  Handle* out(Destroy destroy) {
    destroy_ = destroy;
    return &handle_;
  }

 private:
  Handle handle_ = nullptr;
  Destroy destroy_ = nullptr;
};
using Layout = Owned<cublasLtMatrixLayout_t, decltype(CublasLt::layout_destroy)>;
using MatmulDesc = Owned<cublasLtMatmulDesc_t, decltype(CublasLt::desc_destroy)>;
using Preference = Owned<cublasLtMatmulPreference_t, decltype(CublasLt::preference_destroy)>;

// Keeps the first failure of several calls.
class Calls {
 public:
  Calls& operator()(cublasStatus_t status) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = status;
    return *this;
  }
  bool ok() const { return status_ == CUBLAS_STATUS_SUCCESS; }
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};

// A problem in cuBLASLt's descriptors, and the algorithm that the library chose.
struct Prepared {
  LtProblem problem;
  Layout layouts[lt_operands];
  MatmulDesc desc;
  cublasLtMatmulAlgo_t algorithm{};
  uint64_t workspace = 0;
};

cublasStatus_t make_layout(const CublasLt& lt, const LtProblem& problem, int32_t which, int32_t dtype, Layout* out) {
  const LtMatrix& matrix = problem.matrices[which];
  Calls call;
  call(lt.layout_create(out->out(lt.layout_destroy), data_type(dtype), static_cast<uint64_t>(matrix.rows),
                        static_cast<uint64_t>(matrix.columns), matrix.ld));
  if (!call.ok() || problem.batch == 1) return call.status();
  const auto batch = static_cast<int32_t>(problem.batch);
  call(lt.layout_set_attribute(out->get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  call(lt.layout_set_attribute(out->get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch_stride,
                               sizeof matrix.batch_stride));
  return call.status();
}

cublasStatus_t make_desc(const CublasLt& lt, const ep_primitive_desc& matmul, const LtProblem& problem,
                         cublasComputeType_t compute, MatmulDesc* out) {
  Calls call;
  const int32_t dtype = matmul.operands[0].dtype;
  const cudaDataType_t scale = compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
  call(lt.desc_create(out->out(lt.desc_destroy), compute, scale));
  if (!call.ok()) return call.status();
  const cublasOperation_t first = problem.matrices[LT_SRC_B].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = problem.matrices[LT_SRC].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  call(lt.desc_set_attribute(out->get(), CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
  call(lt.desc_set_attribute(out->get(), CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
  cublasLtEpilogue_t epilogue = problem.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
  if (problem.bias >= 0) {
    epilogue = problem.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    const cudaDataType_t type = data_type(dtype);
    call(lt.desc_set_attribute(out->get(), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
    // The library reads only the alignment of this address when it chooses an algorithm.
    const auto bias = static_cast<uint64_t>(std::max(matmul.operands[problem.bias].alignment, wanted_alignment));
    call(lt.desc_set_attribute(out->get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  }
  call(lt.desc_set_attribute(out->get(), CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  return call.status();
}

// The alignment in bytes of a matrix in every launch.
uint32_t alignment_of(const ep_primitive_desc& desc, const LtProblem& problem, int32_t which) {
  const int32_t index = problem.operands[which] >= 0 ? problem.operands[which] : 0;
  const ep_operand_desc& operand = desc.operands[index];
  const int64_t size = dtype_size(operand.dtype);
  int64_t alignment = std::clamp<int64_t>(operand.alignment, wanted_alignment, 256);
  for (int32_t axis = 0; axis < problem.outer_rank; ++axis) {
    while (problem.outer_strides[which][axis] * size % alignment != 0) alignment /= 2;
  }
  return static_cast<uint32_t>(alignment);
}

// True if all lines of 2-byte matrices begin at multiples of wanted_alignment.
bool has_aligned_lines(const LtProblem& problem) {
  constexpr int64_t elements = wanted_alignment / 2;
  return std::all_of(problem.matrices, problem.matrices + lt_operands, [](const LtMatrix& matrix) {
    return matrix.ld % elements == 0 && matrix.batch_stride % elements == 0;
  });
}

cublasStatus_t make_preference(const CublasLt& lt, const ep_primitive_desc& desc, const LtProblem& problem,
                               uint64_t workspace, Preference* out) {
  Calls call;
  call(lt.preference_create(out->out(lt.preference_destroy)));
  if (!call.ok()) return call.status();
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    call(lt.preference_set_attribute(out->get(), attribute, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  // Partial sums in the type of the result would be less exact, so they must have the compute type. The kernels for
  // matrices without alignment round the sum of parts before they add the bias (seen with cuBLASLt 13.0).
  const bool rounds_twice = problem.bias >= 0 && dtype_size(desc.operands[0].dtype) == 2 && !has_aligned_lines(problem);
  const cublasLtReductionScheme_t parts =
      rounds_twice ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(parts));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(desc, problem, LT_SRC_B));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(desc, problem, LT_SRC));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      alignment_of(desc, problem, problem.operands[LT_C] >= 0 ? LT_C : LT_D));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(desc, problem, LT_D));
  return call.status();
}

// Lets the library choose an algorithm. CUBLAS_STATUS_NOT_SUPPORTED if it has none.
cublasStatus_t prepare(const ep_device& device, const ep_primitive_desc& desc, cublasComputeType_t compute,
                       Prepared* out) {
  const CublasLt& lt = device.cublaslt;
  const LtProblem& problem = out->problem;
  Calls call;
  for (int32_t i = 0; i < lt_operands; ++i) {
    const int32_t index = problem.operands[i];
    if (index >= 0) call(make_layout(lt, problem, i, desc.operands[index].dtype, &out->layouts[i]));
  }
  if (call.ok()) call(make_desc(lt, desc, problem, compute, &out->desc));
  Preference preference;
  if (call.ok()) call(make_preference(lt, desc, problem, most_workspace, &preference));
  if (!call.ok()) return call.status();
  const Layout& c = problem.operands[LT_C] >= 0 ? out->layouts[LT_C] : out->layouts[LT_D];
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  call(lt.algo_get_heuristic(lt.handle(), out->desc.get(), out->layouts[LT_SRC_B].get(), out->layouts[LT_SRC].get(),
                             c.get(), out->layouts[LT_D].get(), preference.get(), 1, &found, &count));
  if (call.ok()) call(found.state);
  if (call.ok() && count == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  out->algorithm = found.algo;
  out->workspace = found.workspaceSize;
  return call.status();
}

class CublasLtPrimitive final : public ep_primitive {
 public:
  CublasLtPrimitive(const ep_primitive_desc& desc, std::unique_ptr<Prepared> prepared, Tail tail)
      : desc_(desc), prepared_(std::move(prepared)), tail_(std::move(tail)) {}

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const cublasStatus_t status = multiply_all(stream, launch);
    if (status != CUBLAS_STATUS_SUCCESS) return failed(status, error);
    return tail_.run(stream, launch, desc_.operands, error);
  }

  uint64_t workspace(const ep_shape*) const override { return prepared_->workspace; }
  bool has_workspace() const override { return prepared_->workspace != 0; }

 private:
  // The library only reports that it failed. The driver knows if the device is lost.
  ep_status failed(cublasStatus_t status, ep_error** error) const {
    size_t free_bytes = 0;
    size_t total = 0;
    const CUresult result = device->driver->mem_get_info(&free_bytes, &total);
    if (status_of(result) == EP_STATUS_DEVICE_LOST) return driver_failed(device, result, "launching a matmul", error);
    const LtMatrix& matrix = prepared_->problem.matrices[LT_D];
    return fail(host, error, status == CUBLAS_STATUS_ALLOC_FAILED ? EP_STATUS_OUT_OF_DEVICE_MEMORY : EP_STATUS_INTERNAL,
                "cuBLASLt failed on a matmul of %lld x %lld: %s.", static_cast<long long>(matrix.columns),
                static_cast<long long>(matrix.rows), device->cublaslt.get_status_string(status));
  }

  // The library's descriptor holds the address of the bias, so launches run one at a time.
  cublasStatus_t multiply_all(ep_stream* stream, const ep_launch& launch) {
    const LtProblem& problem = prepared_->problem;
    const std::lock_guard lock(mutex_);
    if (problem.bias >= 0) {
      const CUdeviceptr bias = address_of(launch.operands[problem.bias]);
      const cublasStatus_t status = device->cublaslt.desc_set_attribute(
          prepared_->desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
      if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    CUdeviceptr start[lt_operands] = {};
    for (int32_t i = 0; i < lt_operands; ++i) {
      if (problem.operands[i] >= 0) start[i] = address_of(launch.operands[problem.operands[i]]);
    }
    for (int64_t call = 0; call < problem.outer_count(); ++call) {
      CUdeviceptr at[lt_operands];
      std::copy_n(start, lt_operands, at);
      step(problem, call, at);
      const cublasStatus_t status = multiply(stream, launch, at);
      if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    return CUBLAS_STATUS_SUCCESS;
  }

  void step(const LtProblem& problem, int64_t call, CUdeviceptr* at) const {
    for (int32_t axis = problem.outer_rank - 1; axis >= 0; --axis) {
      const int64_t index = call % problem.outer_dims[axis];
      call /= problem.outer_dims[axis];
      for (int32_t i = 0; i < lt_operands; ++i) {
        if (problem.operands[i] < 0) continue;
        const int64_t size = dtype_size(desc_.operands[problem.operands[i]].dtype);
        at[i] += static_cast<uint64_t>(index * problem.outer_strides[i][axis] * size);
      }
    }
  }

  cublasStatus_t multiply(ep_stream* stream, const ep_launch& launch, const CUdeviceptr* at) const {
    const CublasLt& lt = device->cublaslt;
    const bool has_c = prepared_->problem.operands[LT_C] >= 0;
    const bool is_f64 = desc_.operands[0].dtype == EP_DTYPE_f64;
    const double wide[2] = {1, has_c ? 1.0 : 0.0};
    const float narrow[2] = {1, has_c ? 1.0F : 0.0F};
    const void* alpha = is_f64 ? static_cast<const void*>(&wide[0]) : &narrow[0];
    const void* beta = is_f64 ? static_cast<const void*>(&wide[1]) : &narrow[1];
    const int32_t c = has_c ? LT_C : LT_D;
    const auto pointer = [&](int32_t i) { return reinterpret_cast<void*>(at[i]); };
    return lt.matmul(lt.handle(), prepared_->desc.get(), alpha, pointer(LT_SRC_B), prepared_->layouts[LT_SRC_B].get(),
                     pointer(LT_SRC), prepared_->layouts[LT_SRC].get(), beta, pointer(c), prepared_->layouts[c].get(),
                     pointer(LT_D), prepared_->layouts[LT_D].get(), &prepared_->algorithm,
                     reinterpret_cast<void*>(address_of(launch.workspace)), prepared_->workspace, stream->handle);
  }

  ep_primitive_desc desc_;
  std::unique_ptr<Prepared> prepared_;
  Tail tail_;
  std::mutex mutex_;
};

Refusal check_types(const ep_primitive_desc& desc) {
  const int32_t dst = desc.operands[0].dtype;
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* src_b = operand(desc, EP_ROLE_SRC_B);
  if (src == nullptr || src_b == nullptr || desc.operands[0].role != EP_ROLE_DST)
    return Refusal::because("an operand is missing");
  if (!is_floating(dst) || dtype_size(dst) < 2) return Refusal::because("results in %s", dtype_name(dst));
  const int32_t dtype = src->dtype;
  if (dtype != src_b->dtype || !is_floating(dtype) || dtype_size(dtype) < 2)
    return Refusal::because("inputs of %s and %s", dtype_name(dtype), dtype_name(src_b->dtype));
  const bool widens = dtype_size(dtype) == 2 && dst == EP_DTYPE_f32;
  if (dst != dtype && !widens) return Refusal::because("inputs of %s to %s", dtype_name(dtype), dtype_name(dst));
  const int32_t sum = dtype == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32;
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != sum)
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  return {};
}

// The fusions to try, largest first. For a result of a narrow type nothing may run after the call, because the result
// would be rounded twice.
constexpr LtFusion fusions[] = {{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false}};

Refusal check_rest(const ep_primitive_desc& desc, const LtProblem& problem) {
  const bool narrow = dtype_size(desc.operands[0].dtype) == 2;
  if (narrow && problem.tail_bias >= 0) return Refusal::because("a bias added afterwards would round twice");
  if (problem.tail_bias >= 0 && desc.operands[problem.tail_bias].dtype != desc.operands[0].dtype)
    return Refusal::because("a bias of %s", dtype_name(desc.operands[problem.tail_bias].dtype));
  return why_no_epilogues(desc, problem.first_epilogue);
}

}  // namespace

Refusal CublasLtMatmul::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count < 3) return Refusal::because("%u operands", desc.operand_count);
  if (is_dynamic(desc)) return Refusal::because("cuBLASLt chooses its algorithm for static dims");
  if (Refusal refusal = check_types(desc)) return refusal;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand) || operand.rank != desc.operands[0].rank || operand.rank < 2)
      return Refusal::because("operand %u has rank %d", i, operand.rank);
    info.alignment[i] = wanted_alignment;
  }
  LtProblem problem;
  if (Refusal refusal = make_problem(desc, fusions[0], &problem)) return refusal;
  return check_rest(desc, problem);
}

Refusal CublasLtMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                             ep_primitive_info& info) {
  const std::string& missing = device.cublaslt.load();
  if (!missing.empty()) {
    device.cublaslt.tell_once([&] {
      log_line(device.host, EP_LOG_WARNING, "load", "Matmul on %s runs in a plain kernel, which is slow: %s.",
               device.facts.name.c_str(), missing.c_str());
    });
    return Refusal::because("%s", missing.c_str());
  }
  cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
  for (const LtFusion& fusion : fusions) {
    for (const cublasComputeType_t compute : compute_types(operand(desc, EP_ROLE_SRC)->dtype, desc.precision)) {
      auto prepared = std::make_unique<Prepared>();
      if (Refusal refusal = make_problem(desc, fusion, &prepared->problem)) return refusal;
      if (check_rest(desc, prepared->problem)) break;
      status = prepare(device, desc, compute, prepared.get());
      if (status != CUBLAS_STATUS_SUCCESS) continue;
      Tail tail;
      if (prepared->problem.tail_bias >= 0) {
        if (Refusal refusal = add_bias(device, desc, prepared->problem.tail_bias, &tail)) return refusal;
      }
      if (Refusal refusal = add_epilogues(device, desc, prepared->problem.first_epilogue, &tail)) return refusal;
      info.host_bytes = sizeof(CublasLtPrimitive) + sizeof(Prepared) + 4096;
      *out = make_primitive<CublasLtPrimitive>(device, desc, std::move(prepared), std::move(tail));
      return {};
    }
  }
  if (status == CUBLAS_STATUS_ALLOC_FAILED) {
    return Refusal::failure(EP_STATUS_OUT_OF_DEVICE_MEMORY, "cuBLASLt found no memory to plan it");
  }
  return Refusal::because("cuBLASLt has no algorithm for it: %s", device.cublaslt.get_status_string(status));
}

}  // namespace tenon::provider::cuda
