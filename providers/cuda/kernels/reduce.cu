// reduce_<reduction>_f32_<team> and reduce_<class>_<team>: the reductions of scalar_ops.def. A team (block, warp or
// single thread) computes one value of one part of the reduced axes. The host chooses parts and team from the shape and
// the device alone.
#include "providers/cuda/kernels/team.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cuda {

// One reduction, known at compile time.
template <class Class, int32_t op>
struct OneRow {
  TENON_ON_GPU explicit OneRow(int32_t) {}
  TENON_ON_GPU Class init() const { return scalar::reduce_init<Class>(scalar::Op<op>()); }
  TENON_ON_GPU Class map(Class x) const { return scalar::reduce_map(scalar::Op<op>(), x); }
  TENON_ON_GPU Class add(Class x, Class y) const { return combine(x, map(y)); }
  TENON_ON_GPU Class combine(Class x, Class y) const { return scalar::reduce_combine(scalar::Op<op>(), x, y); }
  TENON_ON_GPU Class finish(Class x, Class n) const { return scalar::reduce_finish(scalar::Op<op>(), x, n); }
};

// Calls visit(row) for the reduction that `op` names.
template <class Class, class Visit>
TENON_ON_GPU Class with_row(int32_t op, const Visit& visit) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish)     \
  case id:                                                          \
    if constexpr (scalar::in_domain<Class>(scalar::Domain::domain)) \
      return visit(OneRow<Class, id>(id));                          \
    else                                                            \
      return Class{};
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return Class{};
  }
}
template <class Class>
TENON_ON_GPU_CALL Class combine_values(int32_t op, Class x, Class y) {
  return with_row<Class>(op, [x, y](auto row) { return row.combine(x, y); });
}
template <class Class>
TENON_ON_GPU_CALL Class map_and_combine(int32_t op, Class x, Class y) {
  return with_row<Class>(op, [x, y](auto row) { return row.combine(x, row.map(y)); });
}
template <class Class>
TENON_ON_GPU_CALL Class finish_value(int32_t op, Class x, Class n) {
  return with_row<Class>(op, [x, n](auto row) { return row.finish(x, n); });
}

// Any reduction of the class, chosen at run time.
template <class Class>
struct AnyRow {
  int32_t op;
  TENON_ON_GPU explicit AnyRow(int32_t row) : op(row) {}
  TENON_ON_GPU Class init() const {
    return with_row<Class>(op, [](auto row) { return row.init(); });
  }
  TENON_ON_GPU Class add(Class x, Class y) const { return map_and_combine(op, x, y); }
  TENON_ON_GPU Class combine(Class x, Class y) const { return combine_values(op, x, y); }
  TENON_ON_GPU Class finish(Class x, Class n) const { return finish_value(op, x, n); }
};

constexpr int reduce_ahead = 4;  // loads in flight per thread

// Reduces contiguous elements in packs and combines them with `value`.
template <class Class, class Row, class Storage>
TENON_ON_GPU Class reduce_packs(Class value, const Row& row, const Storage* src, int64_t begin, int64_t end, int member,
                                int members) {
  using OnePack = Pack<Storage, map_chunk>;
  const int64_t step = members * map_chunk;
  int64_t i = begin + member * map_chunk;
  TENON_ROLLED
  for (; i + (reduce_ahead - 1) * step + map_chunk <= end; i += reduce_ahead * step) {
    OnePack packs[reduce_ahead];
    TENON_UNROLL
    for (int a = 0; a < reduce_ahead; ++a) packs[a] = *reinterpret_cast<const OnePack*>(src + i + a * step);
    TENON_UNROLL
    for (int a = 0; a < reduce_ahead; ++a) {
      TENON_UNROLL
      for (int j = 0; j < map_chunk; ++j) value = row.add(value, widen<Class>(packs[a].at[j]));
    }
  }
  TENON_ROLLED
  for (; i < end; i += step) {
    Class x[map_chunk];
    const int64_t count = end - i < map_chunk ? end - i : map_chunk;
    load_chunk_as<map_chunk, Storage>(x, reinterpret_cast<uint64_t>(src), i, 1, true, count);
    TENON_UNROLL
    for (int j = 0; j < map_chunk; ++j) {
      if (j < count) value = row.add(value, x[j]);
    }
  }
  return value;
}

// Reduces elements of any stride.
template <class Class, class Row, class Storage>
TENON_ON_GPU Class reduce_strided(Class value, const Row& row, const AxisSet& axes, const Storage* src, int64_t begin,
                                  int64_t end, int member, int members) {
  int64_t i = begin + member;
  TENON_ROLLED
  for (; i + int64_t{reduce_ahead - 1} * members < end; i += int64_t{reduce_ahead} * members) {
    Storage x[reduce_ahead];
    TENON_UNROLL
    for (int a = 0; a < reduce_ahead; ++a) x[a] = src[offset_in(axes, axes.src, i + int64_t{a} * members)];
    TENON_UNROLL
    for (int a = 0; a < reduce_ahead; ++a) value = row.add(value, widen<Class>(x[a]));
  }
  TENON_ROLLED
  for (; i < end; i += members) value = row.add(value, widen<Class>(src[offset_in(axes, axes.src, i)]));
  return value;
}

