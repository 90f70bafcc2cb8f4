// Products of matrices, vectors and tensors, written as matmul.
#include <algorithm>
#include <limits>
#include <string>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/half.h"
#include "core/ops/operators.h"

namespace tenon::functors {
namespace {

void require_rank(std::string_view op, std::string_view name, const Tensor& tensor, int32_t rank) {
  require_defined(op, name, tensor);
  if (tensor.rank() != rank) {
    refuse(op, "{} has shape {}; it must have rank {}.", name, tensor.dims(), rank);
  }
}

// Throws for batches of matrices that cannot be multiplied.
void require_batches(std::string_view op, const Tensor& batch1, const Tensor& batch2) {
  require_rank(op, "batch1", batch1, 3);
  require_rank(op, "batch2", batch2, 3);
  if (batch1.dim(0) == batch2.dim(0) && batch1.dim(2) == batch2.dim(1)) return;
  refuse(op,
         "batch1 has shape {} and batch2 {}; they must have the same number of matrices, and the columns of the first "
         "must match the rows of the second.",
         batch1.dims(), batch2.dims());
}

// beta * input + alpha * product. If beta is 0, a NaN in input does not count.
Tensor added(const Tensor& input, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  const DType dtype = promote_tensors(input, product);
  const Scalar of_input = in_dtype(beta, dtype), of_product = in_dtype(alpha, dtype);
  const Tensor scaled = of_product.to_double() == 1 ? product : product * of_product;
  if (of_input.to_double() == 0) return scaled;
  return tenon::add(of_input.to_double() == 1 ? input : input * of_input, scaled);
}

// beta * input + alpha * mat1 @ mat2.
Tensor added_product(const Tensor& input, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  const Halves halves{&input, &mat1, &mat2};
  if (!halves.any()) return added(input, tenon::matmul(mat1, mat2), beta, alpha);
  const bool plain = beta.to_double() == 1 && alpha.to_double() == 1;
  if (plain && mat1.dtype() == mat2.dtype() && input.dtype() == mat1.dtype()) return product(mat1, mat2, input);
  const Tensor product = tenon::matmul(Halves::widened(mat1), Halves::widened(mat2));
  return halves.rounded(added(Halves::widened(input), product, beta, alpha));
}

// --- einsum: each axis has a label ---

// Labels for the axes of an ellipsis: the last axis is kDots, the one before it kDots + 1.
constexpr int kDots = 256;

// A string stores a few labels without heap memory.
using Labels = std::u16string;

struct Term {
  Tensor tensor;
  Labels labels;  // one per axis, without repeats
};

bool holds(const Labels& labels, char16_t label) { return labels.find(label) != Labels::npos; }

int64_t size_of(const Term& term, char16_t label) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (term.labels[i] == label) return term.tensor.dims()[static_cast<int64_t>(i)];
  }
  return 1;
}

bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The labels of "ij..." for a tensor of `rank` axes; if rank is below 0, the dots stand for `dots` axes.
Labels labels_of(std::string_view text, int32_t rank, int32_t dots) {
  const size_t at = text.find("...");
  Labels labels;
  const auto named = static_cast<int32_t>(std::count_if(text.begin(), text.end(), is_label));
  if (rank >= 0) dots = rank - named;
  if (dots < 0 || (at == std::string_view::npos && rank >= 0 && dots != 0)) {
    refuse("einsum", "'{}' has {} labels, but its tensor has rank {}.", text, named, rank);
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == at) {
      for (int32_t k = dots; k > 0; --k) labels.push_back(static_cast<char16_t>(kDots + k - 1));
      i += 2;
    } else if (is_label(text[i])) {
      labels.push_back(static_cast<unsigned char>(text[i]));
    } else {
      refuse("einsum", "'{}' has the sign '{}'; labels are letters, and '...' may occur once.", text, text[i]);
    }
  }
  return labels;
}

// `tensor` with each label once: axes that share a label become their diagonal.
Term term_of(Tensor tensor, Labels labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t j = i + 1; j < labels.size();) {
      if (labels[i] != labels[j]) {
        ++j;
        continue;
      }
      if (tensor.dims()[static_cast<int64_t>(i)] != tensor.dims()[static_cast<int64_t>(j)]) {
        refuse("einsum", "one label stands for axes of lengths {} and {} of one tensor.",
               tensor.dims()[static_cast<int64_t>(i)], tensor.dims()[static_cast<int64_t>(j)]);
      }
      tensor = tenon::movedim(tenon::diagonal(tensor, 0, static_cast<int64_t>(i), static_cast<int64_t>(j)), -1,
                              static_cast<int64_t>(i));
      labels.erase(labels.begin() + static_cast<ptrdiff_t>(j));
    }
  }
  return {std::move(tensor), std::move(labels)};
}

