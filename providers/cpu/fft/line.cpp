#include "providers/cpu/fft/line.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// The pair exp(i angle).
template <class T>
void put_root(std::vector<T>* pairs, int64_t at, double angle) {
  (*pairs)[static_cast<size_t>(2 * at)] = static_cast<T>(std::cos(angle));
  (*pairs)[static_cast<size_t>(2 * at + 1)] = static_cast<T>(std::sin(angle));
}

int64_t groups_of(int64_t count, int64_t lanes) { return (count + lanes - 1) / lanes; }

// Calls body(first) for the first line of each group of `lanes` lines. The last group repeats lines of the one before
// it if `count` is not a multiple; both are then run by the same thread.
template <class Body>
void for_groups(int64_t count, int64_t lanes, double group_time, int32_t threads, const Body& body) {
  const int64_t groups = groups_of(count, lanes), units = std::max<int64_t>(groups - 1, 1);
  const auto nanoseconds = static_cast<int64_t>(group_time * static_cast<double>(groups));
  parallel(threads, nanoseconds, [&](int32_t part, int32_t parts) {
    const int64_t begin = units * part / parts;
    const int64_t end = part + 1 == parts ? groups : units * (part + 1) / parts;
    for (int64_t group = begin; group < end; ++group) body(std::min(group * lanes, count - lanes));
  });
}

}  // namespace

double fft_call_time(int64_t n, int64_t lanes, int64_t number_size) {
  // Nanoseconds per element: loads and stores of a pass, and its butterfly.
  double each = 2.5;
  for (const int64_t radix : fft_radices(n)) {
    const double butterfly = radix == 8 ? 1.5 : radix == 4 ? 1 : radix == 2 ? 0.5 : 0.5 * static_cast<double>(radix);
    each += 1 + butterfly;
  }
  // Twice the time if the values do not fit in the L2 cache.
  constexpr int64_t cached = int64_t{1} << 20;
  return static_cast<double>(n) * each * (4 * n * lanes * number_size > cached ? 2 : 1);
}

template <class T>
std::vector<T> half_roots(int64_t half) {
  std::vector<T> roots(static_cast<size_t>(2 * (half / 2 + 1)));
  for (int64_t k = 0; k <= half / 2; ++k) {
    put_root(&roots, k, -std::numbers::pi * static_cast<double>(k) / static_cast<double>(half));
  }
  return roots;
}
template std::vector<float> half_roots(int64_t half);
template std::vector<double> half_roots(int64_t half);

namespace {

// Chooses the steps of a length that has radices.
void choose_steps(int64_t n, int64_t number_size, LineShape* shape) {
  const int64_t lanes = shape->lanes;
  shape->columns = n;
  shape->rows = 1;
  shape->time = shape->column_time = fft_call_time(n, lanes, number_size);
  shape->row_time = 0;
  const auto consider = [&](int64_t columns, int64_t rows) {
    if (columns < lanes || rows < lanes) return;
    const double of_columns = fft_call_time(columns, lanes, number_size);
    const double of_rows = fft_call_time(rows, lanes, number_size);
    const double time = static_cast<double>(groups_of(rows, lanes)) * of_columns +
                        static_cast<double>(groups_of(columns, lanes)) * of_rows;
    if (time >= shape->time) return;
    shape->columns = columns;
    shape->rows = rows;
    shape->time = time;
    shape->column_time = of_columns;
    shape->row_time = of_rows;
  };
  for (int64_t factor = 2; factor * factor <= n; ++factor) {
    if (n % factor != 0) continue;
    consider(factor, n / factor);
    consider(n / factor, factor);
  }
}

}  // namespace

int64_t LineShape::room(int32_t threads) const {
  return threads * group_room() + (rows == 1 ? 0 : columns * row_step()) + (padded == length ? 0 : 4 * padded);
}

LineShape line_shape(int64_t n, int64_t lanes, int64_t number_size) {
  LineShape best{};
  best.length = best.padded = n;
  best.lanes = lanes;
  if (n == 1 || !fft_radices(n).empty()) {
    choose_steps(n, number_size, &best);
    return best;
  }
  LineShape tried = best;
  for (int64_t fives = 1; fives <= 25; fives *= 5) {
    for (int64_t threes = fives; threes <= 27 * fives; threes *= 3) {
      tried.padded = threes;
      while (tried.padded < 2 * n - 1) tried.padded *= 2;
      choose_steps(tried.padded, number_size, &tried);
      if (best.time == 0 || tried.time < best.time) best = tried;
    }
  }
  best.time = 2 * best.time + 2 * static_cast<double>(best.padded);
  return best;
}

