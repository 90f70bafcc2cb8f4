// check_kind: one function per kind checks the rules that ep_api.h states above the attributes of the kind.
#include <cmath>

#include "primitives/descriptor/check.h"
#include "primitives/descriptor/fields.h"
#include "primitives/descriptor/quantisation.h"
#include "primitives/text/format.h"

namespace tenon::descriptor {

Status same_dims(const Desc& desc, const Operand& a, const Operand& b) {
  bool same = a.rank == b.rank;
  for (int32_t axis = 0; same && axis < a.rank; ++axis) same = agree(a.dims[axis], b.dims[axis]);
  if (same) return {};
  return wrong(desc, "'{}' has shape {} but '{}' has {}.", table::role_name(a.role), dims_of(a),
               table::role_name(b.role), dims_of(b));
}

Status same_type(const Desc& desc, const Operand& a, const Operand& b) {
  if (a.dtype == b.dtype) return {};
  return wrong(desc, "'{}' is {} but '{}' is {}.", table::role_name(a.role), dtype_name(type_of(a)),
               table::role_name(b.role), dtype_name(type_of(b)));
}

Status has_result_type(const Desc& desc, const Operand& operand) {
  const Operand& dst = get(desc, EP_ROLE_DST);
  if (!is_quantised(desc, EP_ROLE_DST)) return same_type(desc, operand, dst);
  if (type_of(operand) == DType::f32) return {};
  return wrong(desc, "'{}' is {} but must be f32, since 'dst' is quantised.", table::role_name(operand.role),
               dtype_name(type_of(operand)));
}

Status same_dims_but_one(const Desc& desc, const Operand& a, const Operand& b, uint32_t mask) {
  bool same = a.rank == b.rank;
  for (int32_t axis = 0; same && axis < a.rank; ++axis) {
    same = agree(a.dims[axis], mask >> axis & 1 ? 1 : b.dims[axis]);
  }
  if (same) return {};
  return wrong(desc, "'{}' has shape {}, which is not that of '{}' {} with 1 at the axes concerned.",
               table::role_name(a.role), dims_of(a), table::role_name(b.role), dims_of(b));
}

Status has_dims(const Desc& desc, const Operand& operand, const Dims& dims) {
  bool same = operand.rank == dims.rank();
  for (int32_t axis = 0; same && axis < operand.rank; ++axis) same = agree(operand.dims[axis], dims[axis]);
  if (same) return {};
  return wrong(desc, "'{}' has shape {} but must have {}.", table::role_name(operand.role), dims_of(operand), dims);
}

Status is_type(const Desc& desc, const Operand& operand, DType type) {
  if (type_of(operand) == type) return {};
  return wrong(desc, "'{}' is {} but must be {}.", table::role_name(operand.role), dtype_name(type_of(operand)),
               dtype_name(type));
}

Status is_float(const Desc& desc, const Operand& operand) {
  if (is_floating(type_of(operand))) return {};
  return wrong(desc, "'{}' is {} but must be of a floating-point type.", table::role_name(operand.role),
               dtype_name(type_of(operand)));
}

DType statistics_type(const Operand& src) { return type_of(src) == DType::f64 ? DType::f64 : DType::f32; }

Status axis_in_rank(const Desc& desc, int32_t axis, int32_t rank) {
  if (axis >= 0 && axis < rank) return {};
  return wrong(desc, "axis {} is not within rank {}.", axis, rank);
}

// check_taken for EP_GATHER_COORDINATES. The number of coordinates follows from the ranks.
static Status check_taken_at_coordinates(const Desc& desc, int32_t batch, const Operand& src, const Operand& taken) {
  const Operand& indices = get(desc, EP_ROLE_INDICES);
  const int32_t places = indices.rank - 1;
  const int32_t count = src.rank - batch + places - taken.rank;
  bool fits = count >= 1 && batch + count <= src.rank && batch <= places && agree(indices.dims[places], count);
  for (int32_t i = 0; fits && i < taken.rank; ++i) {
    fits = agree(taken.dims[i], i < places ? indices.dims[i] : src.dims[i - places + batch + count]) &&
           (i >= batch || agree(taken.dims[i], src.dims[i]));
  }
  if (fits) return {};
  return wrong(desc, "'src' {} taken at coordinates 'indices' {} after {} batch axes does not give '{}' {}.",
               dims_of(src), dims_of(indices), batch, table::role_name(taken.role), dims_of(taken));
}

Status check_taken(const Desc& desc, int32_t axis, int32_t mode, const Operand& src, const Operand& taken) {
  const Operand& indices = get(desc, EP_ROLE_INDICES);
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, axis, src.rank));
  if (type_of(indices) != DType::i32 && type_of(indices) != DType::i64)
    return wrong(desc, "'indices' must be i32 or i64, not {}.", dtype_name(type_of(indices)));
  if (mode == EP_GATHER_COORDINATES) return check_taken_at_coordinates(desc, axis, src, taken);
  const bool slices = mode == EP_GATHER_SLICES;
  const int32_t rank = slices ? src.rank - 1 + indices.rank : src.rank;
  bool fits = taken.rank == rank && (slices || indices.rank == rank);
  for (int32_t i = 0; fits && i < rank; ++i) {
    const int32_t inside = i - axis;
    if (!slices) {
      const bool within = i == axis || src.dims[i] == EP_ANY || indices.dims[i] <= src.dims[i];
      fits = agree(taken.dims[i], indices.dims[i]) && within;
    } else if (inside >= 0 && inside < indices.rank) {
      fits = agree(taken.dims[i], indices.dims[inside]);
    } else {
      fits = agree(taken.dims[i], src.dims[inside < 0 ? i : i - indices.rank + 1]);
    }
  }
  if (fits) return {};
  return wrong(desc, "'src' {} taken at 'indices' {} along axis {} does not give '{}' {}.", dims_of(src),
               dims_of(indices), axis, table::role_name(taken.role), dims_of(taken));
}