// Reduces one thread's share of elements [begin, end) of the reduced axes.
template <class Class, class Row>
TENON_ON_GPU Class reduce_share(const ReduceArguments& reduce, const Row& row, int64_t base, int64_t begin, int64_t end,
                                int member, int members) {
  Class value = row.init();
  if (reduce.second != 0) {
    const auto* parts = reinterpret_cast<const Class*>(reduce.src) + base;
    TENON_ROLLED
    for (int64_t i = begin + member; i < end; i += members) value = row.combine(value, parts[i]);
    return value;
  }
  with_storage<Class>(reduce.src_dtype, [&](auto storage) {
    using Storage = decltype(storage);
    const auto* src = reinterpret_cast<const Storage*>(reduce.src) + base;
    if (std::is_same_v<Class, float> && reduce.vector != 0)
      value = reduce_packs(value, row, src, begin, end, member, members);
    else
      value = reduce_strided(value, row, reduce.reduced, src, begin, end, member, members);
  });
  return value;
}

template <class Class, class Team, class Row>
TENON_ON_GPU void reduce_rows(const ReduceArguments& reduce) {
  const Row row(reduce.op);
  Team team;
  const int64_t jobs = reduce.kept.count * reduce.parts;
  for (int64_t job = team.number(); job < jobs; job += team.count()) {
    int64_t output = job;
    int64_t part = 0;
    if (reduce.parts > 1 && Team::size == 1) {  // neighbouring threads read neighbouring columns
      part = quotient(job, reduce.kept.count);
      output = job - part * reduce.kept.count;
    } else if (reduce.parts > 1) {
      output = quotient(job, reduce.parts);
      part = job - output * reduce.parts;
    }
    const int64_t begin = part * reduce.part_length;
    const int64_t end =
        reduce.reduced.count - begin < reduce.part_length ? reduce.reduced.count : begin + reduce.part_length;
    Class value = reduce_share<Class>(reduce, row, offset_in(reduce.kept, reduce.kept.src, output), begin, end,
                                      team.rank(), Team::size);
    value = team.first(value, [&](Class x, Class y) { return row.combine(x, y); });
    if (team.rank() != 0) continue;
    if (reduce.parts > 1)
      reinterpret_cast<Class*>(reduce.dst)[output * reduce.parts + part] = value;
    else
      store<Class>(reduce.dst, offset_in(reduce.kept, reduce.kept.dst, output), reduce.dst_dtype,
                   row.finish(value, static_cast<Class>(reduce.finish_count)));
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::ReduceArguments;

#define TENON_REDUCE_KERNEL(kernel, Class, Row)                                 \
  TENON_TEAM_KERNEL(4) kernel##_warp(TENON_ARGUMENT(ReduceArguments) reduce) {  \
    kernels::reduce_rows<Class, kernels::WarpTeam<Class>, Row>(reduce);         \
  }                                                                             \
  TENON_TEAM_KERNEL(4) kernel##_block(TENON_ARGUMENT(ReduceArguments) reduce) { \
    kernels::reduce_rows<Class, kernels::BlockTeam<Class>, Row>(reduce);        \
  }                                                                             \
  TENON_TEAM_KERNEL(4) kernel##_solo(TENON_ARGUMENT(ReduceArguments) reduce) {  \
    kernels::reduce_rows<Class, kernels::SoloTeam<Class>, Row>(reduce);         \
  }
#define TENON_REDUCE_ROW(name, id) \
  TENON_REDUCE_KERNEL(reduce_##name##_f32, float, TENON_PAIR(kernels::OneRow<float, id>))
#define TENON_PAIR(...) __VA_ARGS__
#define TENON_ROW_FLOAT(name, id) TENON_REDUCE_ROW(name, id)
#define TENON_ROW_NUMERIC(name, id) TENON_REDUCE_ROW(name, id)
#define TENON_ROW_BOOL(name, id)
#define EP_REDUCE(name, id, domain, init, map, combine, finish) TENON_ROW_##domain(name, id)
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE

TENON_REDUCE_KERNEL(reduce_f64, double, kernels::AnyRow<double>)
TENON_REDUCE_KERNEL(reduce_i64, int64_t, kernels::AnyRow<int64_t>)
TENON_REDUCE_KERNEL(reduce_u64, uint64_t, kernels::AnyRow<uint64_t>)
TENON_REDUCE_KERNEL(reduce_bool, bool, kernels::AnyRow<bool>)
