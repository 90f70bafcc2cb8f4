// Matrix-vector products: each matrix is read once, by as many threads as the memory bandwidth needs. A product with a
// few columns counts as a batch of such products with the same matrix.
//
// A constant bf16 matrix whose columns belong to the result is packed in panels of 64 columns. Two columns share a
// word, so a shift or a mask converts them to f32.
#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "providers/cpu/elementwise/cast.h"
#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"
#include "providers/cpu/vector_matmul/kernel.h"
#include "providers/cpu/vector_matmul/vector_matmul.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t few = 2048;           // elements of a matrix that small_matmul computes
constexpr int64_t few_of_one = 128;     // the limit for a matrix of one row
constexpr int64_t few_columns = 4;      // columns of a product that counts as a batch
constexpr int64_t long_sum = 64;        // the fewest products of a sum from which on that pays
constexpr int64_t many_rows = 64;       // the fewest rows from which on it pays for short sums
constexpr int64_t unit = kWordColumns;  // elements of y; a thread computes whole units

// y = matrix * x. The elements of y belong to the rows of the matrix; `row` and `column` are its strides.
struct Problem {
  int32_t y = 0, matrix = 0, x = 0, bias = -1;  // operand numbers
  int64_t rows = 0, length = 0;
  int64_t row = 0, column = 0;
  int64_t x_step = 0, y_step = 0, bias_step = 0;
  Axes batch[4];  // batch axes of y, matrix, x and bias
  int64_t count = 1;

  int64_t offset(int32_t operand, int64_t product) const { return count == 1 ? 0 : batch[operand].offset(product); }
};

bool has_few_columns(const ep_primitive_desc& desc, SimdLevel level) {
  const ep_operand_desc& a = *operand(desc, EP_ROLE_SRC);
  const int32_t last = a.rank - 1;
  const int64_t columns = desc.operands[0].dims[last], rows = a.dims[last - 1];
  if (columns < 2 || columns > few_columns || rows < 2 || a.strides[last] != 1) return false;
  // oneDNN computes short sums of f32 and bf16.
  const bool has_onednn = a.dtype == EP_DTYPE_f32 || (a.dtype == EP_DTYPE_bf16 && level == SimdLevel::avx3);
  return a.dims[last] >= long_sum || (!has_onednn && rows >= many_rows);
}

Problem problem_of(const ep_primitive_desc& desc, SimdLevel level) {
  const int32_t src = find_operand(desc, EP_ROLE_SRC);
  const int32_t weight = find_operand(desc, EP_ROLE_SRC_B);
  const int32_t bias = find_operand(desc, EP_ROLE_BIAS);
  const int32_t last = desc.operands[0].rank - 1;
  const ep_operand_desc& a = desc.operands[src];
  const ep_operand_desc& b = desc.operands[weight];
  const ep_operand_desc& c = desc.operands[0];
  const auto bias_stride = [&](int32_t axis) { return bias < 0 ? 0 : desc.operands[bias].strides[axis]; };
  Problem problem;
  problem.bias = bias;
  const bool columns = has_few_columns(desc, level);
  if (columns || c.dims[last] == 1) {
    problem.matrix = src;
    problem.x = weight;
    problem.rows = a.dims[last - 1];
    problem.length = a.dims[last];
    problem.row = a.strides[last - 1];
    problem.column = a.strides[last];
    problem.x_step = b.strides[last - 1];
    problem.y_step = c.strides[last - 1];
    problem.bias_step = bias_stride(last - 1);
  } else {
    problem.matrix = weight;
    problem.x = src;
    problem.rows = b.dims[last];
    problem.length = b.dims[last - 1];
    problem.row = b.strides[last];
    problem.column = b.strides[last - 1];
    problem.x_step = a.strides[last];
    problem.y_step = c.strides[last];
    problem.bias_step = bias_stride(last);
  }
  const int32_t operands[] = {0, problem.matrix, problem.x, bias};
  for (int32_t i = 0; i < 4; ++i) {
    if (operands[i] < 0) continue;
    const ep_operand_desc& operand = desc.operands[operands[i]];
    for (int32_t axis = 0; axis + 1 < last; ++axis) problem.batch[i].add(operand.dims[axis], operand.strides[axis]);
    if (columns) problem.batch[i].add(c.dims[last], operands[i] == src ? 0 : operand.strides[last]);
  }
  problem.count = problem.batch[0].count();
  return problem;
}

