// scan, sort, top_k, unique, nonzero, one_hot: kernels that sort, scan or find elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "primitives/reference/call.h"
#include "primitives/reference/prelude.h"

namespace tenon::reference {
namespace {

// Calls line(index) for the first element of each line of `operand` along `axis`.
template <class Line>
void for_each_line(const Operand& operand, int32_t axis, Line&& line) {
  int64_t dims[EP_MAX_RANK];
  std::copy_n(operand.desc->dims, operand.rank(), dims);
  dims[axis] = 1;
  for_each_index({dims, static_cast<size_t>(operand.rank())}, line);
}

// The elements of the line that begins at `start`.
template <class T>
std::vector<T> line_of(const Operand& operand, int32_t axis, const int64_t* start) {
  int64_t at[EP_MAX_RANK];
  std::copy_n(start, operand.rank(), at);
  std::vector<T> line;
  for (at[axis] = 0; at[axis] < operand.dim(axis); ++at[axis]) line.push_back(operand.get<T>(at));
  return line;
}

// Writes as many of `values` as fit. Does nothing if the operand is absent.
template <class T>
void put_line(const Operand& operand, int32_t axis, const int64_t* start, const std::vector<T>& values) {
  if (!operand) return;
  int64_t at[EP_MAX_RANK];
  std::copy_n(start, operand.rank(), at);
  for (at[axis] = 0; at[axis] < operand.dim(axis); ++at[axis]) {
    operand.set(at, values[static_cast<size_t>(at[axis])]);
  }
}

// The order of sort: NaN after all numbers.
template <class T>
bool less(T x, T y) {
  if (prelude::ep_isnan(x)) return false;
  return prelude::ep_isnan(y) || x < y;
}

// The positions 0 to n - 1, sorted so that before(i, j) holds for neighbours that are not equal.
template <class Before>
std::vector<int64_t> sorted_positions(size_t n, const Before& before) {
  std::vector<int64_t> positions(n);
  std::iota(positions.begin(), positions.end(), 0);
  std::stable_sort(positions.begin(), positions.end(), before);
  return positions;
}

// --- scan ---

double neutral(int32_t op, double) {
  const double inf = std::numeric_limits<double>::infinity();
  if (op == EP_SCAN_SUM || op == EP_SCAN_PROD) return op == EP_SCAN_SUM ? 0 : 1;
  return op == EP_SCAN_MIN ? inf : -inf;
}

// The neutral element for integers of `bits` bits.
template <class T>
T neutral_integer(int32_t op, int32_t bits) {
  if (op == EP_SCAN_SUM || op == EP_SCAN_PROD) return op == EP_SCAN_SUM ? 0 : 1;
  const T greatest = std::numeric_limits<T>::max() >> (64 - bits);
  if (op == EP_SCAN_MIN) return greatest;
  return std::is_signed_v<T> ? static_cast<T>(-greatest - 1) : 0;
}

template <class T>
T combined(int32_t op, T x, T y) {
  switch (op) {
    case EP_SCAN_SUM: return prelude::ep_add(x, y);
    case EP_SCAN_PROD: return prelude::ep_mul(x, y);
    case EP_SCAN_MAX: return prelude::ep_max(x, y);
    case EP_SCAN_MIN: return prelude::ep_min(x, y);
    default: break;
  }
  if constexpr (prelude::is_float<T>) {
    const T most = prelude::ep_max(x, y);
    if (!std::isfinite(most)) return most;
    return most + std::log(std::exp(x - most) + std::exp(y - most));
  }
  return x;
}

// True if `x` replaces `best` in a scan by max or min.
template <class T>
bool replaces(int32_t op, T x, T best) {
  if (prelude::ep_isnan(x)) return true;
  return !prelude::ep_isnan(best) && (op == EP_SCAN_MAX ? x >= best : x <= best);
}

// --- unique ---

// The elements of SRC, or its slices, as rows of numbers.
template <class T>
using Rows = std::vector<std::vector<T>>;

template <class T>
Rows<T> rows_of(const Operand& src, int32_t axis) {
  Rows<T> rows(axis < 0 ? 0 : static_cast<size_t>(src.dim(axis)));
  for_each_index(src.dims(), [&](const int64_t* at) {
    if (axis < 0) return rows.push_back({src.get<T>(at)});
    rows[static_cast<size_t>(at[axis])].push_back(src.get<T>(at));
  });
  return rows;
}

template <class T>
bool row_less(const std::vector<T>& a, const std::vector<T>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), less<T>);
}

