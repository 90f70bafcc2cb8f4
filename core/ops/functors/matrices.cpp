// Triangles, diagonals and blocks of matrices, and matrices made from them.
#include <algorithm>
#include <tuple>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "core/ops/operators.h"
#include "core/ops/sized_ops.h"
#include "core/tensor/recording.h"

namespace tenon::functors {
namespace {

void require_matrix(std::string_view op, const Tensor& input) {
  require_defined(op, "input", input);
  if (input.rank() < 2) refuse(op, "input has shape {}; it must have rank at least 2.", input.dims());
}

// The column minus the row of each element of a matrix with the last two axes of `input`.
Tensor offsets(const Tensor& input) {
  const Tensor rows = sized::positions(size_at(input, input.rank() - 2), input.device());
  const Tensor columns = sized::positions(size_at(input, input.rank() - 1), input.device());
  return columns - tenon::unsqueeze(rows, 1);
}

// The number of elements, in a matrix of `row` rows and `col` columns, whose column is less than their row plus
// `offset`.
int64_t count_below(int64_t row, int64_t col, int64_t offset) {
  const int64_t first = std::clamp<int64_t>(-offset, 0, row);          // earlier rows have none
  const int64_t last = std::clamp<int64_t>(col - offset, first, row);  // this row and later ones have `col`
  const int64_t between = last - first;
  return between * (first + offset) + between * (between - 1) / 2 + (row - last) * col;
}

// Row and column of each element of a triangle, row by row.
Tensor triangle(std::string_view op, int64_t row, int64_t col, int64_t offset, bool lower, DType dtype, Device device) {
  if (row < 0 || col < 0) refuse(op, "a matrix of {} rows and {} columns is not possible.", row, col);
  if (!is_integer(dtype)) refuse(op, "indices are integers, not {}.", dtype_name(dtype));
  constexpr int64_t most = int64_t{1} << 40;  // limit in both directions, so that sums do not overflow
  const int64_t diagonal = std::clamp(offset, -most, most);
  const std::optional<int64_t> all = checked_count(Dims{row, col});
  if (!all) refuse(op, "a matrix of {} rows and {} columns has too many elements.", row, col);
  const int64_t below = count_below(row, col, diagonal + (lower ? 1 : 0));
  const int64_t count = lower ? below : *all - below;
  const Tensor rows = tenon::arange(Scalar(int64_t{0}), Scalar(row), Scalar(int64_t{1}), DType::i64, device);
  const Tensor columns = tenon::arange(Scalar(int64_t{0}), Scalar(col), Scalar(int64_t{1}), DType::i64, device);
  const Tensor offsets = columns - tenon::unsqueeze(rows, 1);
  const Tensor kept = lower ? tenon::le(offsets, Scalar(diagonal)) : tenon::ge(offsets, Scalar(diagonal));
  return tenon::cast(tenon::contiguous(tenon::t(std::get<0>(tenon::nonzero_padded(kept, count)))), dtype);
}

int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset) {
  return std::max<int64_t>(offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns), 0);
}

}  // namespace

Tensor tril(const Tensor& input, int64_t diagonal) {
  require_matrix("tril", input);
  return tenon::where(tenon::le(offsets(input), Scalar(diagonal)), input, in_dtype(Scalar(0), input.dtype()));
}
Tensor triu(const Tensor& input, int64_t diagonal) {
  require_matrix("triu", input);
  return tenon::where(tenon::ge(offsets(input), Scalar(diagonal)), input, in_dtype(Scalar(0), input.dtype()));
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, DType dtype, Device device) {
  return triangle("tril_indices", row, col, offset, true, dtype, device);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, DType dtype, Device device) {
  return triangle("triu_indices", row, col, offset, false, dtype, device);
}

// Rows and columns merged into one axis: the diagonal is every (columns + 1)-th element of it.
Tensor diagonal(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
  require_matrix("diagonal", input);
  const int32_t first = axis_of("diagonal", dim1, input.rank());
  const int32_t second = axis_of("diagonal", dim2, input.rank());
  if (first == second) refuse("diagonal", "dim1 and dim2 are both axis {}.", first);
  // Transposed if only then a view can show it.
  if (input.strides()[first] < input.strides()[second] && offset != INT64_MIN)
    return tenon::diagonal(input, -offset, second, first);
  const int64_t rows = input.dims()[first], columns = input.dims()[second];
  const int64_t length = diagonal_length(rows, columns, offset);
  const int64_t axes[] = {first, second}, last[] = {-2, -1};
  const bool lie_last = first == input.rank() - 2 && second == input.rank() - 1;
  const Tensor seen = lie_last ? input : tenon::movedim(input, IntList(axes), IntList(last));
  const bool has_gaps =
      rows > 1 && columns > 1 && seen.strides()[seen.rank() - 2] != columns * seen.strides()[seen.rank() - 1];
  if (has_gaps && length > 0 && !is_elsewhere(input)) {
    // No view can show it, so only its elements are copied.
    const Tensor part = tenon::narrow(seen, -2, std::max<int64_t>(-offset, 0), length);
    const int64_t left = std::max<int64_t>(offset, 0);
    const Tensor columns_of = tenon::arange(left, left + length, 1, DType::i64, input.device());
    Dims dims = part.dims();
    dims[part.rank() - 1] = 1;
    return tenon::squeeze(tenon::gather(part, -1, tenon::expand(tenon::unsqueeze(columns_of, 1), dims)), -1);
  }
  const Tensor line = tenon::flatten(seen, -2, -1);
  if (length == 0) return tenon::narrow(line, -1, 0, 0);
  const int64_t start = offset >= 0 ? offset : -offset * columns;
  return tenon::slice(line, -1, start, start + (length - 1) * (columns + 1) + 1, columns + 1);
}