// --- kinds ---

Status check_fill(const Desc&) { return {}; }

Status check_copy(const Desc& desc) { return same_dims(desc, get(desc, EP_ROLE_SRC), get(desc, EP_ROLE_DST)); }

static Status check_scalar_row(const Desc& desc, const table::ScalarRow& row, int32_t arity) {
  const Operand& dst = get(desc, EP_ROLE_DST);
  const bool conditional = row.domain == table::Domain::COND;
  const Operand& last = get(desc, EP_ROLE_SRC + arity - 1);
  for (int32_t i = 0; i < arity; ++i) {
    const Operand& operand = get(desc, EP_ROLE_SRC + i);
    if (!is_scalar(operand)) TENON_RETURN_IF_ERROR(same_dims(desc, operand, dst));
    if (conditional && i == 0) {
      TENON_RETURN_IF_ERROR(is_type(desc, operand, DType::boolean));
      continue;
    }
    TENON_RETURN_IF_ERROR(same_type(desc, operand, last));
  }
  if (!table::in_domain(row.domain, type_of(last))) {
    return wrong(desc, "{} is not defined on {} (it takes {}).", row.name, dtype_name(type_of(last)),
                 table::domain_text(row.domain));
  }
  return is_type(desc, dst, table::result_dtype(row, type_of(last)));
}

Status check_unary(const Desc& desc) { return check_scalar_row(desc, *table::unary_row(desc.attributes.unary.op), 1); }

// Checks a binary function on quantised integers that returns real numbers.
static Status check_quantised_binary(const Desc& desc) {
  const table::ScalarRow& row = *table::binary_row(desc.attributes.binary.op);
  if (row.result != table::ResultType::SAME || !table::in_domain(row.domain, DType::f32)) {
    return wrong(desc, "{} does not give a real number for two real arguments.", row.name);
  }
  const Operand& dst = get(desc, EP_ROLE_DST);
  for (int32_t role : {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B}) {
    const Operand& operand = get(desc, role);
    if (is_scalar(operand) || !is_quantised(desc, role) || !is_integer(type_of(operand))) {
      return wrong(desc, "'{}' is not a tensor of quantised integers, but another operand is.", table::role_name(role));
    }
    TENON_RETURN_IF_ERROR(same_dims(desc, operand, dst));
  }
  return {};
}

Status check_binary(const Desc& desc) {
  if (is_quantised(desc)) return check_quantised_binary(desc);
  return check_scalar_row(desc, *table::binary_row(desc.attributes.binary.op), 2);
}
Status check_ternary(const Desc& desc) {
  return check_scalar_row(desc, *table::ternary_row(desc.attributes.ternary.op), 3);
}

