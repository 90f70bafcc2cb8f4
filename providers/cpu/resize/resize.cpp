#include "providers/cpu/resize/resize.h"

#include <algorithm>
#include <numeric>

#include "providers/cpu/resize/taps.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// One launch. The axes are sorted by DST's strides, the innermost last.
struct Work {
  int32_t rank = 0;
  Axes src, dst;
  std::vector<Taps> taps;
  bool extrapolates = false;
};

Work work_of(const ep_launch& launch, const ep_primitive_desc& desc) {
  const ep_resize_attributes& at = desc.attributes.resize;
  const OperandShape dst = shape_of(desc.operands[0], launch.shapes, 0);
  const OperandShape src = shape_of(desc.operands[1], launch.shapes, 1);
  int32_t order[EP_MAX_RANK];
  std::iota(order, order + dst.rank, 0);
  std::stable_sort(order, order + dst.rank, [&](int32_t a, int32_t b) { return dst.strides[a] > dst.strides[b]; });
  Work work;
  work.rank = dst.rank;
  work.extrapolates = (at.flags & EP_RESIZE_FLAG_EXTRAPOLATE) != 0;
  for (int32_t i = 0; i < dst.rank; ++i) {
    const int32_t axis = order[i];
    work.src.add(src.dims[axis], src.strides[axis]);
    work.dst.add(dst.dims[axis], dst.strides[axis]);
    work.taps.push_back(taps_of(at, axis, src.dims[axis], dst.dims[axis]));
  }
  return work;
}

// dst[o, j, c] = sum over k of weights[j, k] * src[o, places[j, k], c], for `outer` blocks of `from` and `to` rows with
// `inner` elements.
template <class T>
void blend_axis(const Taps& taps, const T* src, T* dst, int64_t outer, int64_t from, int64_t to, int64_t inner) {
  const int64_t count = taps.count;
  for (int64_t o = 0; o < outer; ++o, src += from * inner) {
    for (int64_t j = 0; j < to; ++j, dst += inner) {
      const int64_t* places = taps.places.data() + j * count;
      const double* weights = taps.weights.data() + j * count;
      if (inner == 1) {
        T sum = 0;
        for (int64_t k = 0; k < count; ++k) sum += static_cast<T>(weights[k]) * src[places[k]];
        *dst = sum;
        continue;
      }
      for (int64_t k = 0; k < count; ++k) {
        const auto weight = static_cast<T>(weights[k]);
        const T* __restrict row = src + places[k] * inner;
        T* __restrict out = dst;
        if (k == 0) {
          for (int64_t c = 0; c < inner; ++c) out[c] = weight * row[c];
        } else {
          for (int64_t c = 0; c < inner; ++c) out[c] += weight * row[c];
        }
      }
    }
  }
}

// Like the function above with two taps, in one pass over the row.
template <class T>
void blend_two(const Taps& taps, const T* src, T* dst, int64_t outer, int64_t from, int64_t to, int64_t inner) {
  std::vector<T> weights(taps.weights.size());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<T>(taps.weights[i]);
  const int64_t* const places = taps.places.data();
  for (int64_t o = 0; o < outer; ++o, src += from * inner) {
    for (int64_t j = 0; j < to; ++j) {
      const T a = weights[static_cast<size_t>(2 * j)];
      const T b = weights[static_cast<size_t>(2 * j + 1)];
      const T* __restrict x = src + places[2 * j] * inner;
      const T* __restrict y = src + places[2 * j + 1] * inner;
      T* __restrict out = dst;
      dst += inner;
      for (int64_t c = 0; c < inner; ++c) out[c] = a * x[c] + b * y[c];
    }
  }
}

