// matmul_<class>: one thread per element of the result, for types, strides and alignments that cuBLASLt does not take.
#include "providers/cuda/kernels/element.h"

namespace tenon::provider::cuda {

// The storage type may be narrower than the compute class: f16 in f32, i8 in i64.
template <class Class>
TENON_ON_GPU void matmul(const MatmulArguments& matmul) {
  // Integers wrap around, so they are added and multiplied as unsigned ones.
  using Value = std::conditional_t<std::is_floating_point_v<Class>, Class, uint64_t>;
  const int32_t row = matmul.rank - 2;
  const int32_t column = matmul.rank - 1;
  for (int64_t i = thread_in_grid(); i < matmul.count; i += threads_in_grid()) {
    int64_t rest = i;
    int64_t dst = 0;
    int64_t a = 0;
    int64_t b = 0;
    int64_t bias = 0;
    for (int32_t axis = column; axis >= 0; --axis) {
      const int64_t at = rest % matmul.dims[axis];
      rest /= matmul.dims[axis];
      dst += at * matmul.dst_strides[axis];
      bias += at * matmul.bias_strides[axis];
      if (axis != column) a += at * matmul.a_strides[axis];
      if (axis != row) b += at * matmul.b_strides[axis];
    }
    Value sum = 0;
    for (int64_t p = 0; p < matmul.k; ++p) {
      const auto x = static_cast<Value>(load<Class>(matmul.a, a + p * matmul.a_strides[column], matmul.a_dtype));
      const auto y = static_cast<Value>(load<Class>(matmul.b, b + p * matmul.b_strides[row], matmul.b_dtype));
      sum += x * y;
    }
    if (matmul.bias != 0) sum += static_cast<Value>(load<Class>(matmul.bias, bias, matmul.bias_dtype));
    store<Class>(matmul.dst, dst, matmul.dst_dtype, static_cast<Class>(sum));
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::MatmulArguments;

TENON_KERNEL matmul_f32(TENON_ARGUMENT(MatmulArguments) arguments) { kernels::matmul<float>(arguments); }
TENON_KERNEL matmul_f64(TENON_ARGUMENT(MatmulArguments) arguments) { kernels::matmul<double>(arguments); }
TENON_KERNEL matmul_i64(TENON_ARGUMENT(MatmulArguments) arguments) { kernels::matmul<int64_t>(arguments); }
TENON_KERNEL matmul_u64(TENON_ARGUMENT(MatmulArguments) arguments) { kernels::matmul<uint64_t>(arguments); }