Status check_reduce(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  const uint32_t axes = desc.attributes.reduce.axes;
  if (axes == 0 || axes >> src.rank != 0) {
    return wrong(desc, "axes mask {} names no axis or one beyond rank {}.", axes, src.rank);
  }
  const table::ReduceRow& row = *table::reduce_row(desc.attributes.reduce.op);
  if (!table::in_domain(row.domain, type_of(src))) {
    return wrong(desc, "{} is not defined on {} (it takes {}).", row.name, dtype_name(type_of(src)),
                 table::domain_text(row.domain));
  }
  TENON_RETURN_IF_ERROR(same_dims_but_one(desc, dst, src, axes));
  return same_type(desc, dst, src);
}

Status check_arg_reduce(const Desc& desc) {
  const ep_arg_reduce_attributes& attributes = desc.attributes.arg_reduce;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  if (attributes.op != EP_REDUCE_max && attributes.op != EP_REDUCE_min) {
    return unsupported(desc, "op {} is neither max nor min.", value_text(FieldType::REDUCE, attributes.op));
  }
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, attributes.axis, src.rank));
  if (attributes.last != 0 && attributes.last != 1)
    return wrong(desc, "last is {}; it may be 0 or 1.", attributes.last);
  if (!table::in_domain(table::Domain::NUMERIC, type_of(src)))
    return wrong(desc, "is not defined on {}.", dtype_name(type_of(src)));
  TENON_RETURN_IF_ERROR(same_dims_but_one(desc, dst, src, uint32_t{1} << attributes.axis));
  return is_type(desc, dst, DType::i64);
}

Status check_softmax(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  const ep_softmax_attributes& attributes = desc.attributes.softmax;
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, attributes.axis, src.rank));
  if (attributes.log != 0 && attributes.log != 1) return wrong(desc, "log is {}; it may be 0 or 1.", attributes.log);
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  TENON_RETURN_IF_ERROR(same_type(desc, dst, src));
  return same_dims(desc, dst, src);
}