// `first`: the first row of each class of equal rows, in the order of the result. `inverse`: the class of each row.
struct Classes {
  std::vector<int64_t> first;
  std::vector<int64_t> inverse;
};

template <class T>
Classes classes_of(const Rows<T>& rows, int32_t order) {
  Classes classes;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto found = static_cast<int64_t>(classes.first.size());
    const bool neighbours = order == EP_UNIQUE_CONSECUTIVE;
    for (int64_t c = neighbours ? std::max(found - 1, int64_t{0}) : 0; c < found; ++c) {
      const size_t like = neighbours ? i - 1 : static_cast<size_t>(classes.first[static_cast<size_t>(c)]);
      if (rows[like] == rows[i]) found = c;
    }
    if (found == static_cast<int64_t>(classes.first.size())) classes.first.push_back(static_cast<int64_t>(i));
    classes.inverse.push_back(found);
  }
  if (order != EP_UNIQUE_SORTED) return classes;
  const auto row = [&](int64_t c) { return rows[static_cast<size_t>(classes.first[static_cast<size_t>(c)])]; };
  const auto sorted =
      sorted_positions(classes.first.size(), [&](int64_t a, int64_t b) { return row_less(row(a), row(b)); });
  Classes in_order = classes;
  for (size_t place = 0; place < sorted.size(); ++place) {
    in_order.first[place] = classes.first[static_cast<size_t>(sorted[place])];
    for (size_t i = 0; i < rows.size(); ++i) {
      if (classes.inverse[i] == sorted[place]) in_order.inverse[i] = static_cast<int64_t>(place);
    }
  }
  return in_order;
}

// Writes the list, then zeros.
void put_list(const Operand& operand, std::vector<int64_t> values) {
  if (!operand) return;
  values.resize(static_cast<size_t>(operand.dim(0)));
  const int64_t start = 0;
  put_line(operand, 0, &start, values);
}

}  // namespace

void run_scan(Call& call) {
  const Operand src = call[EP_ROLE_SRC];
  const Operand dst = call[EP_ROLE_DST];
  const Operand positions = call[EP_ROLE_DST_INDICES];
  const ep_scan_attributes& at = call.desc.attributes.scan;
  with_compute_type(src.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_line(src, at.axis, [&](const int64_t* start) {
      std::vector<T> line = line_of<T>(src, at.axis, start);
      std::vector<int64_t> places(line.size());
      const size_t n = line.size();
      T sum = 0;
      if constexpr (prelude::is_float<T>) {
        sum = neutral(at.op, sum);
      } else {
        sum = neutral_integer<T>(at.op, dtype_info(src.dtype()).bits);
      }
      int64_t place = -1;
      for (size_t step = 0; step < n; ++step) {
        const size_t i = at.reverse ? n - 1 - step : step;
        const T x = line[i];
        if (place < 0 || replaces(at.op, x, sum)) place = static_cast<int64_t>(i);
        const T before = sum;
        sum = combined(at.op, sum, x);
        line[i] = at.exclusive ? before : sum;
        places[i] = place;
      }
      put_line(dst, at.axis, start, line);
      put_line(positions, at.axis, start, places);
    });
  });
}