template <class T>
LinePlan<T>::LinePlan(SimdLevel level, const LineShape& shape) : kernels_(fft_kernels<T>(level)), shape_(shape) {
  const int64_t n = shape.length, padded = shape.padded;
  if (n == 1) return;
  columns_.emplace(shape.columns);
  if (shape.rows > 1) {
    rows_.emplace(shape.rows);
    factors_.resize(static_cast<size_t>(shape.columns * shape.row_step()));
    for (int64_t i = 0; i < shape.columns; ++i) {
      for (int64_t j = 0; j < shape.rows; ++j) {
        const double angle = -2 * std::numbers::pi * static_cast<double>(i * j) / static_cast<double>(padded);
        put_root(&factors_, i * shape.row_step() / 2 + j, angle);
      }
    }
  }
  if (padded == n) return;
  chirp_.resize(static_cast<size_t>(2 * n));
  std::vector<T> response(static_cast<size_t>(2 * padded));
  int64_t square = 0;  // k^2 modulo 2 n
  for (int64_t k = 0; k < n; ++k) {
    const double angle = std::numbers::pi * static_cast<double>(square) / static_cast<double>(n);
    put_root(&chirp_, k, -angle);
    put_root(&response, k, angle);
    if (k != 0) put_root(&response, padded - k, angle);
    square = (square + 2 * k + 1) % (2 * n);
  }
  filter_.resize(response.size());
  std::vector<T> room(static_cast<size_t>(shape.room(1)));
  smooth(response.data(), filter_.data(), false, 1 / static_cast<T>(padded), room.data(), 1);
}

template <class T>
void LinePlan<T>::transform(const T* src, T* dst, bool inverse, T scale, T* room, int32_t threads) const {
  if (shape_.length == 1) {
    dst[0] = scale * src[0];
    dst[1] = scale * src[1];
    return;
  }
  if (chirp_.empty()) return smooth(src, dst, inverse, scale, room, threads);
  convolve(src, dst, inverse, scale, room, threads);
}

template <class T>
void LinePlan<T>::smooth(const T* src, T* dst, bool inverse, T scale, T* room, int32_t threads) const {
  const auto lanes = static_cast<size_t>(kernels_.lanes);
  if (!rows_) {  // all lanes compute the same
    const std::vector<const T*> from(lanes, src);
    const std::vector<T*> to(lanes, dst);
    return kernels_.run(*columns_, {from.data(), to.data(), FftForm::COMPLEX, inverse, scale, room});
  }
  const int64_t columns = shape_.columns, rows = shape_.rows, step = shape_.row_step(), each = shape_.group_room();
  T* const between = room + threads * each;
  const auto place = [&] { return room + (threads == 1 ? 0 : runner() * each); };
  for_groups(rows, kernels_.lanes, shape_.column_time, threads, [&](int64_t first) {
    const T* const from = src + 2 * first;
    T* const to = between + 2 * first;
    kernels_.run(*columns_, {&from, &to, FftForm::COMPLEX, inverse, T{1}, place(), 2 * rows, step, nullptr,
                             factors_.data() + 2 * first});
  });
  for_groups(columns, kernels_.lanes, shape_.row_time, threads, [&](int64_t first) {
    std::vector<const T*> from(lanes);
    for (size_t l = 0; l < lanes; ++l) from[l] = between + (first + static_cast<int64_t>(l)) * step;
    T* const to = dst + 2 * first;
    kernels_.run(*rows_, {from.data(), &to, FftForm::COMPLEX, inverse, scale, place(), 0, 2 * columns});
  });
}

template <class T>
void LinePlan<T>::convolve(const T* src, T* dst, bool inverse, T scale, T* room, int32_t threads) const {
  const int64_t length = shape_.length, padded = shape_.padded;
  T* const values = room;
  T* const spectrum = room + 2 * padded;
  T* const rest = room + 4 * padded;
  kernels_.multiply(src, chirp_.data(), inverse, T{1}, values, length);
  std::fill(values + 2 * length, values + 2 * padded, T{0});
  smooth(values, spectrum, false, T{1}, rest, threads);
  kernels_.multiply(spectrum, filter_.data(), inverse, T{1}, spectrum, padded);
  smooth(spectrum, values, true, T{1}, rest, threads);
  kernels_.multiply(values, chirp_.data(), inverse, scale, dst, length);
}

template class LinePlan<float>;
template class LinePlan<double>;

}  // namespace tenon::provider::cpu
