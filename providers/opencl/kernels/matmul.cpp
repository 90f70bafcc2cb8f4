// matmul: batched, with strided operands, bias and epilogues.
#include <algorithm>

#include "providers/opencl/kernels/kernels.h"
#include "providers/opencl/kernels/product.h"

namespace tenon::provider::opencl {
namespace {

constexpr int32_t batch_axes = EP_MAX_RANK - 2;

// Mirrors struct matmul_parameters of programs/matmul.cl.
struct MatmulParameters {
  uint64_t m;
  uint64_t n;
  uint64_t k;
  uint64_t batch_dims[batch_axes];
  uint64_t offsets[product_slots];
  uint64_t scalars[2 * EP_MAX_EPILOGUES];
  uint64_t strides[product_slots][EP_MAX_RANK];  // batch axes, rows, columns
  int32_t batch_rank;
  int32_t unused;
};

class MatmulPrimitive final : public ep_primitive {
 public:
  MatmulPrimitive(const ep_primitive_desc& desc, std::shared_ptr<Kernel> kernel)
      : desc_(desc), operands_(desc, EP_ROLE_SRC, EP_ROLE_SRC_B), kernel_(std::move(kernel)) {
    const ep_operand_desc& dst = desc.operands[0];
    const ep_operand_desc& src = desc.operands[operands_.at(SLOT_A)];
    parameters_.m = static_cast<uint64_t>(dst.dims[dst.rank - 2]);
    parameters_.n = static_cast<uint64_t>(dst.dims[dst.rank - 1]);
    parameters_.k = static_cast<uint64_t>(src.dims[src.rank - 1]);
    parameters_.batch_rank = dst.rank - 2;
    for (int32_t axis = 0; axis < dst.rank - 2; ++axis) {
      parameters_.batch_dims[axis] = static_cast<uint64_t>(dst.dims[axis]);
      batches_ *= parameters_.batch_dims[axis];
    }
    for (int32_t slot = 0; slot < product_slots; ++slot) {
      if (operands_.at(slot) < 0) continue;
      const ep_operand_desc& operand = desc.operands[operands_.at(slot)];
      std::copy_n(operand.strides, dst.rank - 2, parameters_.strides[slot]);
      std::copy_n(operand.strides + dst.rank - 2, 2, parameters_.strides[slot] + batch_axes);
    }
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    MatmulParameters p = parameters_;
    std::array<cl_mem, product_slots> b;
    operands_.read(desc_, launch, &b, p.offsets, p.scalars);
    const Dispatch dispatch = {kernel_.get(), batches_ * tiles_for(p.m) * tiles_for(p.n), tile_group};
    return stream.queue->launch(dispatch, {b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]}, p, error);
  }

 private:
  ep_primitive_desc desc_;
  ProductOperands operands_;
  std::shared_ptr<Kernel> kernel_;
  MatmulParameters parameters_{};
  uint64_t batches_ = 1;
};

}  // namespace

Refusal Matmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = ProductOperands(desc, EP_ROLE_SRC, EP_ROLE_SRC_B).check(device, desc)) return refusal;
  const int32_t rank = desc.operands[0].rank;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (desc.operands[i].rank == rank && rank >= 2) continue;
    return Refusal::because("operand %u has rank %d, the destination %d", i, desc.operands[i].rank, rank);
  }
  return {};
}

Refusal Matmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::string options = ProductOperands(desc, EP_ROLE_SRC, EP_ROLE_SRC_B).options(device, desc);
  std::shared_ptr<Kernel> kernel;
  if (Refusal refusal = device.programs->get("matmul", options, "matmul", &kernel)) return refusal;
  *out = make_primitive<MatmulPrimitive>(device, desc, std::move(kernel));
  return {};
}

}  // namespace tenon::provider::opencl