namespace {

void run_sorted(Call& call, int32_t axis, bool descending) {
  const Operand src = call[EP_ROLE_SRC];
  with_compute_type(src.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_line(src, axis, [&](const int64_t* start) {
      const std::vector<T> line = line_of<T>(src, axis, start);
      const std::vector<int64_t> positions = sorted_positions(line.size(), [&](int64_t i, int64_t j) {
        const T x = line[static_cast<size_t>(i)];
        const T y = line[static_cast<size_t>(j)];
        return descending ? less(y, x) : less(x, y);
      });
      std::vector<T> sorted;
      for (int64_t position : positions) sorted.push_back(line[static_cast<size_t>(position)]);
      put_line(call[EP_ROLE_DST], axis, start, sorted);
      put_line(call[EP_ROLE_DST_INDICES], axis, start, positions);
    });
  });
}

}  // namespace

void run_sort(Call& call) {
  run_sorted(call, call.desc.attributes.sort.axis, call.desc.attributes.sort.descending != 0);
}

void run_top_k(Call& call) {
  run_sorted(call, call.desc.attributes.top_k.axis, call.desc.attributes.top_k.largest != 0);
}

void run_unique(Call& call) {
  const Operand src = call[EP_ROLE_SRC];
  const Operand dst = call[EP_ROLE_DST];
  const int32_t axis = call.desc.attributes.unique.axis;
  const int32_t order = call.desc.attributes.unique.order;
  with_compute_type(src.dtype(), [&](auto type) {
    using T = decltype(type);
    const Rows<T> rows = rows_of<T>(src, axis);
    const Classes classes = classes_of(rows, order);
    std::vector<int64_t> counts(classes.first.size());
    for (int64_t c : classes.inverse) ++counts[static_cast<size_t>(c)];
    std::vector<size_t> taken(rows.size());
    for_each_index(dst.dims(), [&](const int64_t* at) {
      const auto place = static_cast<size_t>(at[std::max(axis, 0)]);
      if (place >= classes.first.size()) return dst.set<T>(at, 0);
      dst.set<T>(at, rows[static_cast<size_t>(classes.first[place])][taken[place]++]);
    });
    put_list(call[EP_ROLE_DST_COUNT], {static_cast<int64_t>(classes.first.size())});
    put_list(call[EP_ROLE_DST_INDICES], classes.first);
    put_list(call[EP_ROLE_DST_INVERSE], classes.inverse);
    put_list(call[EP_ROLE_DST_COUNTS], counts);
  });
}

void run_nonzero(Call& call) {
  const Operand src = call[EP_ROLE_SRC];
  const Operand dst = call[EP_ROLE_DST];
  int64_t count = 0;
  for_each_index(dst.dims(), [&](const int64_t* at) { dst.set<int64_t>(at, 0); });
  for_each_index(src.dims(), [&](const int64_t* index) {
    const bool is_zero = with_compute_type(src.dtype(), [&](auto type) { return src.get<decltype(type)>(index) == 0; });
    if (is_zero || count++ >= dst.dim(0)) return;
    for (int64_t axis = 0; axis < src.rank(); ++axis) {
      const int64_t at[] = {count - 1, axis};
      dst.set(at, index[axis]);
    }
  });
  put_list(call[EP_ROLE_DST_COUNT], {count});
}

void run_one_hot(Call& call) {
  const Operand src = call[EP_ROLE_SRC];
  const Operand dst = call[EP_ROLE_DST];
  const int32_t axis = call.desc.attributes.one_hot.axis;
  for_each_index(dst.dims(), [&](const int64_t* at) {
    int64_t from[EP_MAX_RANK];
    std::copy_n(at, axis, from);
    std::copy_n(at + axis + 1, dst.rank() - axis - 1, from + axis);
    const auto given = src.get<int64_t>(from);
    const int64_t position = given < 0 ? given + dst.dim(axis) : given;
    with_compute_type(dst.dtype(),
                      [&](auto type) { dst.set(at, call.parameter<decltype(type)>(position == at[axis] ? 1 : 0)); });
  });
}

}  // namespace tenon::reference