static bool is_real(const Operand& operand) {
  const DType type = type_of(operand);
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

static Status is_real_or_quantised(const Desc& desc, const Operand& operand) {
  if (is_quantised(desc, operand.role) || is_real(operand)) return {};
  return wrong(desc, "'{}' is {}, not quantised, and not f32, f16 or bf16.", table::role_name(operand.role),
               dtype_name(type_of(operand)));
}

// True for integers without scales: their products are summed in i32.
static bool sums_integers(const Desc& desc, const Operand& a, const Operand& b) {
  const bool scaled =
      find_operand(desc, EP_ROLE_SRC_SCALE) != nullptr || find_operand(desc, EP_ROLE_WEIGHT_SCALE) != nullptr;
  const Operand& dst = get(desc, EP_ROLE_DST);
  return !scaled && is_integer(type_of(a)) && is_integer(type_of(b)) && type_of(dst) == DType::i32 &&
         !is_quantised(desc, EP_ROLE_DST);
}

// Checks the dtypes of a matmul or convolution with a quantised operand.
static Status check_quantised_types(const Desc& desc, const Operand& a, const Operand& b) {
  const Operand* bias = find_operand(desc, EP_ROLE_BIAS);
  if (sums_integers(desc, a, b)) {
    if (bias == nullptr && desc.epilogue_count == 0) return {};
    return wrong(desc, "sums of integers in 'dst' (i32) take no bias and no epilogues.");
  }
  for (const Operand* operand : {&a, &b, &get(desc, EP_ROLE_DST)}) {
    TENON_RETURN_IF_ERROR(is_real_or_quantised(desc, *operand));
  }
  return bias == nullptr ? Status() : has_result_type(desc, *bias);
}

Status check_quantise(const Desc& desc) {
  const Operand& dst = get(desc, EP_ROLE_DST);
  if (!is_quantised(desc, EP_ROLE_DST)) return wrong(desc, "has neither 'dst_scale' nor 'dst_zero_point'.");
  const Operand& src = get(desc, EP_ROLE_SRC);
  TENON_RETURN_IF_ERROR(is_real_or_quantised(desc, src));
  return same_dims(desc, dst, src);
}

Status check_dequantise(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  if (!is_quantised(desc, EP_ROLE_SRC)) return wrong(desc, "has neither 'src_scale' nor 'src_zero_point'.");
  const Operand& dst = get(desc, EP_ROLE_DST);
  TENON_RETURN_IF_ERROR(is_real_or_quantised(desc, dst));
  return same_dims(desc, dst, src);
}

Status check_matmul(const Desc& desc) {
  const Operand& a = get(desc, EP_ROLE_SRC);
  const Operand& b = get(desc, EP_ROLE_SRC_B);
  const Operand& dst = get(desc, EP_ROLE_DST);
  const Operand* bias = find_operand(desc, EP_ROLE_BIAS);
  const int32_t rank = dst.rank;
  if (rank < 2 || a.rank != rank || b.rank != rank) {
    return wrong(desc, "operands have ranks {}, {} and {}; they must be one, at least 2.", a.rank, b.rank, rank);
  }
  bool fits = agree(a.dims[rank - 1], b.dims[rank - 2]) && agree(a.dims[rank - 2], dst.dims[rank - 2]) &&
              agree(b.dims[rank - 1], dst.dims[rank - 1]);
  for (int32_t axis = 0; axis < rank - 2; ++axis) {
    fits = fits && agree(a.dims[axis], dst.dims[axis]) && agree(b.dims[axis], dst.dims[axis]);
  }
  if (!fits) {
    return wrong(desc, "shapes {} and {} do not multiply to {}.", dims_of(a), dims_of(b), dims_of(dst));
  }
  if (bias != nullptr) TENON_RETURN_IF_ERROR(same_dims(desc, *bias, dst));
  if (is_quantised(desc)) return check_quantised_types(desc, a, b);
  TENON_RETURN_IF_ERROR(same_type(desc, a, b));
  if (!table::in_domain(table::Domain::NUMERIC, type_of(a)))
    return wrong(desc, "is not defined on {}.", dtype_name(type_of(a)));
  if (is_floating(type_of(a)) != is_floating(type_of(dst)) || type_of(dst) == DType::boolean) {
    return wrong(desc, "operands of {} cannot give {}.", dtype_name(type_of(a)), dtype_name(type_of(dst)));
  }
  return bias == nullptr ? Status() : same_type(desc, *bias, dst);
}

Status check_convolution(const Desc& desc) {
  const ep_convolution_attributes& at = desc.attributes.convolution;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& weight = get(desc, EP_ROLE_WEIGHT);
  const Operand& dst = get(desc, EP_ROLE_DST);
  const Operand* bias = find_operand(desc, EP_ROLE_BIAS);
  TENON_RETURN_IF_ERROR(check_windows(desc, {at.spatial_rank, at.stride, at.dilation, at.pad_low, at.pad_high}, src));
  if (at.transposed != 0 && at.transposed != 1)
    return wrong(desc, "transposed is {}; it may be 0 or 1.", at.transposed);
  if (weight.rank != src.rank || dst.rank != src.rank) {
    return wrong(desc, "'weight' and 'dst' must have the rank of 'src' ({}).", src.rank);
  }
  if (at.groups < 1) return wrong(desc, "groups is {} but must be at least 1.", at.groups);
  const int64_t in_per_weight = at.transposed ? weight.dims[0] : weight.dims[1];
  const int64_t out_per_weight = at.transposed ? weight.dims[1] : weight.dims[0];
  const auto scaled = [&](int64_t dim) { return dim == EP_ANY ? EP_ANY : dim * at.groups; };
  const int64_t in = at.transposed ? in_per_weight : scaled(in_per_weight);
  const int64_t out = at.transposed ? scaled(out_per_weight) : out_per_weight;
  if (!agree(in, src.dims[1]) || !agree(out, dst.dims[1]) || !agree(src.dims[0], dst.dims[0])) {
    return wrong(desc, "shapes 'src' {}, 'weight' {}, 'dst' {} and groups {} do not agree.", dims_of(src),
                 dims_of(weight), dims_of(dst), at.groups);
  }
  if (out != EP_ANY && out % at.groups != 0)
    return wrong(desc, "output channels ({}) are not a multiple of groups.", out);
  const Operand& wide = at.transposed ? dst : src;
  const Operand& narrow = at.transposed ? src : dst;
  TENON_RETURN_IF_ERROR(check_window_lengths(desc, {at.spatial_rank, at.stride, at.dilation, at.pad_low, at.pad_high},
                                             wide, narrow, weight));
  if (bias != nullptr && (bias->rank != 1 || !agree(bias->dims[0], out))) {
    return wrong(desc, "'bias' must have shape [{}].", out);
  }
  if (is_quantised(desc)) return check_quantised_types(desc, src, weight);
  TENON_RETURN_IF_ERROR(same_type(desc, src, weight));
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  TENON_RETURN_IF_ERROR(is_float(desc, dst));
  return bias == nullptr ? Status() : same_type(desc, *bias, dst);
}

Status check_pooling(const Desc& desc) {
  const ep_pooling_attributes& at = desc.attributes.pooling;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  const Operand* indices = find_operand(desc, EP_ROLE_DST_INDICES);
  TENON_RETURN_IF_ERROR(check_pooling_windows(desc, at, src, dst));
  TENON_RETURN_IF_ERROR(same_type(desc, dst, src));
  if (at.op != EP_POOLING_MAX) TENON_RETURN_IF_ERROR(is_float(desc, src));
  if (at.op == EP_POOLING_LP ? !(at.p > 0 && std::isfinite(at.p)) : at.p != 0) {
    return wrong(desc, "p is {}; it must be above 0 and finite for lp pooling, and 0 for others.", at.p);
  }
  if (!table::in_domain(table::Domain::NUMERIC, type_of(src)))
    return wrong(desc, "is not defined on {}.", dtype_name(type_of(src)));
  if (indices == nullptr) return {};
  if (at.op != EP_POOLING_MAX) return wrong(desc, "'dst_indices' is for max pooling only.");
  TENON_RETURN_IF_ERROR(is_type(desc, *indices, DType::i64));
  return same_dims(desc, *indices, dst);
}

Status check_layer_norm(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const int32_t axis = desc.attributes.layer_norm.axis;
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, axis, src.rank));
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  TENON_RETURN_IF_ERROR(same_type(desc, get(desc, EP_ROLE_DST), src));
  TENON_RETURN_IF_ERROR(same_dims(desc, get(desc, EP_ROLE_DST), src));
  for (int32_t role : {EP_ROLE_SCALE, EP_ROLE_SHIFT}) {
    const Operand* operand = find_operand(desc, role);
    if (operand == nullptr) continue;
    TENON_RETURN_IF_ERROR(is_float(desc, *operand));
    bool same = operand->rank == src.rank - axis;
    for (int32_t i = 0; same && i < operand->rank; ++i) same = agree(operand->dims[i], src.dims[axis + i]);
    if (!same)
      return wrong(desc, "'{}' has shape {} but must have the dims of {} from axis {} on.", table::role_name(role),
                   dims_of(*operand), dims_of(src), axis);
  }
  const uint32_t normalised = ~uint32_t{0} << axis;
  for (int32_t role : {EP_ROLE_MEAN, EP_ROLE_INV_STD}) {
    const Operand* operand = find_operand(desc, role);
    if (operand == nullptr) continue;
    TENON_RETURN_IF_ERROR(is_type(desc, *operand, statistics_type(src)));
    TENON_RETURN_IF_ERROR(same_dims_but_one(desc, *operand, src, normalised));
  }
  return {};
}