// Sums over the axes whose labels are not needed.
Term summed(const Term& term, const Labels& needed) {
  std::vector<int64_t> axes;
  Labels kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (holds(needed, term.labels[i]))
      kept.push_back(term.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  return axes.empty() ? term : Term{tenon::sum(term.tensor, axes), kept};
}

// `term` with the axes of `labels` in this order; a missing label becomes an axis of length 1.
Tensor arranged(const Term& term, const Labels& labels) {
  std::vector<int64_t> order;
  for (const char16_t label : labels) {
    const size_t found = term.labels.find(label);
    if (found != Labels::npos) order.push_back(static_cast<int64_t>(found));
  }
  Tensor result = std::is_sorted(order.begin(), order.end()) ? term.tensor : tenon::permute(term.tensor, order);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!holds(term.labels, labels[i])) result = tenon::unsqueeze(result, static_cast<int64_t>(i));
  }
  return result;
}

// The length to which a label's axes broadcast.
int64_t joint_size(const Term& a, const Term& b, char16_t label) {
  const int64_t size = size_of(a, label);
  return size == 1 ? size_of(b, label) : size;
}

int64_t product_of(const Term& a, const Term& b, const Labels& labels) {
  int64_t count = 1;
  for (const char16_t label : labels) count *= joint_size(a, b, label);
  return count;
}

// The product of two terms as one matmul over batch axes, rows of `a`, columns of `b`, and summed axes.
Term contracted(const Term& a, const Term& b, const Labels& needed) {
  Labels batch, rows, columns, inner;
  for (const char16_t label : a.labels) {
    const bool in_both = holds(b.labels, label);
    // An axis of length 1 that meets a longer one broadcasts, so the product does not sum over it.
    if (in_both && !holds(needed, label) && size_of(a, label) == size_of(b, label))
      inner.push_back(label);
    else
      (in_both ? batch : rows).push_back(label);
  }
  for (const char16_t label : b.labels) {
    if (!holds(a.labels, label)) columns.push_back(label);
  }
  Dims dims;
  for (const char16_t label : batch + rows + columns) {
    dims.push_back(joint_size(a, b, label));
  }
  const int64_t groups = product_of(a, b, batch);
  const auto folded = [&](const Term& term, const Labels& first, const Labels& second) {
    Tensor x = arranged(term, batch + first + second);
    Dims full = x.dims();
    for (size_t i = 0; i < batch.size(); ++i) {
      full[static_cast<int64_t>(i)] = joint_size(a, b, batch[i]);
    }
    return tenon::reshape(x.dims() == full ? x : tenon::expand(x, full),
                          {groups, product_of(term, term, first), product_of(term, term, second)});
  };
  const Tensor product = tenon::matmul(folded(a, rows, inner), folded(b, inner, columns));
  Term result{tenon::reshape(product, dims), batch + rows + columns};
  return summed(result, needed);
}

std::string without_spaces(std::string_view text) {
  std::string result;
  std::copy_if(text.begin(), text.end(), std::back_inserter(result), [](char c) { return c != ' '; });
  return result;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// The labels of a result that is not given: the dots, then each label that occurs once, in alphabetical order.
Labels implied(const std::vector<Labels>& lists, int32_t dots) {
  Labels labels;
  for (int32_t k = dots; k > 0; --k) labels.push_back(static_cast<char16_t>(kDots + k - 1));
  for (char16_t label = 0; label < kDots; ++label) {
    int64_t count = 0;
    for (const Labels& list : lists) count += std::count(list.begin(), list.end(), label);
    if (count == 1) labels.push_back(label);
  }
  return labels;
}

void check_sizes(const std::vector<Term>& terms) {
  for (const Term& a : terms) {
    for (const Term& b : terms) {
      for (const char16_t label : a.labels) {
        const int64_t m = size_of(a, label), n = size_of(b, label);
        if (m == n || m == 1 || n == 1) continue;
        refuse("einsum", "one label stands for axes of lengths {} and {}.", m, n);
      }
    }
  }
}

// The two terms whose product needs the fewest multiplications.
std::pair<size_t, size_t> cheapest(const std::vector<Term>& terms) {
  std::pair<size_t, size_t> best{0, 1};
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t j = i + 1; j < terms.size(); ++j) {
      double cost = 1;
      Labels met;
      for (const char16_t label : terms[i].labels + terms[j].labels) {
        if (holds(met, label)) continue;
        met.push_back(label);
        cost *= static_cast<double>(joint_size(terms[i], terms[j], label));
      }
      if (cost < least) {
        least = cost;
        best = {i, j};
      }
    }
  }
  return best;
}

