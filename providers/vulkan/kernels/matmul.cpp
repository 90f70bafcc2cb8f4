// matmul: batched, with strided operands, bias and epilogues.
#include <algorithm>
#include <array>
#include <cstring>

#include "providers/vulkan/kernels/element.h"
#include "providers/vulkan/kernels/geometry.h"
#include "providers/vulkan/kernels/kernels.h"
#include "sdk/provider/elementwise.h"

namespace tenon::provider::vulkan {
namespace {

constexpr uint32_t tile = matmul_tile;
constexpr uint32_t matmul_threads = 256;
constexpr int32_t most_batch_axes = EP_MAX_RANK - 2;
constexpr int64_t most_matrix_bytes = INT64_C(1) << 30;

// Indices of operands in shaders/matmul.comp.
enum Slot : int32_t {
  SLOT_DST,
  SLOT_SRC,
  SLOT_SRC_B,
  SLOT_BIAS,
  SLOT_EPILOGUE,
  slots = SLOT_EPILOGUE + EP_MAX_EPILOGUES
};

struct Problem {
  uint64_t address[slots];
  uint64_t scalars[2 * EP_MAX_EPILOGUES];
  uint32_t m, n, k;
  uint32_t batch_rank;
  uint32_t batch_dims[most_batch_axes];
  uint32_t batch_strides[slots][most_batch_axes];
  uint32_t row_strides[slots];
  uint32_t column_strides[slots];
};
struct Push {
  uint64_t problem;
  uint32_t tiles_n;
  uint32_t first_batch;
  uint32_t first_tile;
  uint32_t tiles;
};

// The operand number for each slot; -1 if the descriptor has none.
std::array<int32_t, slots> operands_of(const ep_primitive_desc& desc) {
  std::array<int32_t, slots> found{};
  found[SLOT_DST] = find_operand(desc, EP_ROLE_DST);
  found[SLOT_SRC] = find_operand(desc, EP_ROLE_SRC);
  found[SLOT_SRC_B] = find_operand(desc, EP_ROLE_SRC_B);
  found[SLOT_BIAS] = find_operand(desc, EP_ROLE_BIAS);
  for (int32_t i = 0; i < EP_MAX_EPILOGUES; ++i) {
    const bool wanted =
        static_cast<uint32_t>(i) < desc.epilogue_count && desc.epilogues[i].arity == 2 && desc.epilogues[i].role != 0;
    found[SLOT_EPILOGUE + i] = wanted ? find_operand(desc, desc.epilogues[i].role) : -1;
  }
  return found;
}

Refusal check_operands(const ep_device& device, const ep_primitive_desc& desc) {
  const std::array<int32_t, slots> found = operands_of(desc);
  if (found[SLOT_DST] != 0 || found[SLOT_SRC] < 0 || found[SLOT_SRC_B] < 0) {
    return Refusal::because("an operand is missing");
  }
  const ep_operand_desc& dst = desc.operands[0];
  const char* computed_in = class_of_dtype(dst.dtype);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (std::find(found.begin(), found.end(), static_cast<int32_t>(i)) == found.end()) {
      return Refusal::because("operand %u has role %d", i, operand.role);
    }
    if (is_scalar(operand) || operand.rank != dst.rank || operand.rank < 2) {
      return Refusal::because("operand %u has rank %d", i, operand.rank);
    }
    if (operand.dtype == EP_DTYPE_bool) return Refusal::because("no matmul on bool");
    if (Refusal refusal = why_not_computed(device.context->physical->features, operand.dtype)) return refusal;
    if (std::strcmp(class_of_dtype(operand.dtype), computed_in) != 0) {
      return Refusal::because("operand %u is %s, the result %s", i, dtype_name(operand.dtype), dtype_name(dst.dtype));
    }
  }
  return {};
}

// Refuses if one matrix of an operand is too large for 32-bit indices.
Refusal check_matrices(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    int64_t reach = 1;
    for (int32_t axis = operand.rank - 2; axis < operand.rank; ++axis) {
      reach += (operand.dims[axis] - 1) * operand.strides[axis];
    }
    if (reach * dtype_size(operand.dtype) > most_matrix_bytes) {
      return Refusal::because("operand %u has matrices of %lld elements", i, static_cast<long long>(reach));
    }
  }
  return {};
}