Status check_batch_norm(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const int32_t axis = desc.attributes.batch_norm.axis;
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, axis, src.rank));
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  TENON_RETURN_IF_ERROR(same_type(desc, get(desc, EP_ROLE_DST), src));
  TENON_RETURN_IF_ERROR(same_dims(desc, get(desc, EP_ROLE_DST), src));
  for (int32_t role : {EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_VARIANCE}) {
    const Operand& operand = get(desc, role);
    TENON_RETURN_IF_ERROR(is_float(desc, operand));
    if (operand.rank != 1 || !agree(operand.dims[0], src.dims[axis])) {
      return wrong(desc, "'{}' has shape {} but must have shape [{}].", table::role_name(role), dims_of(operand),
                   src.dims[axis]);
    }
  }
  return {};
}

Status check_gather(const Desc& desc) {
  const ep_gather_attributes& attributes = desc.attributes.gather;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  TENON_RETURN_IF_ERROR(same_type(desc, dst, src));
  return check_taken(desc, attributes.axis, attributes.mode, src, dst);
}

Status check_scatter(const Desc& desc) {
  const ep_scatter_attributes& attributes = desc.attributes.scatter;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& updates = get(desc, EP_ROLE_SRC_B);
  const Operand& dst = get(desc, EP_ROLE_DST);
  TENON_RETURN_IF_ERROR(same_type(desc, dst, src));
  TENON_RETURN_IF_ERROR(same_type(desc, updates, src));
  TENON_RETURN_IF_ERROR(same_dims(desc, dst, src));
  if (attributes.op != EP_SCATTER_ASSIGN && !table::in_domain(table::Domain::NUMERIC, type_of(src))) {
    return wrong(desc, "{} is not defined on {}.", value_text(FieldType::SCATTER, attributes.op),
                 dtype_name(type_of(src)));
  }
  return check_taken(desc, attributes.axis, attributes.mode, src, updates);
}

