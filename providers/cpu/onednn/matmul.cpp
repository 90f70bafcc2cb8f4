// matmul over f32 on oneDNN, with bias, and with epilogues as post-ops; and over factors of bf16, with results of bf16
// or f32, where the processor has products of bf16, which add in f32.
#include <algorithm>

#include "providers/cpu/onednn/epilogue.h"
#include "providers/cpu/onednn/onednn.h"
#include "providers/cpu/onednn/relaxed.h"
#include "providers/cpu/onednn/tiles.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// The operand in oneDNN's form: `rank` dims, and length 1 where a stride of 0 repeats elements.
dnnl::memory::desc operand_layout(const ep_operand_desc& operand, int32_t rank) {
  dnnl::memory::dims dims;
  dnnl::memory::dims strides;
  for (int32_t axis = operand.rank - rank; axis < operand.rank; ++axis) {
    const bool repeated = operand.strides[axis] == 0;
    dims.push_back(repeated ? 1 : operand.dims[axis]);
    strides.push_back(repeated ? 1 : operand.strides[axis]);
  }
  for (size_t axis = dims.size(); axis-- > 0;) {  // an axis of length 1 gets the stride of a dense tensor
    if (dims[axis] == 1) strides[axis] = axis + 1 < dims.size() ? dims[axis + 1] * strides[axis + 1] : 1;
  }
  return memory_desc(dims, strides, type_of(operand));
}

// Merges the batch axis with the rows, if SRC_B is the same for the whole batch and the rows of SRC and DST continue
// from matrix to matrix. Usually the host has folded the batch to one axis before.
bool merge_batch(ep_primitive_desc* desc) {
  if (desc->operands[0].rank != 3) return false;
  for (uint32_t i = 0; i < desc->operand_count; ++i) {
    const ep_operand_desc& operand = desc->operands[i];
    if (operand.role == EP_ROLE_SRC_B) {
      if (operand.strides[0] != 0) return false;
    } else if (operand.strides[0] != operand.dims[1] * operand.strides[1]) {
      return false;
    }
  }
  for (uint32_t i = 0; i < desc->operand_count; ++i) {
    ep_operand_desc& operand = desc->operands[i];
    if (operand.role != EP_ROLE_SRC_B) operand.dims[1] *= operand.dims[0];
    for (int32_t axis = 0; axis < 2; ++axis) {
      operand.dims[axis] = operand.dims[axis + 1];
      operand.strides[axis] = operand.strides[axis + 1];
    }
    operand.rank = 2;
  }
  return true;
}

int64_t work_of(const ep_primitive_desc& desc) {
  const ep_operand_desc& dst = desc.operands[0];
  int64_t work = 2;
  for (int32_t axis = 0; axis < dst.rank; ++axis) work *= dst.dims[axis];
  return work * operand(desc, EP_ROLE_SRC)->dims[dst.rank - 1];
}

constexpr int64_t work_per_nanosecond = 60;  // products and sums, about, of one thread

int32_t axis_of(const ep_primitive_desc& desc, const ep_operand_desc& operand, int32_t axis) {
  const int32_t rank = desc.operands[0].rank;
  if (operand.role == EP_ROLE_SRC && axis == rank - 1) return -1;
  if (operand.role == EP_ROLE_SRC_B && axis == rank - 2) return -1;
  return axis;
}

// Tiles as square as the result allows, so that they read each matrix few times: of whole matrices, of whole rows, or
// of both.
Tiling tiling_of(const ep_primitive_desc& desc) {
  const ep_operand_desc& dst = desc.operands[0];
  Tiling tiling;
  tiling.axis_of = axis_of;
  const int64_t length = operand(desc, EP_ROLE_SRC)->dims[dst.rank - 1];
  int64_t side = 64;
  while (2 * side * side * length < tile_work * work_per_nanosecond) side += 64;
  const int64_t rows = dst.dims[dst.rank - 2], columns = dst.dims[dst.rank - 1];
  const auto room_beside = [side](int64_t other) { return std::max<int64_t>(1, side * side / other / 64) * 64; };
  const int64_t wide = std::min(columns, rows < side ? room_beside(rows) : side);
  const int64_t high = std::min(rows, wide < side ? room_beside(wide) : side);
  tiling.lengths[static_cast<size_t>(dst.rank - 1)] = wide;
  tiling.lengths[static_cast<size_t>(dst.rank - 2)] = high;
  int64_t matrices = wide == columns && high == rows ? std::max<int64_t>(1, side * side / (rows * columns)) : 1;
  for (int32_t axis = dst.rank - 2; axis-- > 0;) {
    const int64_t count = std::min(dst.dims[axis], matrices);
    tiling.lengths[static_cast<size_t>(axis)] = count;
    matrices = count == dst.dims[axis] ? std::max<int64_t>(1, matrices / count) : 1;
  }
  return tiling;
}

