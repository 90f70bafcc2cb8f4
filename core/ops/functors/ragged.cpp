// Ragged lists, whose lengths are elements of a tensor: repeated elements, bags of embeddings.
#include "core/ops/functors/apply.h"
#include "core/ops/functors/half.h"
#include "core/ops/functors/positions.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

Tensor integers(std::string_view op, std::string_view name, const Tensor& tensor) {
  return tenon::cast(as_index(op, name, tensor), DType::i64);
}

struct Bags {
  Tensor rows;     // rows of the weight, [elements, width]
  Tensor number;   // [elements]: the bag of each row
  Tensor present;  // bool [elements]: false for padding; undefined without padding
  int64_t count;
};

// The number of the list that each element is in; lists begin at `starts`.
Tensor parts_of(const Tensor& starts, int64_t elements) {
  const Tensor places = tenon::arange(elements, DType::i64, starts.device());
  const Tensor after = tenon::searchsorted(starts, places, false, true);
  // An element before the first list is in none; it gets a number so great that its use fails.
  return tenon::where(tenon::eq(after, Scalar(0)), Scalar(int64_t{1} << 40), tenon::sub(after, Scalar(1)));
}

Bags bags_of(std::string_view op, const Tensor& input, const Tensor& weight, const Tensor& offsets, bool includes_last,
             std::optional<int64_t> padding) {
  const Tensor places = integers(op, "input", input);
  require_defined(op, "weight", weight);
  if (weight.rank() != 2 || !is_floating(weight.dtype())) {
    refuse(op, "weight is {} of shape {}; it must be a matrix of floats.", dtype_name(weight.dtype()), weight.dims());
  }
  Bags bags{};
  if (input.rank() == 2) {
    if (offsets.defined())
      refuse(op, "input has shape {}, so its rows are the bags; offsets are for lists.", input.dims());
    bags.count = input.dim(0);
    const Tensor rows = tenon::unsqueeze(tenon::arange(bags.count, DType::i64, input.device()), 1);
    bags.number = tenon::reshape(tenon::expand(rows, input.dims()), input.elements());
  } else {
    if (input.rank() != 1) refuse(op, "input has rank {}; it must have 1 or 2.", input.rank());
    Tensor starts = integers(op, "offsets", offsets);
    if (starts.rank() != 1) refuse(op, "offsets has rank {}; it must be a list.", starts.rank());
    if (includes_last) {
      if (starts.dim(0) == 0) refuse(op, "offsets is empty; with include_last_offset it has at least one element.");
      starts = tenon::narrow(starts, 0, 0, starts.dim(0) - 1);
    }
    bags.count = starts.dim(0);
    bags.number = parts_of(starts, input.dim(0));
  }
  const Tensor list = tenon::reshape(places, input.elements());
  bags.rows = tenon::embedding(weight, list);
  if (padding) bags.present = tenon::ne(list, Scalar(*padding < 0 ? *padding + weight.dim(0) : *padding));
  return bags;
}

// The rows of the bags, each multiplied by its number.
Tensor weighted(const Tensor& rows, const Tensor& numbers) {
  return tenon::mul(rows, tenon::unsqueeze(tenon::cast(numbers, rows.dtype()), 1));
}

Tensor greatest(const Bags& bags, const Tensor& zeros) {
  // Padding gets its own bag, which is cut off.
  const Tensor number =
      bags.present.defined() ? tenon::where(bags.present, bags.number, Scalar(bags.count)) : bags.number;
  const Tensor index = tenon::expand(tenon::unsqueeze(number, 1), bags.rows.dims());
  const Tensor all = tenon::scatter_reduce(zeros, 0, index, bags.rows, "amax", false);
  return tenon::narrow(all, 0, 0, bags.count);
}

}  // namespace

Tensor repeat_interleave(const Tensor& input, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  constexpr std::string_view op = "repeat_interleave";
  require_defined(op, "input", input);
  const Tensor x = dim ? input : tenon::reshape(input, -1);
  if (x.rank() == 0) refuse(op, "a tensor of rank 0 has no axis.");
  const int32_t axis = axis_of(op, dim.value_or(0), x.rank());
  Tensor counts = integers(op, "repeats", repeats);
  if (counts.rank() > 1 || (counts.elements() != 1 && counts.elements() != x.dim(axis))) {
    refuse(op, "repeats has shape {}; it must have 1 element, or {}, as axis {} of input has.", repeats.dims(),
           x.dim(axis), axis);
  }
  counts = tenon::expand(tenon::reshape(counts, -1), x.dim(axis));
  if (x.dim(axis) == 0) return x;
  if (!output_size) {
    const int64_t least = size_from(op, tenon::amin(counts));
    if (least < 0) refuse(op, "{} repeats are not possible.", least);
  }
  const int64_t length = output_size ? *output_size : size_from(op, tenon::sum(counts));
  if (length < 0) refuse(op, "output_size is {}; it must be at least 0.", length);
  const Tensor places = tenon::arange(length, DType::i64, x.device());
  // A position after all repeats gets an index that is out of range.
  return tenon::gather_slices(x, axis, tenon::searchsorted(tenon::cumsum(counts, 0), places, false, true));
}

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets, std::string_view mode,
                     const Tensor& per_sample_weights, bool include_last_offset, std::optional<int64_t> padding_idx) {
  constexpr std::string_view op = "embedding_bag";
  if (mode != "sum" && mode != "mean" && mode != "max") refuse(op, "mode is '{}'; it may be sum, mean or max.", mode);
  Bags bags = bags_of(op, input, weight, offsets, include_last_offset, padding_idx);
  const Halves halves{&weight};
  bags.rows = Halves::widened(bags.rows);
  if (per_sample_weights.defined()) {
    if (mode != "sum") refuse(op, "per_sample_weights are for mode sum, not {}.", mode);
    if (per_sample_weights.dims() != input.dims()) {
      refuse(op, "per_sample_weights has shape {}, but input has {}.", per_sample_weights.dims(), input.dims());
    }
    bags.rows = weighted(bags.rows, tenon::reshape(per_sample_weights, input.elements()));
  }
  const bool padded = bags.present.defined();
  const int64_t count = bags.count + (mode == "max" && padded ? 1 : 0);
  const Tensor zeros = tenon::zeros({count, weight.dim(1)}, bags.rows.dtype(), weight.device());
  if (mode == "max") return halves.rounded(greatest(bags, zeros));
  if (padded) bags.rows = tenon::where(tenon::unsqueeze(bags.present, 1), bags.rows, Scalar(0));
  const Tensor sums = tenon::index_add(zeros, 0, bags.number, bags.rows);
  if (mode == "sum") return halves.rounded(sums);
  const Tensor ones =
      padded ? tenon::cast(bags.present, sums.dtype()) : tenon::ones(input.elements(), sums.dtype(), weight.device());
  const Tensor none = tenon::zeros(bags.count, sums.dtype(), weight.device());
  const Tensor sizes = tenon::clamp(tenon::index_add(none, 0, bags.number, ones), Scalar(1), std::nullopt);
  return halves.rounded(tenon::div(sums, tenon::unsqueeze(sizes, 1)));
}

}  // namespace tenon::functors