Status check_random(const Desc& desc) {
  const Operand& dst = get(desc, EP_ROLE_DST);
  const bool normal = desc.attributes.random.distribution == EP_RANDOM_NORMAL;
  const bool bits = desc.attributes.random.distribution == EP_RANDOM_BITS;
  if (bits && !(is_integer(type_of(dst)) && dtype_size(type_of(dst)) >= 4)) {
    return wrong(desc, "'dst' is {}, but random bits are i32, u32, i64 or u64.", dtype_name(type_of(dst)));
  }
  if (!bits && !is_real(dst) && (normal || type_of(dst) != DType::f64)) {
    return wrong(desc, "'dst' is {}, but {} numbers are f32, f16, bf16{}.", dtype_name(type_of(dst)),
                 normal ? "normal" : "uniform", normal ? "" : " or f64");
  }
  const Operand* seed = find_operand(desc, EP_ROLE_SRC);
  if (seed == nullptr) return {};
  TENON_RETURN_IF_ERROR(is_type(desc, *seed, DType::i64));
  if (seed->rank == 1 && agree(seed->dims[0], 2)) return {};
  return wrong(desc, "'src' has shape {} but must be [2], seed and offset.", dims_of(*seed));
}

// Checks the parts (role + i) of `whole` along `axis`.
static Status check_parts(const Desc& desc, int32_t axis, const Operand& whole, int32_t role) {
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, axis, whole.rank));
  int64_t length = 0;
  for (int32_t i = 0; i < EP_MAX_OPERANDS; ++i) {
    const Operand* part = find_operand(desc, role + i);
    if (part == nullptr) break;
    TENON_RETURN_IF_ERROR(same_type(desc, *part, whole));
    Operand expected = whole;
    if (part->rank == whole.rank) expected.dims[axis] = part->dims[axis];
    TENON_RETURN_IF_ERROR(same_dims(desc, *part, expected));
    length = length == EP_ANY || part->dims[axis] == EP_ANY ? EP_ANY : length + part->dims[axis];
  }
  if (agree(length, whole.dims[axis])) return {};
  return wrong(desc, "the parts are {} long together along axis {}, but the whole is {}.", length, axis,
               whole.dims[axis]);
}

Status check_concat(const Desc& desc) {
  return check_parts(desc, desc.attributes.concat.axis, get(desc, EP_ROLE_DST), EP_ROLE_SRC_0);
}
Status check_split(const Desc& desc) {
  return check_parts(desc, desc.attributes.split.axis, get(desc, EP_ROLE_SRC), EP_ROLE_DST_0);
}

Status check_pad(const Desc& desc) {
  const ep_pad_attributes& attributes = desc.attributes.pad;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  TENON_RETURN_IF_ERROR(same_type(desc, dst, src));
  if (src.rank != dst.rank) return wrong(desc, "'src' has rank {} but 'dst' {}.", src.rank, dst.rank);
  for (int32_t i = 0; i < EP_MAX_RANK; ++i) {
    const int64_t low = attributes.low[i];
    const int64_t high = attributes.high[i];
    if (low < 0 || high < 0 || (i >= src.rank && (low != 0 || high != 0))) {
      return wrong(desc, "padding ({}, {}) of axis {} must not be negative (0 beyond the rank).", low, high, i);
    }
    if (i >= src.rank || src.dims[i] == EP_ANY) continue;
    if (!agree(dst.dims[i], src.dims[i] + low + high)) {
      return wrong(desc, "axis {} of 'src' ({}) with padding ({}, {}) does not give {}.", i, src.dims[i], low, high,
                   dst.dims[i]);
    }
    if (attributes.mode == EP_PAD_REFLECT && (low >= src.dims[i] || high >= src.dims[i]) && (low > 0 || high > 0)) {
      return wrong(desc, "padding ({}, {}) of axis {} must be less than its length ({}) to reflect.", low, high, i,
                   src.dims[i]);
    }
  }
  return {};
}

namespace {

using KindCheck = Status (*)(const Desc&);
struct KindChecker {
  int32_t kind;
  KindCheck check;
};
constexpr KindChecker kind_checkers[] = {
#define EP_PRIMITIVE(name, id, attributes, alias) {id, check_##name},
#include "ep_api/primitives.def"
#undef EP_PRIMITIVE
};

}  // namespace

Status check_kind(const Desc& desc) {
  for (const KindChecker& checker : kind_checkers) {
    if (checker.kind == desc.kind) return checker.check(desc);
  }
  return {};
}

}  // namespace tenon::descriptor
