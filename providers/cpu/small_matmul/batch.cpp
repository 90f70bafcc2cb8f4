// matmul of a batch of small matrices. A thread widens the factors of several matrices at a time, multiplies them, and
// narrows the results. Types that are computed as they are stored are multiplied in place.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "providers/cpu/blocked_matmul/kernel.h"
#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/small_matmul/kernel.h"
#include "providers/cpu/small_matmul/small_matmul.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// The most multiplications for one matrix. Products in blocks are faster for larger matrices.
constexpr int64_t most_multiplications = 16 * 16 * 16;
constexpr int64_t fewest_matrices = 8;
// The elements of each operand that a buffer holds.
constexpr int64_t room_elements = 4096;

// The matrices of one operand.
struct Matrices {
  // The operand's number, and its bytes per element.
  int32_t index, size;
  int64_t rows, columns, row, column;
  Axes batch;
  // Converts to T, or from T if this is the result.
  ConvertFunction convert;

  Matrices(const ep_primitive_desc& desc, int32_t role) : index(find_operand(desc, role)), convert(nullptr) {
    const ep_operand_desc& operand = desc.operands[index];
    const int32_t last = operand.rank - 1;
    size = dtype_size(operand.dtype);
    rows = operand.dims[last - 1];
    columns = operand.dims[last];
    row = operand.strides[last - 1];
    column = operand.strides[last];
    for (int32_t axis = 0; axis + 1 < last; ++axis) batch.add(operand.dims[axis], operand.strides[axis]);
  }
  int64_t elements() const { return rows * columns; }
  bool is_dense() const { return (columns == 1 || column == 1) && (rows == 1 || row == columns); }
  char* at(const ep_launch& launch, int64_t matrix) const {
    return address_of(launch.operands[index]) + batch.offset(matrix) * size;
  }
};

template <class T>
class BatchMatmulPrimitive final : public ep_primitive {
 public:
  BatchMatmulPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : kernel_(product_kernel<T>(on.simd)),
        c_(desc, EP_ROLE_DST),
        a_(desc, EP_ROLE_SRC),
        b_(desc, EP_ROLE_SRC_B),
        converts_(dtype_size(desc.operands[0].dtype) != static_cast<int32_t>(sizeof(T))) {
    for (Matrices* each : {&c_, &a_, &b_}) {
      const int32_t dtype = desc.operands[each->index].dtype;
      const bool writes = each == &c_;
      if constexpr (std::is_floating_point_v<T>) {
        each->convert = writes ? narrow(wide_dtype(dtype), dtype, on.simd) : widen(dtype, on.simd);
      } else {
        each->convert = writes ? integer_write(on.simd, sizeof(T), dtype) : integer_read(on.simd, dtype, sizeof(T));
      }
    }
    const int64_t largest = std::max({c_.elements(), a_.elements(), b_.elements()});
    together_ = std::max<int64_t>(1, room_elements / largest);
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t matrices = c_.batch.count();
    const int64_t multiplications = c_.elements() * a_.columns;
    parallel(device->threads, matrices * (10 + multiplications / 8), [&](int32_t part, int32_t parts) {
      std::vector<T> room(converts_ ? static_cast<size_t>(3 * room_elements) : 0);
      const int64_t end = matrices * (part + 1) / parts;
      for (int64_t first = matrices * part / parts; first < end; first += together_) {
        const int64_t count = std::min(together_, end - first);
        if (converts_) {
          run_converted(launch, first, count, room.data());
        } else {
          for (int64_t i = first; i < first + count; ++i) run_in_place(launch, i);
        }
      }
    });
    return EP_STATUS_OK;
  }

 private:
  Product<T> product() const {
    Product<T> one{};
    one.m = c_.rows;
    one.n = c_.columns;
    one.k = a_.columns;
    return one;
  }

  void run_in_place(const ep_launch& launch, int64_t matrix) const {
    Product<T> one = product();
    one.a = reinterpret_cast<const T*>(a_.at(launch, matrix));
    one.b = reinterpret_cast<const T*>(b_.at(launch, matrix));
    one.c = reinterpret_cast<T*>(c_.at(launch, matrix));
    one.a_row = a_.row;
    one.a_column = a_.column;
    one.b_row = b_.row;
    one.c_row = c_.row;
    kernel_(one);
  }