// True if the kernel for rows reads the matrix. A matrix of one column is read as one row of columns.
bool is_by_rows(const Problem& problem) {
  return problem.column == 1 && !(problem.length == 1 && problem.row == 1 && problem.y_step == 1);
}

// Elements have type E and are computed in T.
template <class T, class E = T>
class VectorMatmulPrimitive final : public ep_primitive {
 public:
  VectorMatmulPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : kernels_(vector_kernels<T, E>(on.simd)),
        problem_(problem_of(desc, on.simd)),
        format_(desc.operands[0].dtype, on.simd),
        tail_(on, desc, 0),
        packs_(is_packed(desc)),
        by_rows_(is_by_rows(problem_)) {}

  // True for a constant bf16 matrix whose columns belong to y.
  bool is_packed(const ep_primitive_desc& desc) const {
    const Problem& problem = problem_;
    return kernels_.panel != nullptr && problem.count == 1 && problem.rows > 1 && problem.column != 1 &&
           (desc.operands[problem.matrix].flags & EP_OPERAND_FLAG_CONSTANT) != 0;
  }
  int64_t panels() const { return (problem_.rows + unit - 1) / unit; }
  void describe(ep_primitive_info* info) const {
    if (!packs_) return;
    info->pack_operand = 1 + static_cast<uint32_t>(problem_.matrix);
    info->pack_bytes = static_cast<uint64_t>(panels() * problem_.length * unit) * sizeof(E);
    info->pack_layout = 0x77643634;  // "wd64"
  }

  // [panels, rows of the panel, words]
  ep_status pack(char* dst, const char* src, ep_error**) override {
    const Problem& p = problem_;
    E* to = reinterpret_cast<E*>(dst);
    const E* const from = reinterpret_cast<const E*>(src);
    for (int64_t first = 0; first < p.rows; first += unit) {
      const int64_t n = std::min(unit, p.rows - first);
      for (int64_t k = 0; k < p.length; ++k, to += unit) {
        for (int64_t i = 0; i < unit; ++i) {
          const int64_t column = i / 32 * 32 + i % 2 * 16 + i % 32 / 2;
          to[i] = column < n ? from[k * p.column + first + column] : E{};
        }
      }
    }
    return EP_STATUS_OK;
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const Problem& p = problem_;
    if (p.rows == 1 && p.count == 1) {
      run_one(launch);
      if (!tail_.empty()) tail_.run(launch, device->threads);
      return EP_STATUS_OK;
    }
    // A thread reads about 16 bytes per nanosecond.
    parallel(device->threads, p.count * p.rows * p.length * static_cast<int64_t>(sizeof(E)) / 16,
             [&](int32_t part, int32_t parts) {
               const int64_t units = panels(), all = p.count * units;
               std::vector<T> room;
               for (int64_t at = all * part / parts, last = all * (part + 1) / parts; at < last;) {
                 const int64_t product = at / units, first = at % units;
                 const int64_t count = std::min(units - first, last - at);
                 run(launch, product, vector(launch, product, &room), first * unit,
                     std::min(p.rows, (first + count) * unit));
                 at += count;
               }
             });
    if (!tail_.empty()) tail_.run(launch, device->threads);
    return EP_STATUS_OK;
  }

 private:
  // Floats are added up in double.
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, T>;

  static E* at(const ep_launch& launch, int32_t i) { return reinterpret_cast<E*>(address_of(launch.operands[i])); }