template <class T>
class BlendPrimitive final : public ep_primitive {
 public:
  explicit BlendPrimitive(const ep_primitive_desc& desc) : desc_(desc) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const Work work = work_of(launch, desc_);
    int32_t lead = 0;  // axes before the first one that changes; blocks along them are independent
    while (lead + 1 < work.rank && work.taps[static_cast<size_t>(lead)].identity) ++lead;
    const Axes outer_src = part_of(work.src, 0, lead), outer_dst = part_of(work.dst, 0, lead);
    const Axes inner_src = part_of(work.src, lead, work.rank), inner_dst = part_of(work.dst, lead, work.rank);
    const double fill = launch.scalar_count > 0 ? launch.scalars[0].value.f64 : 0;
    const RowFormat format(desc_.operands[0].dtype, device->simd);
    const char* const from = address_of(launch.operands[1]);
    char* const to = address_of(launch.operands[0]);
    const int64_t blocks = outer_dst.count();
    const int64_t each = inner_dst.count() + inner_src.count();
    parallel(device->threads, blocks * each, [&](int32_t part, int32_t parts) {
      std::vector<T> a(static_cast<size_t>(inner_src.count())), b;
      for (int64_t block = blocks * part / parts; block < blocks * (part + 1) / parts; ++block) {
        const T* src =
            static_cast<const T*>(format.fetch(from + outer_src.offset(block) * format.size, inner_src, a.data()));
        T* const direct = reinterpret_cast<T*>(to + outer_dst.offset(block) * format.size);
        const bool in_place = format.in_place(inner_dst);
        const T* result = run_block(work, lead, src, in_place ? direct : nullptr, &a, &b);
        if (work.extrapolates) {
          T* const changed = const_cast<T*>(result);  // refers to a buffer of this function or to DST
          extrapolate(work, lead, block, outer_dst, static_cast<T>(fill), changed);
        }
        if (result != direct) format.put(to + outer_dst.offset(block) * format.size, inner_dst, result);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  static Axes part_of(const Axes& axes, int32_t begin, int32_t end) {
    Axes part;
    for (int32_t i = begin; i < end; ++i) part.add(axes.dims[i], axes.strides[i]);
    return part;
  }

  // The axes that change. The axis that grows least is first, so that later passes are shorter; of equal axes the last
  // is first.
  static std::vector<int32_t> passes_of(const Work& work, int32_t lead) {
    std::vector<int32_t> passes;
    for (int32_t axis = work.rank - 1; axis >= lead; --axis) {
      if (!work.taps[static_cast<size_t>(axis)].identity) passes.push_back(axis);
    }
    std::stable_sort(passes.begin(), passes.end(), [&](int32_t x, int32_t y) {
      return work.dst.dims[x] * work.src.dims[y] < work.dst.dims[y] * work.src.dims[x];
    });
    return passes;
  }

  // Returns the block after all passes: in `direct` if it is not NULL, else in a buffer.
  static const T* run_block(const Work& work, int32_t lead, const T* src, T* direct, std::vector<T>* a,
                            std::vector<T>* b) {
    int64_t dims[EP_MAX_RANK];
    std::copy_n(work.src.dims, work.rank, dims);
    const std::vector<int32_t> passes = passes_of(work, lead);
    for (size_t i = 0; i < passes.size(); ++i) {
      const int32_t axis = passes[i];
      const int64_t outer = std::accumulate(dims + lead, dims + axis, int64_t{1}, std::multiplies<>());
      const int64_t inner = std::accumulate(dims + axis + 1, dims + work.rank, int64_t{1}, std::multiplies<>());
      const int64_t to = work.dst.dims[axis];
      const bool last = i + 1 == passes.size();
      std::vector<T>* const room = src == a->data() ? b : a;
      T* dst = direct;
      if (!last || direct == nullptr) {
        // `src` may be in the other buffer, never in this one.
        room->resize(std::max(room->size(), static_cast<size_t>(outer * to * inner)));
        dst = room->data();
      }
      const Taps& taps = work.taps[static_cast<size_t>(axis)];
      (taps.count == 2 && inner > 1 ? blend_two<T> : blend_axis<T>)(taps, src, dst, outer, dims[axis], to, inner);
      dims[axis] = to;
      src = dst;
    }
    if (!passes.empty() || direct == nullptr) return src;
    std::copy_n(src, std::accumulate(dims + lead, dims + work.rank, int64_t{1}, std::multiplies<>()), direct);
    return direct;
  }

  // Writes `fill` to elements whose position is outside SRC.
  static void extrapolate(const Work& work, int32_t lead, int64_t block, const Axes& outer, T fill, T* values) {
    bool all = false;
    for (int32_t axis = lead - 1; axis >= 0; --axis) {
      all = all || work.taps[static_cast<size_t>(axis)].outside[static_cast<size_t>(block % outer.dims[axis])];
      block /= outer.dims[axis];
    }
    int64_t inner = 1;
    int64_t count = 1;
    for (int32_t axis = lead; axis < work.rank; ++axis) count *= work.dst.dims[axis];
    if (all) std::fill_n(values, count, fill);
    for (int32_t axis = work.rank - 1; axis >= lead; --axis) {
      const std::vector<bool>& outside = work.taps[static_cast<size_t>(axis)].outside;
      const int64_t dim = work.dst.dims[axis];
      for (int64_t row = 0; row < count / inner; ++row) {
        if (outside[static_cast<size_t>(row % dim)]) std::fill_n(values + row * inner, inner, fill);
      }
      inner *= dim;
    }
  }

  ep_primitive_desc desc_;
};

// nearest, for elements of one size.
template <class T>
class NearestPrimitive final : public ep_primitive {
 public:
  explicit NearestPrimitive(const ep_primitive_desc& desc) : desc_(desc) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const Work work = work_of(launch, desc_);
    const int32_t last = work.rank - 1;
    const Taps& inner = work.taps[static_cast<size_t>(last)];
    const int64_t width = work.dst.dims[last];
    std::vector<int64_t> offsets(static_cast<size_t>(width));
    for (int64_t i = 0; i < width; ++i) {
      offsets[static_cast<size_t>(i)] = inner.places[static_cast<size_t>(i)] * work.src.strides[last];
    }
    T fill = {};
    if (launch.scalar_count > 0) fill = filling(launch.scalars[0]);
    const int64_t rows = work.dst.count() / width;
    const auto* const from = reinterpret_cast<const T*>(address_of(launch.operands[1]));
    auto* const to = reinterpret_cast<T*>(address_of(launch.operands[0]));
    parallel(device->threads, rows * (width + 20), [&](int32_t part, int32_t parts) {
      for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
        int64_t src = 0, dst = 0, rest = row;
        bool outside = false;
        for (int32_t axis = last - 1; axis >= 0; --axis) {
          const int64_t i = rest % work.dst.dims[axis];
          rest /= work.dst.dims[axis];
          const Taps& taps = work.taps[static_cast<size_t>(axis)];
          src += taps.places[static_cast<size_t>(i)] * work.src.strides[axis];
          dst += i * work.dst.strides[axis];
          outside = outside || taps.outside[static_cast<size_t>(i)];
        }
        T* const out = to + dst;
        const int64_t stride = work.dst.strides[last];
        for (int64_t i = 0; i < width; ++i) out[i * stride] = from[src + offsets[static_cast<size_t>(i)]];
        if (!work.extrapolates) continue;
        for (int64_t i = 0; i < width; ++i) {
          if (outside || inner.outside[static_cast<size_t>(i)]) out[i * stride] = fill;
        }
      }
    });
    return EP_STATUS_OK;
  }

 private:
  T filling(const ep_scalar& scalar) const {
    const int32_t dtype = desc_.operands[0].dtype;
    T value = {};
    if (is_floating(dtype)) {
      narrow(EP_DTYPE_f64, dtype)(&value, 1, &scalar.value.f64, 1, 1);
    } else {
      narrow(EP_DTYPE_u64, dtype)(&value, 1, &scalar.value.u64, 1, 1);
    }
    return value;
  }

  ep_primitive_desc desc_;
};

}  // namespace