  // `room` has space for `together_` matrices of each operand.
  void run_converted(const ep_launch& launch, int64_t first, int64_t count, T* room) const {
    T *const a = room, *const b = room + room_elements, *const c = room + 2 * room_elements;
    read(launch, a_, first, count, a);
    read(launch, b_, first, count, b);
    Product<T> one = product();
    one.a_row = one.k;
    one.a_column = 1;
    one.b_row = one.c_row = one.n;
    for (int64_t i = 0; i < count; ++i) {
      one.a = a + i * a_.elements();
      one.b = b + i * b_.elements();
      one.c = c + i * c_.elements();
      kernel_(one);
    }
    for_each_run(c_, first, count, [&](int64_t matrix, int64_t from, int64_t n) {
      c_.convert(c_.at(launch, matrix), 1, c + from, 1, n);
    });
  }
  void read(const ep_launch& launch, const Matrices& matrices, int64_t first, int64_t count, T* to) const {
    for_each_run(matrices, first, count, [&](int64_t matrix, int64_t place, int64_t n) {
      matrices.convert(to + place, 1, matrices.at(launch, matrix), 1, n);
    });
  }

  // Calls use(first matrix, place in the buffer, elements) for runs of dense matrices that follow each other in memory.
  template <class Use>
  static void for_each_run(const Matrices& matrices, int64_t first, int64_t count, const Use& use) {
    if (matrices.batch.contiguous(matrices.elements())) return use(first, 0, count * matrices.elements());
    for (int64_t i = 0; i < count; ++i) use(first + i, i * matrices.elements(), matrices.elements());
  }

  ProductKernel<T> kernel_;
  Matrices c_, a_, b_;
  bool converts_;
  // The number of matrices that are converted together.
  int64_t together_ = 1;
};

}  // namespace

Refusal BatchMatmul::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("batches of small products need static dims");
  const ep_operand_desc& dst = desc.operands[0];
  const int32_t wide = wide_dtype(dst.dtype);
  if (wide == 0 || dst.dtype == EP_DTYPE_bool) return Refusal::because("no matmul on %s", dtype_name(dst.dtype));
  if (desc.operand_count != 3 || desc.epilogue_count != 0) return Refusal::because("a bias or epilogues");
  if (is_floating(dst.dtype) && desc.accumulate_dtype != 0 && desc.accumulate_dtype != wide) {
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
    if (operand.rank != dst.rank || operand.rank < 3) return Refusal::because("rank %d", operand.rank);
    if (operand.dtype != dst.dtype) return Refusal::because("operand %u is %s", i, dtype_name(operand.dtype));
  }
  if (dst.role != EP_ROLE_DST || operand(desc, EP_ROLE_SRC) == nullptr || operand(desc, EP_ROLE_SRC_B) == nullptr) {
    return Refusal::because("an operand is missing");
  }
  const Matrices c(desc, EP_ROLE_DST), a(desc, EP_ROLE_SRC), b(desc, EP_ROLE_SRC_B);
  const int64_t limit = most_multiplications / std::max<int64_t>(a.columns, 1);
  if (c.rows > limit || c.columns > limit || c.elements() > limit) {
    return Refusal::because("more than %d multiplications per matrix", static_cast<int>(most_multiplications));
  }
  if (a.columns == 0 || c.batch.count() < fewest_matrices) return Refusal::because("few matrices");
  const bool converts = dtype_size(dst.dtype) < 4;
  for (const Matrices* each : {&c, &a, &b}) {
    const bool in_place = each == &a || each->columns == 1 || each->column == 1;
    if (converts ? !each->is_dense() : !in_place) {
      return Refusal::because("the matrices of operand %d are not dense", each->index);
    }
  }
  return {};
}

Refusal BatchMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  with_sum_type(desc.operands[0].dtype,
                [&]<class T>() { *out = make_primitive<BatchMatmulPrimitive<T>>(device, device, desc); });
  return {};
}

}  // namespace tenon::provider::cpu
