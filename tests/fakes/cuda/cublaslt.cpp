// cuBLASLt on host memory. It computes in double, and in the order of the stream.
#include <cublasLt.h>
#include <cuda.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/cuda/kernels/element.h"
#include "tests/fakes/cuda/tf32.h"

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

namespace provider = tenon::provider::cuda;

struct Layout {
  cudaDataType_t type;
  int64_t rows, columns, ld;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};

struct Desc {
  cublasComputeType_t compute;
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

int32_t dtype_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F: return EP_DTYPE_f16;
    case CUDA_R_16BF: return EP_DTYPE_bf16;
    case CUDA_R_64F: return EP_DTYPE_f64;
    default: return EP_DTYPE_f32;
  }
}

double element(const void* base, const Layout& layout, int64_t batch, int64_t row, int64_t column) {
  double value = 0;
  const int64_t index = batch * layout.batch_stride + column * layout.ld + row;
  provider::with_any_storage(dtype_of(layout.type), [&](auto storage) {
    value = provider::widen<double>(static_cast<const decltype(storage)*>(base)[index]);
  });
  return value;
}

void put(void* base, const Layout& layout, int64_t batch, int64_t row, int64_t column, double value) {
  const int64_t index = batch * layout.batch_stride + column * layout.ld + row;
  provider::with_any_storage(dtype_of(layout.type), [&](auto storage) {
    using Storage = decltype(storage);
    static_cast<Storage*>(base)[index] = provider::cast<Storage>(value);
  });
}

// One call that waits until the stream reaches it.
struct Work {
  Desc desc;
  Layout layouts[4];  // A, B, C, D
  const void *a, *b, *c;
  void* d;
  double alpha, beta;
};

void CUDART_CB multiply(void* data) {
  const auto* work = static_cast<Work*>(data);
  const Layout& d = work->layouts[3];
  const bool ta = work->desc.transpose_a == CUBLAS_OP_T;
  const bool tb = work->desc.transpose_b == CUBLAS_OP_T;
  const int64_t k = ta ? work->layouts[0].rows : work->layouts[0].columns;
  const bool relu = work->desc.epilogue == CUBLASLT_EPILOGUE_RELU || work->desc.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  const bool bias = work->desc.epilogue == CUBLASLT_EPILOGUE_BIAS || work->desc.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  const Layout vector = {d.type, d.rows, 1, d.rows};
  const auto factor = [work](const void* from, const Layout& layout, int64_t batch, int64_t row, int64_t column) {
    const double value = element(from, layout, batch, row, column);
    return work->desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? tenon::fakes::cuda::to_tf32(value) : value;
  };
  for (int64_t batch = 0; batch < d.batch; ++batch) {
    for (int64_t column = 0; column < d.columns; ++column) {
      for (int64_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          sum += (ta ? factor(work->a, work->layouts[0], batch, i, row)
                     : factor(work->a, work->layouts[0], batch, row, i)) *
                 (tb ? factor(work->b, work->layouts[1], batch, column, i)
                     : factor(work->b, work->layouts[1], batch, i, column));
        }
        sum *= work->alpha;
        if (work->beta != 0) sum += work->beta * element(work->c, work->layouts[2], batch, row, column);
        if (bias) sum += element(work->desc.bias, vector, 0, row, 0);
        put(work->d, d, batch, row, column, relu ? std::max(sum, 0.0) : sum);
      }
    }
  }
}

// Calls are kept, because a captured call runs several times.
Work* keep(std::unique_ptr<Work> work) {
  static auto* mutex = new std::mutex;
  static auto* kept = new std::vector<std::unique_ptr<Work>>;
  const std::lock_guard lock(*mutex);
  return kept->emplace_back(std::move(work)).get();
}

bool fits(const Layout& layout) { return layout.ld >= layout.rows && layout.rows > 0 && layout.columns > 0; }

// True if the shapes agree as cuBLASLt demands.
bool is_possible(const Desc& desc, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const bool ta = desc.transpose_a == CUBLAS_OP_T;
  const bool tb = desc.transpose_b == CUBLAS_OP_T;
  return fits(a) && fits(b) && fits(c) && fits(d) && (ta ? a.columns : a.rows) == d.rows &&
         (tb ? b.rows : b.columns) == d.columns && (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) &&
         c.rows == d.rows && c.columns == d.columns && a.batch == d.batch && b.batch == d.batch && c.batch == d.batch;
}

template <class T>
T read(const void* buffer) {
  T value;
  std::memcpy(&value, buffer, sizeof value);
  return value;
}

}  // namespace

