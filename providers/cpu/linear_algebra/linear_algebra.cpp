// Copies each matrix of the batch to column-major order, computes, and copies back. Threads share the batch.
#include "providers/cpu/linear_algebra/linear_algebra.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

#include "providers/cpu/linear_algebra/blocked.h"
#include "providers/cpu/linear_algebra/lapack.h"
#include "providers/cpu/linear_algebra/least_squares.h"
#include "providers/cpu/linear_algebra/matrix.h"
#include "providers/cpu/linear_algebra/reflect.h"
#include "providers/cpu/linear_algebra/spectrum.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// Locks LAPACK if it serves only one thread at a time: an OpenBLAS built without threads (Debian's libopenblas0-serial)
// gives one buffer to two concurrent callers, and their results are wrong.
std::unique_lock<std::mutex> turn_in_lapack() {
  static std::mutex mutex;
  static const bool one_at_a_time = [] {
    const auto parallel = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_parallel"));
    return parallel != nullptr && parallel() == 0;
  }();
  return one_at_a_time ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

// Applies the sign rule of ep_api.h: in each column of `u`, the first element above half of the greatest is positive.
template <class T>
void set_signs(Matrix<T>* u, Matrix<T>* vh) {
  std::vector<T> signs(static_cast<size_t>(u->columns), T{1});
  for (int j = 0; j < u->columns; ++j) {
    T* const column = u->column(j);
    T greatest = 0;
    for (int i = 0; i < u->rows; ++i) greatest = std::max(greatest, std::abs(column[i]));
    int first = 0;
    while (first + 1 < u->rows && std::abs(column[first]) <= greatest / 2) ++first;
    if (column[first] >= 0) continue;
    signs[static_cast<size_t>(j)] = -1;
    for (int i = 0; i < u->rows; ++i) column[i] = -column[i];
  }
  for (int i = 0; vh != nullptr && i < vh->columns; ++i) {
    T* const column = vh->column(i);
    for (int j = 0; j < vh->rows; ++j) column[j] *= signs[static_cast<size_t>(j)];
  }
}

// One operand: the addresses of the matrices in its batch.
class Batch {
 public:
  // `sides` is the number of trailing axes that belong to one matrix, 0 to 2.
  Batch(const ep_launch& launch, const ep_primitive_desc& desc, int32_t role, int32_t batch_rank) {
    number_ = find_operand(desc, role);
    if (number_ < 0) return;
    const ep_operand_desc& given = desc.operands[number_];
    format_ = RowFormat(given.dtype);
    base_ = address_of(launch.operands[number_]);
    const OperandShape shape = shape_of(given, launch.shapes, static_cast<uint32_t>(number_));
    for (int32_t axis = 0; axis < shape.rank; ++axis) {
      (axis < batch_rank ? batch_ : sides_).add(shape.dims[axis], shape.strides[axis]);
    }
  }
  explicit operator bool() const { return number_ >= 0; }
  int32_t number() const { return number_; }
  int64_t count() const { return batch_.count(); }
  int rows() const { return static_cast<int>(sides_.dims[0]); }
  int columns() const { return static_cast<int>(sides_.dims[1]); }

  template <class T>
  Matrix<T> read(int64_t item, const Workers& workers) const {
    Matrix<T> matrix(rows(), columns());
    const char* from = base_ + batch_.offset(item) * format_.size;
    if (format_.same && sides_.count() > 0) {
      StridedCopy copy = {2, format_.size, {columns(), rows()}, {rows(), 1}, {sides_.strides[1], sides_.strides[0]}};
      strided_copy(copy, reinterpret_cast<char*>(matrix.data()), from, workers.simd, workers.count);
      return matrix;
    }
    for (int j = 0; j < matrix.columns; ++j) {
      format_.read(matrix.column(j), 1, from + j * sides_.strides[1] * format_.size, sides_.strides[0], matrix.rows);
    }
    return matrix;
  }
  // Writes the first columns of `matrix`.
  template <class T>
  void write(int64_t item, Matrix<T>* matrix, const Workers& workers) const {
    if (number_ < 0) return;
    char* to = base_ + batch_.offset(item) * format_.size;
    if (format_.same && sides_.count() > 0) {
      StridedCopy copy = {
          2, format_.size, {rows(), columns()}, {sides_.strides[0], sides_.strides[1]}, {1, matrix->stride()}};
      strided_copy(copy, to, reinterpret_cast<const char*>(matrix->data()), workers.simd, workers.count);
      return;
    }
    for (int j = 0; j < columns(); ++j) {
      format_.write(to + j * sides_.strides[1] * format_.size, sides_.strides[0], matrix->column(j), 1, rows());
    }
  }
  // Writes one number or a list.
  template <class T>
  void write_list(int64_t item, const T* values) const {
    if (number_ < 0) return;
    const int64_t count = sides_.rank == 0 ? 1 : sides_.dims[0];
    const int64_t stride = sides_.rank == 0 ? 1 : sides_.strides[0];
    format_.write(base_ + batch_.offset(item) * format_.size, stride, values, 1, count);
  }
  // Fills a floating-point result with 0.
  void clear(int64_t item) const {
    if (number_ < 0) return;
    const double zero = 0;
    const ConvertFunction write = narrow(EP_DTYPE_f64, format_.dtype);
    for (int64_t i = 0; i < sides_.count(); ++i) {
      write(base_ + (batch_.offset(item) + sides_.offset(i)) * format_.size, 1, &zero, 1, 1);
    }
  }
  void write_pivots(int64_t item, const std::vector<int>& pivots) const {
    auto* const to = reinterpret_cast<int32_t*>(base_) + batch_.offset(item);
    for (size_t i = 0; i < pivots.size(); ++i) to[static_cast<int64_t>(i) * sides_.strides[0]] = pivots[i];
  }

 private:
  int32_t number_ = -1;
  RowFormat format_;
  char* base_ = nullptr;
  Axes batch_;
  Axes sides_;
};

struct Operands {
  Batch src, right, dst, r, vectors, vectors_h, pivots, log;
  Workers workers;
};

// Solves triangle * x = b. Returns false if the diagonal of the triangle contains 0.
template <class T>
bool solve_triangle(bool upper, bool unit, Matrix<T>* a, Matrix<T>* b, const Workers& workers) {
  if constexpr (std::is_same_v<T, float>) {
    if (a->rows >= least_halved && b->columns >= least_halved_columns) {
      for (int i = 0; i < a->rows && !unit; ++i) {
        if (a->at(i, i) == 0) return false;
      }
      solve_by_halves(upper, unit, all_of(a), all_of(b), workers);
      return true;
    }
  }
  int info = 0;
  const int lda = a->stride();
  Lapack<T>::trtrs(upper ? "U" : "L", "N", unit ? "U" : "N", &a->rows, &b->columns, a->data(), &lda, b->data(), &lda,
                   &info, 1, 1, 1);
  return info == 0;
}

template <class T>
std::vector<int> factor(Matrix<T>* a, int* info, const Workers& workers) {
  std::vector<int> pivots(static_cast<size_t>(std::min(a->rows, a->columns)));
  if constexpr (std::is_same_v<T, float>) {
    if (std::min(a->rows, a->columns) >= least_halved) {
      *info = factor_by_halves(all_of(a), pivots.data(), workers);
      return pivots;
    }
  }
  const int lda = a->stride();
  Lapack<T>::getrf(&a->rows, &a->columns, a->data(), &lda, pivots.data(), info);
  return pivots;
}

template <class T>
bool solve(Matrix<T>* a, Matrix<T>* b, const Workers& workers) {
  int info = 0;
  const std::vector<int> pivots = factor(a, &info, workers);
  if (info != 0) return false;
  if constexpr (std::is_same_v<T, float>) {
    if (a->rows >= least_halved && b->columns >= least_halved_columns) {
      swap_rows(all_of(b), pivots.data(), a->rows, workers);
      return solve_triangle(false, true, a, b, workers) && solve_triangle(true, false, a, b, workers);
    }
  }
  const int lda = a->stride();
  Lapack<T>::getrs("N", &a->rows, &b->columns, a->data(), &lda, pivots.data(), b->data(), &lda, &info, 1);
  return info == 0;
}

template <class T>
bool cholesky(Matrix<T>* a, bool upper) {
  int info = 0;
  const int lda = a->stride();
  Lapack<T>::potrf(upper ? "U" : "L", &a->rows, a->data(), &lda, &info, 1);
  for (int j = 0; j < a->columns; ++j) {
    for (int i = upper ? j + 1 : 0; i < (upper ? a->rows : j); ++i) a->at(i, j) = 0;
  }
  return info == 0;
}

template <class T>
void write_determinant(const Operands& to, int64_t item, Matrix<T>* a) {
  int info = 0;
  const std::vector<int> pivots = factor(a, &info, to.workers);
  T sign = 1;
  T product = 1;
  T sum = 0;
  for (int i = 0; i < a->rows; ++i) {
    const T x = a->at(i, i);
    const T turn = pivots[static_cast<size_t>(i)] != i + 1 ? -1 : 1;
    sign *= turn * (x == 0 ? T{0} : std::copysign(T{1}, x));
    product *= turn * x;
    sum += std::log(std::abs(x));
  }
  to.dst.write_list(item, to.log ? &sign : &product);
  to.log.write_list(item, &sum);
}

// Writes R, the upper triangle of `a`.
template <class T>
void write_r(const Operands& to, int64_t item, Matrix<T>* a) {
  Matrix<T> r(to.dst.columns(), a->columns);
  for (int j = 0; j < a->columns; ++j) std::copy_n(a->column(j), std::min(j + 1, r.rows), r.column(j));
  to.r.write(item, &r, to.workers);
}

template <class T>
bool write_qr(const Operands& to, int64_t item, Matrix<T> a) {
  const int side = to.dst.columns();  // min(m, n), or m
  if constexpr (std::is_same_v<T, float>) {
    if (std::min(a.rows, a.columns) >= least_halved) {
      Matrix<T> q(a.rows, side);
      factor_by_blocks(all_of(&a), all_of(&q), to.workers);
      write_r(to, item, &a);
      to.dst.write(item, &q, to.workers);
      return true;
    }
    if (a.rows > 0 && a.rows <= most_reflected && a.columns <= most_reflected) {
      Matrix<T> q(a.rows, side);
      qr_kernel(to.workers.simd)({a.data(), q.data(), a.rows, a.columns, side});
      write_r(to, item, &a);
      to.dst.write(item, &q, to.workers);
      return true;
    }
  }
  std::vector<T> tau(static_cast<size_t>(std::min(a.rows, a.columns)) + 1);
  const int lda = a.stride();
  int info = 0;
  with_work<T>([&](T* work, int length) {
    Lapack<T>::geqrf(&a.rows, &a.columns, a.data(), &lda, tau.data(), work, &length, &info);
    return info;
  });
  write_r(to, item, &a);
  Matrix<T> q(a.rows, side);
  const int k = std::min(a.rows, a.columns);
  for (int j = 0; j < k; ++j) std::copy_n(a.column(j), a.rows, q.column(j));
  with_work<T>([&](T* work, int length) {
    Lapack<T>::orgqr(&q.rows, &q.columns, &k, q.data(), &lda, tau.data(), work, &length, &info);
    return info;
  });
  to.dst.write(item, &q, to.workers);
  return info == 0;
}

template <class T>
bool write_svd(const Operands& to, int64_t item, Matrix<T>* a) {
  const int k = std::min(a->rows, a->columns);
  std::vector<T> values(static_cast<size_t>(k));
  const bool vectors = static_cast<bool>(to.vectors);
  Matrix<T> u(vectors ? a->rows : 0, vectors ? k : 0);
  Matrix<T> vh(vectors ? k : 0, vectors ? a->columns : 0);
  if (!find_singular_values(a, &values, &u, &vh, to.workers)) return false;
  set_signs(&u, &vh);
  to.dst.write_list(item, values.data());
  to.vectors.write(item, &u, to.workers);
  to.vectors_h.write(item, &vh, to.workers);
  return true;
}

template <class T>
bool write_eigen(const Operands& to, int64_t item, Matrix<T>* a, bool upper) {
  std::vector<T> values(static_cast<size_t>(a->rows));
  const bool vectors = static_cast<bool>(to.vectors);
  if (!find_eigenvalues(a, upper, vectors, &values, to.workers)) return false;
  to.dst.write_list(item, values.data());
  if (vectors) set_signs<T>(a, nullptr);
  to.vectors.write(item, a, to.workers);
  return true;
}

template <class T>
class LinearAlgebraPrimitive final : public ep_primitive {
 public:
  explicit LinearAlgebraPrimitive(const ep_primitive_desc& desc) : desc_(desc) {}

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) override {
    const int32_t rank = operand(desc_, EP_ROLE_SRC)->rank - 2;
    const auto batch = [&](int32_t role) { return Batch(launch, desc_, role, rank); };
    Operands operands = {batch(EP_ROLE_SRC),        batch(EP_ROLE_SRC_B),       batch(EP_ROLE_DST),
                         batch(EP_ROLE_DST_R),      batch(EP_ROLE_DST_VECTORS), batch(EP_ROLE_DST_VECTORS_H),
                         batch(EP_ROLE_DST_PIVOTS), batch(EP_ROLE_DST_LOG),     {device->simd, 1}};
    const int64_t count = operands.src.count();
    if (count == 1) operands.workers.count = device->threads;
    const auto m = static_cast<int64_t>(operands.src.rows());
    const auto n = static_cast<int64_t>(operands.src.columns());
    std::atomic<int64_t> bad{count};
    const auto work =
        static_cast<int64_t>(std::min(static_cast<double>(count * m * n) * static_cast<double>(m + n), 1e15));
    const auto run_part = [&](int32_t part, int32_t parts) {
      for (int64_t item = count * part / parts; item < count * (part + 1) / parts; ++item) {
        if (run(operands, item)) continue;
        for (const Batch* each : {&operands.dst, &operands.vectors, &operands.vectors_h}) each->clear(item);
        int64_t before = bad;
        while (item < before && !bad.compare_exchange_weak(before, item)) {
        }
      }
    };
    if (count == 1) {
      run_part(0, 1);
    } else {
      parallel(device->threads, work, run_part);
    }
    if (bad == count) return EP_STATUS_OK;
    if (out_fault != nullptr) *out_fault = {launch.tag, EP_FAULT_BAD_MATRIX, operands.src.number(), bad, 0, 0};
    return EP_STATUS_FAULT;
  }

 private:
  // Returns false if the matrix is bad (EP_FAULT_BAD_MATRIX).
  bool run(const Operands& to, int64_t item) const {
    const ep_linear_algebra_attributes& attributes = desc_.attributes.linear_algebra;
    const bool upper = (attributes.flags & EP_LINEAR_FLAG_UPPER) != 0;
    Matrix<T> a = to.src.read<T>(item, to.workers);
    Matrix<T> b;
    Matrix<T> result;
    if (to.right) b = to.right.read<T>(item, to.workers);
    bool good = true;
    const std::unique_lock turn = turn_in_lapack();
    switch (attributes.op) {
      case EP_LINEAR_INVERSE:
        b = Matrix<T>(a.rows, a.rows);
        for (int i = 0; i < a.rows; ++i) b.at(i, i) = 1;
        [[fallthrough]];
      case EP_LINEAR_SOLVE:
        good = solve(&a, &b, to.workers);
        to.dst.write(item, &b, to.workers);
        return good;
      case EP_LINEAR_TRIANGULAR_SOLVE:
        good = solve_triangle(upper, (attributes.flags & EP_LINEAR_FLAG_UNIT) != 0, &a, &b, to.workers);
        to.dst.write(item, &b, to.workers);
        return good;
      case EP_LINEAR_LEAST_SQUARES:
        good = find_least_squares(&a, &b, &result, to.workers);
        if (good) to.dst.write(item, &result, to.workers);
        return good;
      case EP_LINEAR_CHOLESKY:
        good = cholesky(&a, upper);
        to.dst.write(item, &a, to.workers);
        return good;
      case EP_LINEAR_DETERMINANT:
      case EP_LINEAR_LOG_DETERMINANT: write_determinant(to, item, &a); return true;
      case EP_LINEAR_LU: {
        int info = 0;
        const std::vector<int> pivots = factor(&a, &info, to.workers);
        to.dst.write(item, &a, to.workers);
        to.pivots.write_pivots(item, pivots);
        return true;
      }
      case EP_LINEAR_QR: return write_qr(to, item, std::move(a));
      case EP_LINEAR_SVD: return write_svd(to, item, &a);
      default: return write_eigen(to, item, &a, upper);
    }
  }

  ep_primitive_desc desc_;
};

}  // namespace