constexpr int64_t divided_from = 10'000;  // nanoseconds of work

// About one tile for each thread: of whole matrices, else along the rows, or first along the columns if they are many.
Tiling tiles_for_threads(const ep_primitive_desc& desc, int64_t threads) {
  const ep_operand_desc& dst = desc.operands[0];
  Tiling tiling;
  tiling.axis_of = axis_of;
  const auto divide = [&](int32_t axis, int64_t step, int64_t least) {
    const int64_t dim = dst.dims[axis], share = (dim + threads - 1) / threads;
    const int64_t length = std::min(dim, std::max(least, (share + step - 1) / step * step));
    tiling.lengths[static_cast<size_t>(axis)] = length;
    threads /= (dim + length - 1) / length;
  };
  for (int32_t axis = 0; axis < dst.rank - 2; ++axis) divide(axis, 1, 1);
  const int32_t rows = dst.rank - 2, columns = dst.rank - 1;
  const bool is_wide = dst.dims[columns] >= 2 * dst.dims[rows];
  if (is_wide) divide(columns, 24, 48);  // oneDNN's kernel computes tiles of 4 rows and 24 columns
  divide(rows, 4, 16);
  if (!is_wide) divide(columns, 24, 48);
  return tiling;
}

// True if the bits of a product depend on the number of threads: oneDNN's products of f32 before AVX-512 compute the
// rows at the edge of a thread's block in another order, and share long sums among threads (calc_nthr_nocopy_* of its
// gemm_utils.cpp).
bool depends_on_threads(const ep_device& device, const ep_primitive_desc& desc) {
  if (device.simd != SimdLevel::avx3) return true;
  const ep_operand_desc& dst = desc.operands[0];
  const int64_t rows = dst.dims[dst.rank - 2], columns = dst.dims[dst.rank - 1];
  const int64_t length = operand(desc, EP_ROLE_SRC)->dims[dst.rank - 1];
  return length >= 512 && ((rows + 63) / 64) * ((columns + 63) / 64) < device.threads;
}

// True if a constant matrix is kept in oneDNN's preferred layout. oneDNN packs no batches of matrices.
bool is_packed(const ep_primitive_desc& desc) {
  const ep_operand_desc& weights = *operand(desc, EP_ROLE_SRC_B);
  return weights.rank == 2 && (weights.flags & EP_OPERAND_FLAG_CONSTANT) != 0;
}
// A descriptor with the same dims and dtype, dense and row-major.
dnnl::memory::desc in_rows(const dnnl::memory::desc& desc) {
  const dnnl::memory::dims dims = desc.dims();
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return memory_desc(dims, strides, desc.data_type());
}
bool has_gaps(const dnnl::memory::desc& desc) { return desc.get_size() != in_rows(desc).get_size(); }
dnnl::memory::desc in_any_order(const dnnl::memory::desc& desc) {
  return {desc.dims(), desc.data_type(), dnnl::memory::format_tag::any};
}

// The layout in which oneDNN reads a factor. A rounded copy of an operand with gaps is dense.
dnnl::memory::desc factor_layout(const ep_operand_desc& factor, int32_t rank, bool rounds) {
  const dnnl::memory::desc layout = operand_layout(factor, rank);
  return rounds && has_gaps(layout) ? in_rows(layout) : layout;
}

bool is_factor(const ep_operand_desc& operand) { return operand.role == EP_ROLE_SRC || operand.role == EP_ROLE_SRC_B; }