FAKE_API size_t cublasLtGetVersion() {
  const char* text = std::getenv("FAKE_CUBLASLT_VERSION");
  return text != nullptr ? static_cast<size_t>(std::atol(text)) : 130000;
}
FAKE_API const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "an error";
}
FAKE_API cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}
FAKE_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                                   uint64_t columns, int64_t ld) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), ld});
  return CUBLAS_STATUS_SUCCESS;
}
FAKE_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout*>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
FAKE_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                         cublasLtMatrixLayoutAttribute_t attribute, const void* buffer,
                                                         size_t size) {
  auto* layout = reinterpret_cast<Layout*>(handle);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == 4) {
    layout->batch = read<int32_t>(buffer);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == 8) {
    layout->batch_stride = read<int64_t>(buffer);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                                 cudaDataType_t) {
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc{compute});
  return CUBLAS_STATUS_SUCCESS;
}
FAKE_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete reinterpret_cast<Desc*>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
FAKE_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                                       cublasLtMatmulDescAttributes_t attribute, const void* buffer,
                                                       size_t) {
  auto* desc = reinterpret_cast<Desc*>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: desc->transpose_a = read<cublasOperation_t>(buffer); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: desc->transpose_b = read<cublasOperation_t>(buffer); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: desc->epilogue = read<cublasLtEpilogue_t>(buffer); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: desc->bias = read<const void*>(buffer); break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: break;
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
FAKE_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
FAKE_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                             cublasLtMatmulPreferenceAttributes_t attribute,
                                                             const void* buffer, size_t) {
  auto* preference = reinterpret_cast<Preference*>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: preference->workspace = read<uint64_t>(buffer); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: preference->alignment[0] = read<uint32_t>(buffer); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: preference->alignment[1] = read<uint32_t>(buffer); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: preference->alignment[2] = read<uint32_t>(buffer); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: preference->alignment[3] = read<uint32_t>(buffer); break;
    default: break;
  }
  return CUBLAS_STATUS_SUCCESS;
}

// The algorithm stores the problem that it was chosen for, so that the fake can check the call against it.
FAKE_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                       cublasLtMatmulPreference_t preference, int,
                                                       cublasLtMatmulHeuristicResult_t* results, int* count) {
  const auto* wanted = reinterpret_cast<Desc*>(desc);
  const bool possible = is_possible(*wanted, *reinterpret_cast<Layout*>(a), *reinterpret_cast<Layout*>(b),
                                    *reinterpret_cast<Layout*>(c), *reinterpret_cast<Layout*>(d));
  const bool plain_double = wanted->compute == CUBLAS_COMPUTE_64F && wanted->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  *count = possible && !plain_double ? 1 : 0;
  if (*count == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto* given = reinterpret_cast<Preference*>(preference);
  results[0] = {};
  for (int i = 0; i < 4; ++i) results[0].algo.data[i] = given->alignment[i];
  results[0].algo.data[4] = 1;
  results[0].workspaceSize = std::min<uint64_t>(given->workspace, 1024);
  results[0].state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                                       cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                                       const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                                       cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm,
                                       void* workspace, size_t workspace_size, cudaStream_t stream) {
  auto work = std::make_unique<Work>(Work{*reinterpret_cast<Desc*>(desc), {}, a, b, c, d, 0, 0});
  cublasLtMatrixLayout_t layouts[] = {a_layout, b_layout, c_layout, d_layout};
  for (int i = 0; i < 4; ++i) work->layouts[i] = *reinterpret_cast<Layout*>(layouts[i]);
  const bool is_double = work->desc.compute == CUBLAS_COMPUTE_64F;
  work->alpha = is_double ? read<double>(alpha) : read<float>(alpha);
  work->beta = is_double ? read<double>(beta) : read<float>(beta);
  const void* addresses[] = {a, b, c, d};
  bool aligned = algorithm->data[4] == 1;
  for (int i = 0; i < 4; ++i) aligned = aligned && reinterpret_cast<uintptr_t>(addresses[i]) % algorithm->data[i] == 0;
  const bool has_workspace =
      workspace_size == 0 || (workspace != nullptr && reinterpret_cast<uintptr_t>(workspace) % 256 == 0);
  if (!aligned || !has_workspace) return CUBLAS_STATUS_INVALID_VALUE;
  const CUresult launched = cuLaunchHostFunc(reinterpret_cast<CUstream>(stream), multiply, keep(std::move(work)));
  return launched == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