class MatmulPrimitive final : public ep_primitive {
 public:
  MatmulPrimitive(const ep_primitive_desc& desc, std::shared_ptr<Pipeline> pipeline)
      : desc_(desc), operands_(operands_of(desc)), pipeline_(std::move(pipeline)) {
    const ep_operand_desc& dst = desc.operands[0];
    batch_.rank = dst.rank - 2;
    batch_.operands = slots;
    std::copy_n(dst.dims, batch_.rank, batch_.dims);
    for (int32_t slot = 0; slot < slots; ++slot) {
      if (operands_[slot] < 0) continue;
      const ep_operand_desc& operand = desc.operands[operands_[slot]];
      batch_.sizes[slot] = dtype_size(operand.dtype);
      std::copy_n(operand.strides, batch_.rank, batch_.strides[slot]);
    }
  }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    CommandStream::Recording recording(*stream.commands);
    return for_each_piece(batch_, [&](const Space& piece) { return run(recording, launch, piece, error); });
  }

 private:
  ep_status run(CommandStream::Recording& recording, const ep_launch& launch, const Space& piece,
                ep_error** error) const {
    Problem problem;
    write(launch, piece, &problem);
    const uint64_t batches = static_cast<uint64_t>(piece.count());
    const uint64_t tiles_n = divide_up(problem.n, tile);
    const MatmulCut cut =
        cut_matmul(divide_up(problem.m, tile) * tiles_n, batches, problem.k, device->context->most_work);
    for (uint64_t batch = 0; batch < batches; batch += cut.batches) {
      for (uint64_t first = 0; first < cut.all_tiles; first += cut.tiles) {
        const uint64_t tiles = std::min(cut.tiles, cut.all_tiles - first);
        const uint64_t depth = std::min(cut.batches, batches - batch);
        const Push push = {0, static_cast<uint32_t>(tiles_n), static_cast<uint32_t>(batch),
                           static_cast<uint32_t>(first), static_cast<uint32_t>(tiles)};
        const ep_status status = dispatch(recording, problem, push, tiles, depth, error);
        if (status != EP_STATUS_OK) return status;
      }
    }
    return EP_STATUS_OK;
  }

  // Each dispatch has its own parameters, because those of an earlier dispatch may belong to another batch.
  ep_status dispatch(CommandStream::Recording& recording, const Problem& problem, Push push, uint64_t tiles,
                     uint64_t depth, ep_error** error) const {
    StagedRange range;
    if (const ep_status status = recording.parameters(sizeof(Problem), &range, error); status != EP_STATUS_OK) {
      return status;
    }
    std::memcpy(range.host(), &problem, sizeof problem);
    push.problem = range.address();
    const Grid grid = grid_of(tiles, device->context->limits().maxComputeWorkGroupCount[0]);
    return recording.add_dispatch({pipeline_->handle(),
                                   &push,
                                   sizeof push,
                                   {grid.x, grid.y, static_cast<uint32_t>(depth)},
                                   tiles * depth * matmul_tile_work(problem.k)},
                                  error);
  }

  void write(const ep_launch& launch, const Space& piece, Problem* problem) const {
    *problem = {};
    const ep_operand_desc& dst = desc_.operands[0];
    const ep_operand_desc& src = desc_.operands[operands_[SLOT_SRC]];
    problem->m = static_cast<uint32_t>(dst.dims[dst.rank - 2]);
    problem->n = static_cast<uint32_t>(dst.dims[dst.rank - 1]);
    problem->k = static_cast<uint32_t>(src.dims[src.rank - 1]);
    problem->batch_rank = static_cast<uint32_t>(piece.rank);
    for (int32_t axis = 0; axis < piece.rank; ++axis) {
      problem->batch_dims[axis] = static_cast<uint32_t>(piece.dims[axis]);
    }
    for (int32_t slot = 0; slot < slots; ++slot) {
      if (operands_[slot] < 0) continue;
      const ep_operand_desc& operand = desc_.operands[operands_[slot]];
      problem->address[slot] =
          address_of(launch.operands[operands_[slot]]) + static_cast<uint64_t>(piece.offsets[slot] * piece.sizes[slot]);
      for (int32_t axis = 0; axis < piece.rank; ++axis) {
        problem->batch_strides[slot][axis] = static_cast<uint32_t>(piece.strides[slot][axis]);
      }
      problem->row_strides[slot] = static_cast<uint32_t>(operand.strides[operand.rank - 2]);
      problem->column_strides[slot] = static_cast<uint32_t>(operand.strides[operand.rank - 1]);
    }
    for (uint32_t i = 0; i < desc_.epilogue_count; ++i) {
      for (uint32_t slot = 0; slot < 2; ++slot) {
        const uint32_t scalar = static_cast<uint32_t>(desc_.epilogues[i].scalar) + slot;
        if (scalar < launch.scalar_count) {
          problem->scalars[2 * i + slot] = scalar_bits(launch.scalars[scalar], launch.scalars[scalar].dtype);
        }
      }
    }
  }

  ep_primitive_desc desc_;
  std::array<int32_t, slots> operands_;
  Space batch_;
  std::shared_ptr<Pipeline> pipeline_;
};

}  // namespace

Refusal Matmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = check_operands(device, desc)) return refusal;
  if (is_dynamic(desc)) return Refusal::because("dims or strides are only known at launch");
  if (Refusal refusal = check_matrices(desc)) return refusal;
  if (desc.epilogue_count > EP_MAX_EPILOGUES) return Refusal::because("%u epilogues", desc.epilogue_count);
  for (uint32_t i = 0; i < desc.epilogue_count; ++i) {
    if (Refusal refusal = check_epilogue(desc, desc.epilogues[i])) return refusal;
  }
  const uint32_t threads = device.context->most_threads();
  if (threads < matmul_threads) return Refusal::because("workgroups of %u; %u are needed", threads, matmul_threads);
  return {};
}

Refusal Matmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const std::array<int32_t, slots> operands = operands_of(desc);
  const auto dtype_at = [&](int32_t slot) {
    return operands[slot] < 0 ? 0U : static_cast<uint32_t>(desc.operands[operands[slot]].dtype);
  };
  const int32_t dtype = desc.operands[0].dtype;
  Constants constants = {
      0, width_of(dtype), dtype_at(SLOT_DST), dtype_at(SLOT_SRC), dtype_at(SLOT_SRC_B), dtype_at(SLOT_BIAS)};
  for (int32_t i = 0; i < EP_MAX_EPILOGUES; ++i) {
    constants.push_back(static_cast<uint32_t>(desc.epilogues[i].arity));
    constants.push_back(static_cast<uint32_t>(desc.epilogues[i].op));
    constants.push_back(dtype_at(SLOT_EPILOGUE + i));
  }
  std::shared_ptr<Pipeline> pipeline;
  const std::string module = module_name("matmul", class_of_dtype(dtype), device.context->physical->features);
  if (Refusal refusal = compile(device, module, constants, &pipeline)) return refusal;
  *out = make_primitive<MatmulPrimitive>(device, desc, std::move(pipeline));
  return {};
}

}  // namespace tenon::provider::vulkan