// Factors and results are of one dtype, or the factors are bf16 and all else is f32.
Refusal why_not_dtypes(const ep_primitive_desc& desc) {
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t factors = operand(desc, EP_ROLE_SRC)->dtype;
  if (dtype != EP_DTYPE_f32 && dtype != EP_DTYPE_bf16) {
    return Refusal::because("%s, not f32 or bf16", dtype_name(dtype));
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const bool mixed = is_factor(desc.operands[i]) && factors == EP_DTYPE_bf16;
    const int32_t wanted = mixed ? EP_DTYPE_bf16 : dtype;
    if (desc.operands[i].dtype != wanted) {
      return Refusal::because("operand %u is %s, not %s", i, dtype_name(desc.operands[i].dtype), dtype_name(wanted));
    }
  }
  if (factors == EP_DTYPE_f32) return {};
  if (!has_bf16_products()) return Refusal::because("bf16 needs avx512_core_bf16");
  // With AMX, oneDNN 2.6 executes an illegal instruction in some products whose sums have 64 n - 1 terms, such as
  // 70 x 63 times 63 x 2.
  const int64_t length = operand(desc, EP_ROLE_SRC)->dims[desc.operands[0].rank - 1];
  if (has_tiles() && length % 64 == 63) {
    return Refusal::because("oneDNN's tiles of bf16 may fail for sums of %lld", static_cast<long long>(length));
  }
  if (dtype == EP_DTYPE_f32) return {};
  if (post_op_count(desc) != desc.epilogue_count)
    return Refusal::because("oneDNN has no post-op for an epilogue over bf16");
  if (work_of(desc) < 8192) return Refusal::because("fewer than 4096 products of bf16");
  return {};
}

}  // namespace

Refusal OneDnnMatmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("oneDNN's matmul needs static dims");
  if (is_huge(desc)) return Refusal::because("an operand of 2^31 elements or more");
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != EP_DTYPE_f32) {
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
    if (operand.rank != desc.operands[0].rank || operand.rank < 2) return Refusal::because("rank %d", operand.rank);
  }
  if (operand(desc, EP_ROLE_SRC) == nullptr || operand(desc, EP_ROLE_SRC_B) == nullptr) {
    return Refusal::because("an input is missing");
  }
  if (Refusal refusal = why_not_dtypes(desc)) return refusal;
  for (int32_t role : {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B}) {
    const ep_operand_desc& matrix = *operand(desc, role);
    for (int32_t axis = matrix.rank - 2; axis < matrix.rank; ++axis) {
      if (matrix.strides[axis] == 0 && matrix.dims[axis] != 1) return Refusal::because("a matrix repeated by stride 0");
    }
  }
  return why_no_epilogues(device, desc);
}

bool OneDnnMatmul::is_faster_apart(const ep_device& device, const ep_primitive_desc& desc) {
  if (desc.epilogue_count == 0 || desc.operands[0].dtype != EP_DTYPE_bf16) return false;
  ep_primitive_desc bare = desc;
  bare.epilogue_count = 0;
  ep_support_info ignored{};
  return !why_not(device, bare, ignored);
}