  // Read and write n elements, `stride` apart in memory.
  void read(T* to, const E* from, int64_t stride, int64_t n) const {
    if constexpr (is_narrow_float<E>) {
      format_.read(to, 1, from, stride, n);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    }
  }
  void write(E* to, int64_t stride, const T* from, int64_t n) const {
    if constexpr (is_narrow_float<E>) {
      format_.write(to, stride, from, 1, n);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i * stride] = static_cast<E>(from[i]);
    }
  }

  // The vector of one product: in place, or in `room`.
  const T* vector(const ep_launch& launch, int64_t product, std::vector<T>* room) const {
    const Problem& p = problem_;
    const E* const x = at(launch, p.x) + p.offset(2, product);
    if constexpr (std::is_same_v<T, E>) {
      if (p.x_step == 1 || p.length < 2) return x;
    }
    room->resize(static_cast<size_t>(p.length));
    read(room->data(), x, p.x_step, p.length);
    if (!by_rows_ || kernels_.arrange == nullptr) return room->data();
    std::vector<T> arranged(room->size());
    kernels_.arrange(arranged.data(), room->data(), p.length);
    *room = std::move(arranged);
    return room->data();
  }

  // Computes the only element of y from partial sums of equal length, so that the sum does not depend on the threads.
  void run_one(const ep_launch& launch) const {
    const Problem& p = problem_;
    constexpr int64_t piece = 16384;
    const int64_t units = (p.length + piece - 1) / piece;
    std::array<T, 64> few;
    std::vector<T> many(units > 64 ? static_cast<size_t>(units) : 0);
    T* const sums = units > 64 ? many.data() : few.data();
    const E* const row = at(launch, p.matrix);
    const E* x = at(launch, p.x);
    std::vector<E> room;
    if (p.x_step != 1 && p.length > 1) {
      room.resize(static_cast<size_t>(p.length));
      for (int64_t i = 0; i < p.length; ++i) room[static_cast<size_t>(i)] = x[i * p.x_step];
      x = room.data();
    }
    parallel(device->threads, p.length * static_cast<int64_t>(2 * sizeof(E)) / 16, [&](int32_t part, int32_t parts) {
      for (int64_t i = units * part / parts; i < units * (part + 1) / parts; ++i) {
        const int64_t length = std::min(piece, p.length - i * piece);
        if constexpr (std::is_same_v<T, E>) {
          kernels_.rows(sums + i, 1, row + i * piece, 0, x + i * piece, 1, length);
        } else {
          kernels_.pair(sums + i, row + i * piece, x + i * piece, length);
        }
      }
    });
    Total total{0};
    for (int64_t i = 0; i < units; ++i) total = static_cast<Total>(total + static_cast<Total>(sums[i]));
    T bias{0};
    if (p.bias >= 0) read(&bias, at(launch, p.bias), 1, 1);
    const T result = static_cast<T>(static_cast<T>(total) + bias);
    write(at(launch, p.y), 1, &result, 1);
  }
  // Computes elements [begin, end) of y.
  void run(const ep_launch& launch, int64_t product, const T* x, int64_t begin, int64_t end) const {
    const Problem& p = problem_;
    E* const y = at(launch, p.y) + p.offset(0, product);
    const E* const matrix = at(launch, p.matrix) + p.offset(1, product);
    const E* const bias_from = p.bias < 0 ? nullptr : at(launch, p.bias) + p.offset(3, product);
    if constexpr (std::is_same_v<T, E>) {
      multiply(y + begin * p.y_step, p.y_step, matrix, x, begin, end);
      if (p.bias < 0) return;
      for (int64_t i = begin; i < end; ++i) {
        y[i * p.y_step] = static_cast<T>(y[i * p.y_step] + bias_from[i * p.bias_step]);
      }
    } else {
      constexpr int64_t most = 1024;  // a multiple of `unit`
      T sums[most];
      T bias[most];
      for (int64_t first = begin; first < end; first += most) {
        const int64_t n = std::min(most, end - first);
        multiply(sums, 1, matrix, x, first, first + n);
        if (p.bias >= 0) {
          read(bias, bias_from + first * p.bias_step, p.bias_step, n);
          for (int64_t i = 0; i < n; ++i) sums[i] = static_cast<T>(sums[i] + bias[i]);
        }
        write(y + first * p.y_step, p.y_step, sums, n);
      }
    }
  }
  void multiply(T* to, int64_t step, const E* matrix, const T* x, int64_t begin, int64_t end) const {
    const Problem& p = problem_;
    if (packs_) {
      for (int64_t i = begin; i < end; i += unit) kernels_.panel(to + (i - begin), matrix + i * p.length, x, p.length);
    } else if (by_rows_)
      kernels_.rows(to, step, matrix + begin * p.row, p.row, x, end - begin, p.length);
    else
      kernels_.columns(to, matrix + begin, p.column, x, end - begin, p.length);
  }

  VectorKernels<T, E> kernels_;
  Problem problem_;
  RowFormat format_;
  Tail tail_;
  bool packs_;
  bool by_rows_;
};

