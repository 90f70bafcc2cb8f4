// reduce, arg_reduce, softmax: along axes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "primitives/reference/call.h"
#include "primitives/reference/scalar.h"

namespace tenon::reference {
namespace {

// The dims of `operand` along the axes of `mask`, 1 elsewhere.
std::vector<int64_t> dims_along(const Operand& operand, uint32_t mask) {
  std::vector<int64_t> dims(operand.dims().begin(), operand.dims().end());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if ((mask >> axis & 1) == 0) dims[axis] = 1;
  }
  return dims;
}

// base + inner, axis by axis.
struct Sum {
  int64_t index[EP_MAX_RANK];
  Sum(const int64_t* base, const int64_t* inner, int32_t rank) {
    for (int32_t axis = 0; axis < rank; ++axis) index[axis] = base[axis] + inner[axis];
  }
};

template <class T>
bool wins(T candidate, T best, bool greatest, bool last) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(best)) return last && std::isnan(candidate);
    if (std::isnan(candidate)) return true;
  }
  if (candidate == best) return last;
  return greatest ? candidate > best : candidate < best;
}

}  // namespace

void run_reduce(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const ep_reduce_attributes& attributes = call.desc.attributes.reduce;
  const std::vector<int64_t> inner = dims_along(src, attributes.axes);
  with_compute_type(src.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_index(dst.dims(), [&](const int64_t* index) {
      T value = reduce_init<T>(attributes.op);
      int64_t count = 0;
      for_each_index(inner, [&](const int64_t* step) {
        const T x = src.get<T>(Sum(index, step, src.rank()).index);
        value = reduce_combine<T>(attributes.op, value, reduce_map<T>(attributes.op, x));
        ++count;
      });
      dst.set(index, reduce_finish<T>(attributes.op, value, count));
    });
  });
}

void run_arg_reduce(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const ep_arg_reduce_attributes& attributes = call.desc.attributes.arg_reduce;
  with_compute_type(src.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_index(dst.dims(), [&](const int64_t* index) {
      int64_t at[EP_MAX_RANK];
      std::copy_n(index, src.rank(), at);
      int64_t best = 0;
      T best_value = src.get<T>(at);
      for (int64_t i = 1; i < src.dim(attributes.axis); ++i) {
        at[attributes.axis] = i;
        const T value = src.get<T>(at);
        if (!wins(value, best_value, attributes.op == EP_REDUCE_max, attributes.last != 0)) continue;
        best = i;
        best_value = value;
      }
      dst.set<int64_t>(index, best);
    });
  });
}

void run_softmax(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const int32_t axis = call.desc.attributes.softmax.axis;
  const bool log = call.desc.attributes.softmax.log != 0;
  const int64_t length = src.dim(axis);
  std::vector<double> row(static_cast<size_t>(length));
  const std::vector<int64_t> rows = dims_along(src, ~(uint32_t{1} << axis));
  for_each_index(rows, [&](const int64_t* index) {
    int64_t at[EP_MAX_RANK];
    std::copy_n(index, src.rank(), at);
    double greatest = -std::numeric_limits<double>::infinity();
    for (at[axis] = 0; at[axis] < length; ++at[axis]) {
      const double x = src.get<double>(at);
      row[static_cast<size_t>(at[axis])] = x;
      greatest = std::isnan(x) || x > greatest ? x : greatest;
    }
    double total = 0;
    for (double x : row) total += std::exp(x - greatest);
    for (at[axis] = 0; at[axis] < length; ++at[axis]) {
      const double shifted = row[static_cast<size_t>(at[axis])] - greatest;
      dst.set(at, log ? shifted - std::log(total) : std::exp(shifted) / total);
    }
  });
}

}  // namespace tenon::reference