Refusal LinearAlgebra::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_linear_algebra_attributes& attributes = desc.attributes.linear_algebra;
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  if (attributes.op < EP_LINEAR_SOLVE || attributes.op > EP_LINEAR_EIGEN)
    return Refusal::because("op %d", attributes.op);
  if ((attributes.flags & ~(EP_LINEAR_FLAG_UPPER | EP_LINEAR_FLAG_UNIT)) != 0)
    return Refusal::because("flags %d", attributes.flags);
  if (src == nullptr || src->rank < 2) return Refusal::because("it has no matrices");
  for (int32_t axis = src->rank - 2; axis < src->rank; ++axis) {
    if (src->dims[axis] > 30000)
      return Refusal::because("matrices with a side of %lld", static_cast<long long>(src->dims[axis]));
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const bool pivots = desc.operands[i].role == EP_ROLE_DST_PIVOTS;
    const int32_t dtype = desc.operands[i].dtype;
    if (pivots ? dtype != EP_DTYPE_i32 : dtype != src->dtype || !is_row_float(dtype))
      return Refusal::because("operand %u of %s", i, dtype_name(dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal LinearAlgebra::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  if (operand(desc, EP_ROLE_SRC)->dtype == EP_DTYPE_f64) {
    *out = make_primitive<LinearAlgebraPrimitive<double>>(device, desc);
  } else {
    *out = make_primitive<LinearAlgebraPrimitive<float>>(device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