Labels needed_beside(const std::vector<Term>& terms, size_t i, size_t j, const Labels& output) {
  Labels needed = output;
  for (size_t k = 0; k < terms.size(); ++k) {
    if (k != i && k != j) needed += terms[k].labels;
  }
  return needed;
}

// `tensor` reshaped for tensordot: the axes `axes` become one axis, first or last.
Tensor folded(const Tensor& tensor, const std::vector<int64_t>& axes, bool first, Dims* rest) {
  std::vector<int64_t> order, others;
  for (int64_t axis = 0; axis < tensor.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    others.push_back(axis);
    rest->push_back(tensor.dims()[axis]);
  }
  order = first ? axes : others;
  const std::vector<int64_t>& last = first ? others : axes;
  order.insert(order.end(), last.begin(), last.end());
  int64_t count = 1;
  for (const int64_t axis : axes) count *= tensor.dims()[axis];
  const int64_t rest_count = element_count(*rest);
  const Tensor arranged = tenon::permute(tensor, order);
  return first ? tenon::reshape(arranged, {count, rest_count}) : tenon::reshape(arranged, {rest_count, count});
}

}  // namespace

Tensor mm(const Tensor& input, const Tensor& mat2) {
  require_rank("mm", "input", input, 2);
  require_rank("mm", "mat2", mat2, 2);
  return tenon::matmul(input, mat2);
}
Tensor bmm(const Tensor& input, const Tensor& mat2) {
  require_rank("bmm", "input", input, 3);
  require_rank("bmm", "mat2", mat2, 3);
  if (input.dim(0) != mat2.dim(0)) {
    refuse("bmm", "input has {} matrices and mat2 {}; both must have the same number.", input.dim(0), mat2.dim(0));
  }
  return tenon::matmul(input, mat2);
}
Tensor mv(const Tensor& input, const Tensor& vec) {
  require_rank("mv", "input", input, 2);
  require_rank("mv", "vec", vec, 1);
  return tenon::matmul(input, vec);
}
Tensor dot(const Tensor& input, const Tensor& tensor) {
  require_rank("dot", "input", input, 1);
  require_rank("dot", "tensor", tensor, 1);
  return tenon::matmul(input, tensor);
}
Tensor vdot(const Tensor& input, const Tensor& other) {
  require_rank("vdot", "input", input, 1);
  require_rank("vdot", "other", other, 1);
  return tenon::matmul(input, other);
}
Tensor outer(const Tensor& input, const Tensor& vec2) {
  require_rank("outer", "input", input, 1);
  require_rank("outer", "vec2", vec2, 1);
  return tenon::mul(tenon::unsqueeze(input, 1), vec2);
}
Tensor inner(const Tensor& input, const Tensor& other) {
  require_defined("inner", "input", input);
  require_defined("inner", "other", other);
  if (input.rank() == 0 || other.rank() == 0) return tenon::mul(input, other);
  const int64_t last[] = {input.rank() - 1}, other_last[] = {other.rank() - 1};
  return tenon::tensordot(input, other, IntList(last), IntList(other_last));
}