Refusal Resize::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_resize_attributes& at = desc.attributes.resize;
  constexpr int32_t known =
      EP_RESIZE_FLAG_HALF | EP_RESIZE_FLAG_ANTIALIAS | EP_RESIZE_FLAG_EXCLUDE_OUTSIDE | EP_RESIZE_FLAG_EXTRAPOLATE;
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  if (at.mode < EP_RESIZE_NEAREST || at.mode > EP_RESIZE_CUBIC) return Refusal::because("mode %d", at.mode);
  if ((at.flags & ~known) != 0) return Refusal::because("flags %d", at.flags);
  if (at.round < 0 || at.round > EP_RESIZE_PREFER_CEIL) return Refusal::because("rounding %d", at.round);
  const int32_t dtype = desc.operands[0].dtype;
  if (desc.operands[1].dtype != dtype || desc.operands[1].rank != desc.operands[0].rank)
    return Refusal::because("DST and SRC of different dtypes or ranks");
  if (at.mode == EP_RESIZE_NEAREST ? dtype_size(dtype) == 0 || wide_dtype(dtype) == 0 : !is_row_float(dtype))
    return Refusal::because("elements of %s", dtype_name(dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Resize::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const int32_t dtype = desc.operands[0].dtype;
  if (desc.attributes.resize.mode != EP_RESIZE_NEAREST) {
    if (dtype == EP_DTYPE_f64) {
      *out = make_primitive<BlendPrimitive<double>>(device, desc);
    } else {
      *out = make_primitive<BlendPrimitive<float>>(device, desc);
    }
    return {};
  }
  switch (dtype_size(dtype)) {
    case 1: *out = make_primitive<NearestPrimitive<uint8_t>>(device, desc); break;
    case 2: *out = make_primitive<NearestPrimitive<uint16_t>>(device, desc); break;
    case 4: *out = make_primitive<NearestPrimitive<uint32_t>>(device, desc); break;
    default: *out = make_primitive<NearestPrimitive<uint64_t>>(device, desc); break;
  }
  return {};
}

}  // namespace tenon::provider::cpu