namespace {

// Rounding a factor takes about as long as 32 products of each of its elements; a constant is rounded only once.
Refusal why_not_worth_rounding(const ep_primitive_desc& desc) {
  constexpr int64_t fewest_columns = 32, fewest_terms = 16, fewest_rows = 96;
  const ep_operand_desc& dst = desc.operands[0];
  const bool constant = is_packed(desc);
  ep_primitive_desc merged = desc;
  merge_batch(&merged);
  const int64_t rows = merged.operands[0].dims[merged.operands[0].rank - 2], columns = dst.dims[dst.rank - 1];
  const int64_t terms = operand(desc, EP_ROLE_SRC)->dims[dst.rank - 1];
  const int64_t fewest_products = constant ? 64 * 64 * 64 : 96 * 96 * 96;
  if (columns < fewest_columns || terms < fewest_terms || (!constant && rows < fewest_rows)) {
    return Refusal::because("%lld x %lld x %lld is not worth the rounding", static_cast<long long>(rows),
                            static_cast<long long>(terms), static_cast<long long>(columns));
  }
  if (work_of(desc) < 2 * fewest_products) {
    return Refusal::because("fewer than %lld products", static_cast<long long>(fewest_products));
  }
  return {};
}

// `rounds`: the factors of `original` are f32, and a launch rounds them to bf16.
Refusal make_product(ep_device& device, const ep_primitive_desc& original, bool rounds, ep_primitive** out,
                     ep_primitive_info& info) {
  ep_primitive_desc given = original;
  merge_batch(&given);
  const ep_primitive_desc desc = rounds ? with_rounded_factors(given) : given;
  const int32_t rank = desc.operands[0].rank;
  const bool deterministic = (desc.flags & EP_PRIMITIVE_FLAG_DETERMINISTIC) != 0;
  const bool varies = depends_on_threads(device, desc);
  const int64_t work = work_of(desc) / work_per_nanosecond;
  const MakeTile make_tile = rounds ? &RelaxedMatmul::make : &OneDnnMatmul::make;
  if (work >= tiled_from) {
    if (const Tiling tiling = tiling_of(desc); tiling.cuts(desc)) {
      return make_tiles(device, given, tiling, make_tile, out, info);
    }
  }
  // The bits must not depend on the number of threads that a launch gets. A packed matrix cannot be cut.
  if (varies && !deterministic && !is_packed(desc) && device.threads > 1 && work >= divided_from) {
    if (const Tiling tiling = tiles_for_threads(desc, device.threads); tiling.cuts(desc)) {
      return make_tiles_beside(device, given, tiling, work, make_tile, out, info);
    }
  }
  const int64_t nanoseconds = varies && (deterministic || work < divided_from) ? 0 : work;
  const OpenMpWidth width(nanoseconds >= 3000 ? device.threads : 1);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  Program program(engine);
  std::vector<ProgramArgument> arguments;
  const int32_t src_index = find_operand(desc, EP_ROLE_SRC), weights_index = find_operand(desc, EP_ROLE_SRC_B);
  const dnnl::memory::desc src = factor_layout(desc.operands[src_index], rank, rounds);
  arguments.push_back(
      {DNNL_ARG_SRC,
       program.reordered(program.operand(src_index, operand_layout(given.operands[src_index], rank)), src)});
  const dnnl::memory::desc given_weights = operand_layout(given.operands[weights_index], rank);
  const dnnl::memory::desc plain_weights = factor_layout(desc.operands[weights_index], rank, rounds);
  const bool packed = is_packed(desc);
  const dnnl::memory::desc weights = packed || (rounds && rank == 2) ? in_any_order(plain_weights) : plain_weights;
  // oneDNN accepts a bias with a stride but ignores the stride.
  const int32_t bias_index = find_operand(desc, EP_ROLE_BIAS);
  dnnl::memory::desc bias;
  if (bias_index >= 0) {
    const dnnl::memory::desc given_bias = operand_layout(desc.operands[bias_index], rank);
    bias = in_rows(given_bias);
    arguments.push_back({DNNL_ARG_BIAS, program.reordered(program.operand(bias_index, given_bias), bias)});
  }
  const dnnl::memory::desc dst = operand_layout(desc.operands[0], rank);
  arguments.push_back({DNNL_ARG_DST, program.operand(0, dst)});
  dnnl::primitive_attr attr = user_scratchpad();
  const std::vector<EpilogueOperand> epilogues = add_epilogues(desc, operand_layout, dst, &attr);
  add_epilogue_arguments(epilogues, -1, &program, &arguments);
  const dnnl::primitive_desc_base matmul = make_matmul(engine, src, weights, bias, dst, attr);
  if (!matmul) return Refusal::because("oneDNN has no matmul of these strides");
  if (is_reference(matmul)) return Refusal::because("oneDNN has only %s here", implementation_of(matmul).c_str());
  const dnnl::memory::desc kept_weights = matmul.weights_desc();
  Packing packing;
  if (packed && kept_weights != given_weights) {
    arguments.push_back({DNNL_ARG_WEIGHTS, program.operand(weights_index, kept_weights)});
    packing = {given_weights, kept_weights};
    packing.describe(weights_index, &info);
  } else {
    arguments.push_back(
        {DNNL_ARG_WEIGHTS, program.reordered(program.operand(weights_index, given_weights), kept_weights)});
  }
  program.step(matmul, arguments);
  info.host_bytes = program.host_bytes();
  *out = make_primitive<OneDnnPrimitive>(device, std::move(program), Tail(device, desc, post_op_count(desc)),
                                         nanoseconds, std::move(packing));
  return {};
}

}  // namespace

Refusal OneDnnMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                           ep_primitive_info& info) {
  return make_product(device, desc, false, out, info);
}

Refusal RelaxedMatmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_not_relaxed(device, desc)) return refusal;
  if (is_dynamic(desc)) return Refusal::because("oneDNN's matmul needs static dims");
  if (Refusal refusal = OneDnnMatmul::why_not(device, with_rounded_factors(desc), info)) return refusal;
  if (Refusal refusal = why_not_worth_rounding(desc)) return refusal;
  info.flags |= EP_SUPPORT_FLAG_RELAXED;
  return {};
}

Refusal RelaxedMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                            ep_primitive_info& info) {
  return make_product(device, desc, true, out, info);
}

}  // namespace tenon::provider::cpu