template <class T, class E = T>
ep_primitive* made(ep_device& device, const ep_primitive_desc& desc, ep_primitive_info* info) {
  auto* const primitive = make_primitive<VectorMatmulPrimitive<T, E>>(device, device, desc);
  primitive->describe(info);
  return primitive;
}

}  // namespace

Refusal VectorMatmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("products with a vector need static dims");
  const ep_operand_desc& dst = desc.operands[0];
  const int32_t compute = compute_dtype(dst.dtype);
  const bool floats = is_floating(dst.dtype);
  if (wide_dtype(dst.dtype) == 0 || dst.dtype == EP_DTYPE_bool || (floats && dtype_size(dst.dtype) == 1))
    return Refusal::because("%s", dtype_name(dst.dtype));
  if (!floats && desc.epilogue_count != 0) return Refusal::because("epilogues over %s", dtype_name(dst.dtype));
  if (dst.dtype == EP_DTYPE_f16 && device.simd == SimdLevel::baseline) return Refusal::because("f16 needs AVX2");
  if (compute != dst.dtype && desc.epilogue_count != 0)
    return Refusal::because("epilogues over %s", dtype_name(dst.dtype));
  if (floats && desc.accumulate_dtype != 0 && desc.accumulate_dtype != compute) {
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.dtype != dst.dtype) return Refusal::because("operand %u is %s", i, dtype_name(operand.dtype));
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
    if (operand.rank != dst.rank || operand.rank < 2) return Refusal::because("rank %d", operand.rank);
  }
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* weight = operand(desc, EP_ROLE_SRC_B);
  if (dst.role != EP_ROLE_DST || src == nullptr || weight == nullptr) return Refusal::because("an operand is missing");
  if (dst.dims[dst.rank - 1] != 1 && dst.dims[dst.rank - 2] != 1 && !has_few_columns(desc, device.simd))
    return Refusal::because("neither operand is a vector");
  const Problem problem = problem_of(desc, device.simd);
  if (problem.rows > 1 && (desc.operands[problem.matrix].flags & EP_OPERAND_FLAG_CONSTANT) != 0 &&
      dst.dtype == EP_DTYPE_f32)
    return Refusal::because("the matrix is constant");
  if (compute == EP_DTYPE_f32 && problem.rows * problem.length < (problem.rows == 1 ? few_of_one : few))
    return Refusal::because("a small matrix");
  const bool by_rows = is_by_rows(problem);
  const bool by_columns = problem.row == 1 && problem.column > 0 && problem.y_step == 1;
  if (!by_rows && !by_columns) return Refusal::because("neither rows nor columns of the matrix are contiguous");
  if (by_rows && problem.rows > 1 && problem.row == 0) return Refusal::because("a row repeated by stride 0");
  return why_no_tail(device, desc, 0);
}

Refusal VectorMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                           ep_primitive_info& info) {
  switch (desc.operands[0].dtype) {
    case EP_DTYPE_bf16: *out = made<float, Bf16Bits>(device, desc, &info); break;
    case EP_DTYPE_f16: *out = made<float, F16Bits>(device, desc, &info); break;
    case EP_DTYPE_f32: *out = made<float>(device, desc, &info); break;
    case EP_DTYPE_f64: *out = made<double>(device, desc, &info); break;
    case EP_DTYPE_i8:
    case EP_DTYPE_u8: *out = made<uint16_t, uint8_t>(device, desc, &info); break;
    case EP_DTYPE_i16:
    case EP_DTYPE_u16: *out = made<uint16_t>(device, desc, &info); break;
    case EP_DTYPE_i32:
    case EP_DTYPE_u32: *out = made<uint32_t>(device, desc, &info); break;
    default: *out = made<uint64_t>(device, desc, &info);
  }
  return {};
}

}  // namespace tenon::provider::cpu
