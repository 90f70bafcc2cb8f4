// matmul over f64: blocks of the result, divided among threads.
#include <algorithm>

#include "providers/cpu/elementwise/tail.h"
#include "providers/cpu/f64_matmul/f64_matmul.h"
#include "providers/cpu/f64_matmul/kernel.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// The matrices of one operand.
struct Matrix {
  int32_t index = -1;  // operand number; -1 if absent
  int64_t row = 0;
  int64_t column = 0;
  Axes batch;

  Matrix(const ep_primitive_desc& desc, int32_t role) : index(find_operand(desc, role)) {
    if (index < 0) return;
    const ep_operand_desc& operand = desc.operands[index];
    row = operand.strides[operand.rank - 2];
    column = operand.strides[operand.rank - 1];
    for (int32_t axis = 0; axis < operand.rank - 2; ++axis) batch.add(operand.dims[axis], operand.strides[axis]);
  }
  double* at(const ep_launch& launch, int64_t matrix) const {
    return reinterpret_cast<double*>(address_of(launch.operands[index])) + batch.offset(matrix);
  }
};

// Returns a block length that divides `length` into at least `pieces` blocks. It is a multiple of `step`, so that few
// tiles are partial. The division into blocks does not affect the bits.
int64_t block_length(int64_t length, int64_t pieces, int64_t step) {
  const int64_t each = std::max<int64_t>(1, (length + pieces - 1) / pieces);
  return (each + step - 1) / step * step;
}

class F64MatmulPrimitive final : public ep_primitive {
 public:
  F64MatmulPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : kernel_(f64_block_kernel(on.simd)),
        c_(desc, EP_ROLE_DST),
        a_(desc, EP_ROLE_SRC),
        b_(desc, EP_ROLE_SRC_B),
        bias_(desc, EP_ROLE_BIAS),
        tail_(on, desc, 0) {
    const ep_operand_desc& dst = desc.operands[c_.index];
    m_ = dst.dims[dst.rank - 2];
    n_ = dst.dims[dst.rank - 1];
    k_ = desc.operands[a_.index].dims[dst.rank - 1];
    const int64_t wide = (n_ + f64_block_columns - 1) / f64_block_columns;
    const int64_t tall = std::max((m_ + f64_block_rows - 1) / f64_block_rows, pieces_for(on.threads, wide));
    block_rows_ = block_length(m_, tall, f64_tile_rows);
    block_columns_ = block_length(n_, wide, f64_widest_tile);
    room_ = f64_room(block_rows_, block_columns_, k_);
    room_bytes_ = static_cast<uint64_t>(on.threads * room_) * sizeof(double);
  }

  uint64_t workspace(const ep_shape*) const override { return room_bytes_; }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t tall = (m_ + block_rows_ - 1) / block_rows_;
    const int64_t wide = (n_ + block_columns_ - 1) / block_columns_;
    const int64_t units = c_.batch.count() * tall * wide;
    // A thread computes about 16 multiply-adds per nanosecond.
    parallel(device->threads, c_.batch.count() * m_ * n_ * k_ / 16, [&](int32_t part, int32_t parts) {
      auto* room = reinterpret_cast<double*>(address_of(launch.workspace)) + runner() * room_;
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t i = unit / wide % tall * block_rows_;
        const int64_t j = unit % wide * block_columns_;
        run_block(launch, unit / wide / tall, i, j, room);
      }
    });
    if (!tail_.empty()) tail_.run(launch, device->threads);
    return EP_STATUS_OK;
  }

 private:
  // The number of blocks of rows such that each thread gets one. Each block packs its columns again, so a block has at
  // least `fewest` rows.
  int64_t pieces_for(int32_t threads, int64_t wide) const {
    constexpr int64_t fewest = 48;
    const int64_t others = std::max<int64_t>(1, c_.batch.count() * wide);
    return std::clamp<int64_t>((threads + others - 1) / others, 1, std::max<int64_t>(1, m_ / fewest));
  }

  void run_block(const ep_launch& launch, int64_t matrix, int64_t i, int64_t j, double* room) const {
    const F64Block block = {a_.at(launch, matrix) + i * a_.row,
                            b_.at(launch, matrix) + j * b_.column,
                            c_.at(launch, matrix) + i * c_.row + j * c_.column,
                            std::min(block_rows_, m_ - i),
                            std::min(block_columns_, n_ - j),
                            k_,
                            a_.row,
                            a_.column,
                            b_.row,
                            b_.column,
                            c_.row,
                            c_.column};
    kernel_(block, room);
    if (bias_.index < 0) return;
    const double* bias = bias_.at(launch, matrix) + i * bias_.row + j * bias_.column;
    for (int64_t p = 0; p < block.m; ++p) {
      for (int64_t q = 0; q < block.n; ++q)
        block.c[p * c_.row + q * c_.column] += bias[p * bias_.row + q * bias_.column];
    }
  }

  F64BlockKernel kernel_;
  Matrix c_, a_, b_, bias_;
  int64_t m_ = 0, n_ = 0, k_ = 0;
  int64_t block_rows_ = 0, block_columns_ = 0;
  int64_t room_ = 0;  // doubles per thread
  uint64_t room_bytes_ = 0;
  Tail tail_;
};

}  // namespace

Refusal F64Matmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("products in blocks need static dims");
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != EP_DTYPE_f64) {
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  }
  const ep_operand_desc& dst = desc.operands[0];
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.dtype != EP_DTYPE_f64) return Refusal::because("operand %u is %s", i, dtype_name(operand.dtype));
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
    if (operand.rank != dst.rank || operand.rank < 2) return Refusal::because("rank %d", operand.rank);
  }
  if (dst.role != EP_ROLE_DST || operand(desc, EP_ROLE_SRC) == nullptr || operand(desc, EP_ROLE_SRC_B) == nullptr) {
    return Refusal::because("an operand is missing");
  }
  if (operand(desc, EP_ROLE_SRC)->dims[dst.rank - 1] == 0) return Refusal::because("nothing to contract");
  return why_no_tail(device, desc, 0);
}

Refusal F64Matmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<F64MatmulPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