Tensor addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
  require_defined("addmm", "input", input);
  require_rank("addmm", "mat1", mat1, 2);
  require_rank("addmm", "mat2", mat2, 2);
  return added_product(input, mat1, mat2, beta, alpha);
}
Tensor addmv(const Tensor& input, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) {
  require_defined("addmv", "input", input);
  return added(input, tenon::mv(mat, vec), beta, alpha);
}
Tensor addr(const Tensor& input, const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) {
  require_defined("addr", "input", input);
  require_rank("addr", "vec1", vec1, 1);
  require_rank("addr", "vec2", vec2, 1);
  const bool plain = is_floating(input.dtype()) && vec1.dtype() == input.dtype() && vec2.dtype() == input.dtype() &&
                     beta.to_double() == 1 && alpha.to_double() == 1;
  if (plain) return tenon::fma(tenon::unsqueeze(vec1, 1), vec2, input);
  return added(input, tenon::outer(vec1, vec2), beta, alpha);
}
Tensor baddbmm(const Tensor& input, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
  require_defined("baddbmm", "input", input);
  require_batches("baddbmm", batch1, batch2);
  return added_product(input, batch1, batch2, beta, alpha);
}
Tensor addbmm(const Tensor& input, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
  require_defined("addbmm", "input", input);
  require_batches("addbmm", batch1, batch2);
  // The sum of the products equals the product of the matrices placed side by side.
  const int64_t inner = batch1.dim(0) * batch1.dim(2);
  const Tensor rows = tenon::reshape(tenon::transpose(batch1, 0, 1), {batch1.dim(1), inner});
  return added_product(input, rows, tenon::reshape(batch2, {inner, batch2.dim(2)}), beta, alpha);
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  require_rank("bilinear", "weight", weight, 3);
  require_defined("bilinear", "input1", input1);
  require_defined("bilinear", "input2", input2);
  const bool full = input1.rank() == EP_MAX_RANK && input2.rank() == EP_MAX_RANK &&
                    std::equal(input1.dims().begin(), input1.dims().end() - 1, input2.dims().begin());
  if (full) {  // merge the batch into one axis, since the products have one more axis
    Dims dims = input1.dims();
    dims.erase(EP_MAX_RANK - 1);
    const int64_t rows = element_count(dims);
    const Tensor flat = tenon::bilinear(tenon::reshape(input1, {rows, input1.dim(-1)}),
                                        tenon::reshape(input2, {rows, input2.dim(-1)}), weight, bias);
    dims.push_back(weight.dim(0));
    return tenon::reshape(flat, dims);
  }
  const Tensor result = tenon::einsum("...i,oij,...j->...o", {input1, weight, input2});
  return bias.defined() ? result + bias : result;
}

namespace {

// kron of tensors whose axes, taken in pairs, exceed the greatest rank: each axis is handled separately.
Tensor kron_by_axes(Tensor a, Tensor b) {
  for (int32_t axis = 0; axis < a.rank(); ++axis) {
    const int64_t inner = b.dims()[axis], length = a.dims()[axis] * inner;
    if (length == 0) {
      a = tenon::narrow(a, axis, 0, 0);
      b = tenon::narrow(b, axis, 0, 0);
      continue;
    }
    const Tensor places = tenon::arange(length, DType::i64, a.device());
    a = tenon::gather_slices(a, axis, tenon::floor_divide(places, Scalar(inner)));
    b = tenon::gather_slices(b, axis, tenon::remainder(places, Scalar(inner)));
  }
  return tenon::mul(a, b);
}

}  // namespace

Tensor kron(const Tensor& input, const Tensor& other) {
  require_defined("kron", "input", input);
  require_defined("kron", "other", other);
  Tensor a = input, b = other;
  while (a.rank() < b.rank()) a = tenon::unsqueeze(a, 0);
  while (b.rank() < a.rank()) b = tenon::unsqueeze(b, 0);
  if (2 * a.rank() > EP_MAX_RANK) return kron_by_axes(std::move(a), std::move(b));
  Dims dims;
  for (int32_t axis = 0; axis < a.rank(); ++axis) dims.push_back(a.dims()[axis] * b.dims()[axis]);
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    a = tenon::unsqueeze(a, 2 * axis + 1);
    b = tenon::unsqueeze(b, 2 * axis);
  }
  return tenon::reshape(tenon::mul(a, b), dims);
}