Tensor diag_embed(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
  require_defined("diag_embed", "input", input);
  if (input.rank() == 0) refuse("diag_embed", "a tensor of rank 0 has no axis.");
  const int32_t rank = input.rank() + 1;
  const int32_t first = axis_of("diag_embed", dim1, rank);
  const int32_t second = axis_of("diag_embed", dim2, rank);
  if (first == second) refuse("diag_embed", "dim1 and dim2 are both axis {}.", first);
  constexpr int64_t most = int64_t{1} << 40;  // exceeds any memory
  if (offset < -most || offset > most) refuse("diag_embed", "a matrix with a diagonal {} is too large.", offset);
  const int64_t length = input.dim(-1);
  const int64_t side = length + std::abs(offset);
  const int64_t axes[] = {first, second}, last[] = {-2, -1};
  // Writes into zeros, unless a gradient or a recorded program needs a value, or the elements are on other ranks.
  const bool plain = !wants_gradient(input) && !is_elsewhere(input);
  if (input.rank() == 1 && plain && current_interpreter().host_value_known(input)) {
    const Tensor matrix = tenon::zeros({side, side}, input.dtype(), input.device());
    if (current_interpreter().host_value_known(matrix)) {
      Tensor line = tenon::diagonal(matrix, offset);
      tenon::copy_(line, input);
      return tenon::movedim(matrix, IntList(last), IntList(axes));
    }
  }
  if (input.rank() == 1) {
    // With one more column than it has, the diagonal of a matrix becomes a column.
    const int64_t left = offset >= 0 ? offset : side + 1 + offset, top = offset >= 0 ? 0 : -offset - 1;
    const Tensor upright = tenon::pad(tenon::unsqueeze(input, 1), {left, side - left, top, side - length - top});
    const Tensor matrix = tenon::reshape(tenon::narrow(tenon::flatten(upright), 0, 0, side * side), {side, side});
    return tenon::movedim(matrix, IntList(last), IntList(axes));
  }
  const Tensor rows = tenon::arange(side, DType::i64, input.device());
  const Tensor mask = tenon::eq(rows - tenon::unsqueeze(rows, 1), Scalar(offset));
  // Column j of the matrix holds element j - offset; elements off the diagonal are masked.
  const int64_t padding[] = {std::max<int64_t>(offset, 0), std::max<int64_t>(-offset, 0)};
  const Tensor line = offset == 0 ? input : tenon::pad(input, IntList(padding));
  const Tensor matrix = tenon::where(mask, tenon::unsqueeze(line, -2), in_dtype(Scalar(0), input.dtype()));
  return tenon::movedim(matrix, IntList(last), IntList(axes));
}

Tensor diag(const Tensor& input, int64_t diagonal) {
  require_defined("diag", "input", input);
  if (input.rank() == 1) return tenon::diag_embed(input, diagonal);
  if (input.rank() != 2) refuse("diag", "input has shape {}; it must have rank 1 or 2.", input.dims());
  return tenon::clone(tenon::diagonal(input, diagonal));
}

Tensor diagflat(const Tensor& input, int64_t offset) { return tenon::diag_embed(tenon::reshape(input, -1), offset); }

Tensor trace(const Tensor& input) {
  require_defined("trace", "input", input);
  if (input.rank() != 2) refuse("trace", "input has shape {}; it must be a matrix.", input.dims());
  return tenon::sum(tenon::diagonal(input));
}

Tensor block_diag(const TensorList& tensors) {
  if (tensors.empty()) refuse("block_diag", "the list of tensors is empty.");
  int64_t columns = 0;
  TensorList blocks;
  for (const Tensor& tensor : tensors) {
    require_defined("block_diag", "tensors", tensor);
    if (tensor.rank() > 2) refuse("block_diag", "a tensor of shape {} is not a matrix.", tensor.dims());
    blocks.push_back(tensor.rank() == 2 ? tensor : tenon::reshape(tensor, {1, tensor.elements()}));
    columns += blocks.back().dim(1);
  }
  int64_t before = 0;
  for (Tensor& block : blocks) {
    const int64_t width = block.dim(1);
    block = tenon::pad(block, {before, columns - before - width});
    before += width;
  }
  return tenon::concat(blocks, 0);
}

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  require_defined("vander", "x", x);
  if (x.rank() != 1) refuse("vander", "x has shape {}; it must be a list.", x.dims());
  const int64_t count = n.value_or(x.dim(0));
  if (count < 0) refuse("vander", "N is {}; it must be at least 0.", count);
  const int64_t rows = x.dim(0);
  const Tensor wide = is_floating(x.dtype()) ? x : tenon::cast(x, DType::i64);
  const Tensor one = tenon::ones({rows, std::min<int64_t>(count, 1)}, wide.dtype(), x.device());
  if (count < 2) return one;
  const Tensor factors = tenon::expand(tenon::unsqueeze(wide, 1), {rows, count - 1});
  return tenon::cumprod(tenon::concat(increasing ? TensorList{one, factors} : TensorList{factors, one}, 1), 1,
                        wide.dtype(), false, !increasing);
}

}  // namespace tenon::functors