Tensor cross(const Tensor& input, const Tensor& other, std::optional<int64_t> dim) {
  require_defined("cross", "input", input);
  require_defined("cross", "other", other);
  int32_t axis = 0;
  if (dim) {
    axis = axis_of("cross", *dim, input.rank());
  } else {
    while (axis < input.rank() && input.dims()[axis] != 3) ++axis;
  }
  if (axis >= input.rank() || axis >= other.rank() || input.dims()[axis] != 3 || other.dims()[axis] != 3) {
    refuse("cross", "input has shape {} and other {}; one axis of both must have length 3.", input.dims(),
           other.dims());
  }
  const auto turned = [axis](const Tensor& x, int64_t by) { return tenon::roll(x, by, axis); };
  return turned(input, -1) * turned(other, -2) - turned(input, -2) * turned(other, -1);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims) {
  require_defined("tensordot", "a", a);
  require_defined("tensordot", "b", b);
  if (dims < 0 || dims > a.rank() || dims > b.rank()) {
    refuse("tensordot", "dims is {}; tensors of ranks {} and {} do not have that many axes.", dims, a.rank(), b.rank());
  }
  std::vector<int64_t> of_a, of_b;
  for (int64_t i = 0; i < dims; ++i) {
    of_a.push_back(a.rank() - dims + i);
    of_b.push_back(i);
  }
  return tenon::tensordot(a, b, IntList(of_a), IntList(of_b));
}

Tensor tensordot(const Tensor& a, const Tensor& b, IntList dims_self, IntList dims_other) {
  require_defined("tensordot", "a", a);
  require_defined("tensordot", "b", b);
  if (dims_self.size() != dims_other.size()) {
    refuse("tensordot", "{} axes of a cannot be summed with {} axes of b.", dims_self.size(), dims_other.size());
  }
  std::vector<int64_t> of_a, of_b;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    of_a.push_back(axis_of("tensordot", dims_self[i], a.rank()));
    of_b.push_back(axis_of("tensordot", dims_other[i], b.rank()));
    const int64_t m = a.dims()[of_a.back()], n = b.dims()[of_b.back()];
    if (m != n) refuse("tensordot", "axis {} of a has length {}, but axis {} of b has {}.", of_a[i], m, of_b[i], n);
  }
  Dims dims, columns;
  const Tensor left = folded(a, of_a, false, &dims);
  const Tensor right = folded(b, of_b, true, &columns);
  for (const int64_t dim : columns) dims.push_back(dim);
  return tenon::reshape(tenon::matmul(left, right), dims);
}

Tensor einsum(std::string_view equation, const TensorList& operands) {
  if (operands.empty()) refuse("einsum", "there are no tensors.");
  std::vector<const Tensor*> all;
  for (const Tensor& operand : operands) all.push_back(&operand);
  // A single product already rounds only once.
  const Halves halves(operands.size() > 2 ? std::span<const Tensor* const>(all) : std::span<const Tensor* const>());
  if (halves.any()) return halves.rounded(functors::einsum(equation, Halves::widened(operands)));
  const std::string text = without_spaces(equation);
  const size_t arrow = text.find("->");
  const std::vector<std::string_view> inputs = parts_of(std::string_view(text).substr(0, arrow));
  if (inputs.size() != operands.size()) {
    refuse("einsum", "'{}' names {} tensors, but {} are given.", equation, inputs.size(), operands.size());
  }
  std::vector<Labels> lists;
  int32_t dots = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    require_defined("einsum", "operands", operands[i]);
    lists.push_back(labels_of(inputs[i], operands[i].rank(), 0));
    for (const char16_t label : lists.back()) dots = std::max(dots, label - kDots + 1);
  }
  const Labels output =
      arrow == std::string::npos ? implied(lists, dots) : labels_of(std::string_view(text).substr(arrow + 2), -1, dots);
  for (const char16_t label : output) {
    const bool known = std::any_of(lists.begin(), lists.end(), [&](const auto& list) { return holds(list, label); });
    if (!known || std::count(output.begin(), output.end(), label) > 1) {
      refuse("einsum", "a label of the result of '{}' occurs in no tensor, or twice in the result.", equation);
    }
  }
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i) terms.push_back(term_of(operands[i], lists[i]));
  check_sizes(terms);
  for (size_t i = 0; i < terms.size(); ++i) terms[i] = summed(terms[i], needed_beside(terms, i, i, output));
  while (terms.size() > 1) {
    const auto [i, j] = cheapest(terms);
    Term product = contracted(terms[i], terms[j], needed_beside(terms, i, j, output));
    terms.erase(terms.begin() + static_cast<ptrdiff_t>(j));
    terms[i] = std::move(product);
  }
  return arranged(summed(terms[0], output), output);
}

}  // namespace tenon::functors
