// matmul of any dtype and strides: blocks of the result, divided among threads. A thread packs the columns of b that
// its blocks share, and the rows of a block, in the type of the sums. So every kernel reads dense numbers, whatever the
// dtype and strides of the operands. The order in which the products of an element are added depends on k alone.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "providers/cpu/blocked_matmul/blocked_matmul.h"
#include "providers/cpu/blocked_matmul/kernel.h"
#include "providers/cpu/onednn/onednn.h"
#include "providers/cpu/plain/epilogue.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t block_rows = 192;
constexpr int64_t most_columns = 512;        // columns of a block
constexpr int64_t depth = 256;               // products that are added before their sum is added to the result
constexpr int64_t most_depth = 32 * depth;   // rows of b that are packed at a time
constexpr int64_t slab_bytes = 2048 * 1024;  // packed columns of b
constexpr int64_t few_rows = 24;             // rows of a for which packing b costs more than it saves

int64_t rounded(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
int64_t pieces(int64_t n, int64_t each) { return (n + each - 1) / each; }

// The matrices of one operand, and their conversion to and from T.
struct Matrix {
  int32_t index = -1;  // operand number; -1 if absent
  int32_t size = 0;    // bytes per element
  bool same = false;   // elements are T
  bool constant = false;
  int64_t row = 0, column = 0;
  Axes batch;
  ConvertFunction convert = nullptr;  // reads elements, or writes them if this is the result
  ConvertFunction move = nullptr;

  Matrix(const ep_primitive_desc& desc, int32_t role) : index(find_operand(desc, role)) {
    if (index < 0) return;
    const ep_operand_desc& operand = desc.operands[index];
    size = dtype_size(operand.dtype);
    constant = (operand.flags & EP_OPERAND_FLAG_CONSTANT) != 0;
    row = operand.strides[operand.rank - 2];
    column = operand.strides[operand.rank - 1];
    for (int32_t axis = 0; axis < operand.rank - 2; ++axis) batch.add(operand.dims[axis], operand.strides[axis]);
    move = move_elements(size);
  }
  char* at(const ep_launch& launch, int64_t matrix, int64_t i, int64_t j) const {
    return address_of(launch.operands[index]) + (batch.offset(matrix) + i * row + j * column) * size;
  }
};

template <class T>
class BlockedMatmulPrimitive final : public ep_primitive {
 public:
  BlockedMatmulPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        kernels_(block_kernels<T>(on.simd)),
        c_(desc, EP_ROLE_DST),
        a_(desc, EP_ROLE_SRC),
        b_(desc, EP_ROLE_SRC_B),
        bias_(desc, EP_ROLE_BIAS) {
    for (Matrix* matrix : {&a_, &b_, &bias_, &c_}) choose_conversion(on.simd, matrix, matrix == &c_);
    const ep_operand_desc& dst = desc.operands[c_.index];
    m_ = dst.dims[dst.rank - 2];
    n_ = dst.dims[dst.rank - 1];
    k_ = desc.operands[a_.index].dims[dst.rank - 1];
    direct_ = c_.same && c_.column == 1 && desc.epilogue_count == 0;
    packs_ = is_packed();
    if (m_ <= few_rows && (packs_ || b_.column == 1)) {
      thin_ = thin_kernel<T>(on.simd, desc.operands[b_.index].dtype);
    }
    cut(on.threads);
    room_ = rooms(nullptr, nullptr);
  }

  // A constant matrix is packed once, in strips of its own dtype. Matrices of a batch may differ.
  bool is_packed() const { return b_.constant && b_.batch.count() == 1 && b_.size <= static_cast<int32_t>(sizeof(T)); }
  void describe(ep_primitive_info* info) const {
    if (!packs_) return;
    info->pack_operand = 1 + static_cast<uint32_t>(b_.index);
    info->pack_bytes = static_cast<uint64_t>(rounded(n_, width()) * k_ * b_.size);
    info->pack_layout = 0x626c6b0000ULL + static_cast<uint64_t>(width());  // "blk"
  }
  // [strips, k, columns of a strip]
  ep_status pack(char* dst, const char* src, ep_error**) override {
    std::fill_n(dst, rounded(n_, width()) * k_ * b_.size, char{0});
    for (int64_t j = 0; j < n_; j += width()) {
      char* const to = dst + j * k_ * b_.size;
      const char* const from = src + j * b_.column * b_.size;
      const int64_t n = std::min(width(), n_ - j);
      if (b_.row == 1) {
        for (int64_t q = 0; q < n; ++q) b_.move(to + q * b_.size, width(), from + q * b_.column * b_.size, 1, k_);
      } else {
        for (int64_t p = 0; p < k_; ++p) {
          b_.move(to + p * width() * b_.size, 1, from + p * b_.row * b_.size, b_.column, n);
        }
      }
    }
    return EP_STATUS_OK;
  }

  uint64_t workspace(const ep_shape*) const override { return static_cast<uint64_t>(threads_ * room_); }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const int64_t tall = pieces(m_, rows_), wide = pieces(n_, columns_);
    const int64_t units = c_.batch.count() * tall * wide;
    constexpr int64_t per_nanosecond = 96 / static_cast<int64_t>(sizeof(T));  // multiply-adds, about, of one thread
    parallel(threads_, c_.batch.count() * m_ * n_ * k_ / per_nanosecond, [&](int32_t part, int32_t parts) {
      Room room;
      rooms(address_of(launch.workspace) + runner() * room_, &room);
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        run_block(launch, unit / tall / wide, unit % tall * rows_, unit / tall % wide * columns_, &room);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  // The buffers of one thread.
  struct Room {
    T *slab = nullptr, *rows = nullptr, *sums = nullptr, *line = nullptr, *lines = nullptr;
    char* raw = nullptr;
    const char* packed = nullptr;  // the source of `slab`
    std::vector<char> epilogue;
  };
  // Rows of numbers, and the distance between their elements.
  struct Left {
    const T* data;
    int64_t row, column;
  };
  // Strips of b: column s of b, the first of a strip, begins at s * strip.
  struct Right {
    const T* data;
    int64_t strip;
  };

  int64_t width() const { return kernels_.width; }

  void choose_conversion(SimdLevel level, Matrix* matrix, bool writes) const {
    if (matrix->index < 0) return;
    const int32_t dtype = desc_.operands[matrix->index].dtype;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int32_t compute = sizeof(T) == 8 ? EP_DTYPE_f64 : EP_DTYPE_f32;
      matrix->same = dtype == compute;
      matrix->convert = writes ? narrow(compute, dtype, level) : widen(dtype, level);
    } else {
      constexpr auto size = static_cast<int32_t>(sizeof(T));
      matrix->same = matrix->size == size;
      matrix->convert = writes ? integer_write(level, size, dtype) : integer_read(level, dtype, size);
    }
  }

  // Divides the result into blocks, at least one per thread if the blocks stay large enough.
  void cut(int32_t threads) {
    threads_ = threads;
    const int64_t deep = std::min(k_, most_depth);
    const int64_t fits = slab_bytes / (deep * static_cast<int64_t>(sizeof(T))) / width() * width();
    // A matrix that is read in place is read in long rows, as long as the sums fit in the L1 cache.
    const int64_t most = thin_ != nullptr ? 4 * most_columns / std::clamp<int64_t>(m_, 1, 4)
                                          : std::clamp(fits, 2 * width(), std::max(most_columns, 2 * width()));
    columns_ = rounded(std::clamp<int64_t>(n_, 1, most), width());
    // Blocks of short sums have few rows, so that the result is written in long rows.
    const int64_t tallest = rounded(block_rows * std::min(k_, depth) / depth, 12);
    rows_ = std::clamp<int64_t>(m_, 1, std::max<int64_t>(tallest, 12));
    const int64_t matrices = std::max<int64_t>(1, c_.batch.count());
    if (matrices * pieces(m_, rows_) * pieces(n_, columns_) >= threads) return;
    const int64_t wanted = pieces(threads, matrices);
    columns_ = std::min(columns_, rounded(pieces(n_, wanted), 2 * width()));
    const int64_t tall = pieces(wanted, std::max<int64_t>(1, pieces(n_, columns_)));
    rows_ = std::min(rows_, std::max<int64_t>(48, pieces(m_, tall)));
  }

  // Returns the bytes of one thread's buffers, and lays them out from `base` on.
  int64_t rooms(char* base, Room* room) const {
    int64_t bytes = 0;
    const auto take = [&](int64_t count, auto* Room::*buffer, int64_t size) {
      if (room != nullptr)
        room->*buffer = reinterpret_cast<std::remove_reference_t<decltype(room->*buffer)>>(base + bytes);
      bytes += rounded(count * size, 64);
    };
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    const int64_t longest = std::max({columns_, rows_, depth});
    take(thin_ != nullptr ? 0 : columns_ * std::min(k_, most_depth), &Room::slab, size);
    take(rows_ * depth, &Room::rows, size);
    take(direct_ ? 0 : rows_ * columns_, &Room::sums, size);
    take(longest, &Room::line, size);
    take(width() * depth, &Room::lines, size);
    take(longest, &Room::raw, 8);
    return bytes;
  }

  // Reads n elements, `stride` apart, into `to`.
  void read(const Matrix& matrix, T* to, const char* from, int64_t stride, int64_t n, char* raw) const {
    if (matrix.same) return matrix.move(to, 1, from, stride, n);
    if (stride != 1) {
      matrix.move(raw, 1, from, stride, n);
      from = raw;
    }
    matrix.convert(to, 1, from, 1, n);
  }

  // Rows [i, i + m) and columns [p, p + k) of a.
  Left left(const ep_launch& launch, int64_t matrix, int64_t i, int64_t m, int64_t p, int64_t k, Room* room) const {
    const char* const from = a_.at(launch, matrix, i, p);
    if (a_.same && (a_.column == 1 || n_ <= width())) return {reinterpret_cast<const T*>(from), a_.row, a_.column};
    if (a_.row == 1 && a_.column != 1) {
      for (int64_t q = 0; q < k; ++q) read(a_, room->rows + q * m, from + q * a_.column * a_.size, 1, m, room->raw);
      return {room->rows, 1, m};
    }
    for (int64_t r = 0; r < m; ++r) {
      read(a_, room->rows + r * k, from + r * a_.row * a_.size, a_.column, k, room->raw);
    }
    return {room->rows, k, 1};
  }

  // Rows [p, p + k) of the strips of b that hold columns [j, j + n).
  Right right(const ep_launch& launch, int64_t matrix, int64_t p, int64_t k, int64_t j, int64_t n, Room* room) const {
    if (packs_) {
      const char* const from = address_of(launch.operands[b_.index]) + (j * k_ + p * width()) * b_.size;
      if (b_.same) return {reinterpret_cast<const T*>(from), k_};
      if (room->packed == from) return {room->slab, k};
      for (int64_t s = 0; s < n; s += width()) {
        b_.convert(room->slab + s * k, 1, from + s * k_ * b_.size, 1, k * width());
      }
      room->packed = from;
      return {room->slab, k};
    }
    const char* const from = b_.at(launch, matrix, p, j);
    if (room->packed != from) lay_out(from, k, n, room);
    room->packed = from;
    return {room->slab, k};
  }

  // Packs k rows of n columns into strips.
  void lay_out(const char* from, int64_t k, int64_t n, Room* room) const {
    if (b_.row == 1 && b_.column != 1) {
      for (int64_t s = 0; s < n; s += width()) lay_out_columns(from + s * b_.column * b_.size, k, n - s, s, room);
      return;
    }
    const int64_t all = rounded(n, width());
    std::fill(room->line + n, room->line + all, T{0});
    for (int64_t p = 0; p < k; ++p) {
      read(b_, room->line, from + p * b_.row * b_.size, b_.column, n, room->raw);
      kernels_.spread(room->slab + p * width(), k * width(), room->line, all);
    }
  }
  // Packs one strip of a matrix whose columns are contiguous.
  void lay_out_columns(const char* from, int64_t k, int64_t n, int64_t s, Room* room) const {
    n = std::min(n, width());
    for (int64_t p = 0; p < k; p += depth) {
      const int64_t count = std::min(depth, k - p);
      T* const to = room->slab + s * k + p * width();
      if (n < width()) std::fill_n(to, count * width(), T{0});
      if (b_.same) {
        const T* const columns = reinterpret_cast<const T*>(from) + p;
        kernels_.transpose(to, width(), columns, b_.column, n, count);
        continue;
      }
      for (int64_t q = 0; q < n; ++q) {
        read(b_, room->lines + q * depth, from + (p + q * b_.column) * b_.size, 1, count, room->raw);
      }
      kernels_.transpose(to, width(), room->lines, depth, n, count);
    }
  }

  void run_block(const ep_launch& launch, int64_t matrix, int64_t i, int64_t j, Room* room) const {
    const int64_t m = std::min(rows_, m_ - i), n = std::min(columns_, n_ - j);
    T* const c = direct_ ? reinterpret_cast<T*>(c_.at(launch, matrix, i, j)) : room->sums;
    const int64_t c_row = direct_ ? c_.row : columns_;
    if (thin_ != nullptr) {
      multiply_in_place(launch, matrix, i, m, j, n, c, c_row, room);
    } else {
      multiply_strips(launch, matrix, i, m, j, n, c, c_row, room);
    }
    if (bias_.index >= 0) add_bias(launch, matrix, i, m, j, n, c, c_row, room);
    if (!direct_) store(launch, matrix, i, m, j, n, room);
  }

  // The bias is added to the sums, as all implementations do, so that the result does not depend on the implementation.
  void add_bias(const ep_launch& launch, int64_t matrix, int64_t i, int64_t m, int64_t j, int64_t n, T* c,
                int64_t c_row, Room* room) const {
    for (int64_t r = 0; r < m; ++r) {
      if (r == 0 || bias_.row != 0) {
        read(bias_, room->line, bias_.at(launch, matrix, i + r, j), bias_.column, n, room->raw);
      }
      T* const sums = c + r * c_row;
      for (int64_t q = 0; q < n; ++q) sums[q] = static_cast<T>(sums[q] + room->line[q]);
    }
  }

  // Sets c to the products of a block.
  void multiply_strips(const ep_launch& launch, int64_t matrix, int64_t i, int64_t m, int64_t j, int64_t n, T* c,
                       int64_t c_row, Room* room) const {
    for (int64_t first = 0; first < k_; first += most_depth) {
      const int64_t deep = std::min(most_depth, k_ - first);
      const Right columns = right(launch, matrix, first, deep, j, n, room);
      for (int64_t p = first; p < first + deep; p += depth) {
        StripProduct<T> strip{};
        strip.m = m;
        strip.k = std::min(depth, first + deep - p);
        strip.c_row = c_row;
        strip.b_row = width();
        strip.adds = p != 0;
        const Left rows = left(launch, matrix, i, m, p, strip.k, room);
        strip.a = rows.data;
        strip.a_row = rows.row;
        strip.a_column = rows.column;
        for (int64_t s = 0; s < n; s += width()) {
          strip.b = columns.data + s * columns.strip + (p - first) * width();
          strip.n = std::min(width(), n - s);
          strip.c = c + s;
          kernels_.product(strip);
        }
      }
    }
  }
  // Sets c to the products of few rows; b is read once.
  void multiply_in_place(const ep_launch& launch, int64_t matrix, int64_t i, int64_t m, int64_t j, int64_t n, T* c,
                         int64_t c_row, Room* room) const {
    for (int64_t r = 0; r < m; ++r) std::fill_n(c + r * c_row, n, T{0});
    for (int64_t p = 0; p < k_; p += depth) {
      ThinProduct<T> thin{};
      thin.m = m;
      thin.k = std::min(depth, k_ - p);
      thin.c_row = c_row;
      const Left rows = left(launch, matrix, i, m, p, thin.k, room);
      thin.a = rows.data;
      thin.a_row = rows.row;
      thin.a_column = rows.column;
      const int64_t each = packs_ ? width() : n;
      thin.b_row = packs_ ? width() : b_.row;
      for (int64_t s = 0; s < n; s += each) {
        thin.b = packs_ ? address_of(launch.operands[b_.index]) + ((j + s) * k_ + p * width()) * b_.size
                        : b_.at(launch, matrix, p, j);
        thin.n = std::min(each, n - s);
        thin.c = c + s;
        thin_(thin);
      }
    }
  }

  // Runs the epilogues over the sums of a block, and rounds them to the result.
  void store(const ep_launch& launch, int64_t matrix, int64_t i, int64_t m, int64_t j, int64_t n, Room* room) const {
    int64_t index[EP_MAX_RANK];
    for (int32_t axis = c_.batch.rank; axis-- > 0;) {
      index[axis] = matrix % c_.batch.dims[axis];
      matrix /= c_.batch.dims[axis];
    }
    int64_t batch = 0;
    for (int32_t axis = 0; axis < c_.batch.rank; ++axis) batch += index[axis] * c_.batch.strides[axis];
    char* const to = address_of(launch.operands[c_.index]) + (batch + i * c_.row + j * c_.column) * c_.size;
    index[c_.batch.rank + 1] = j;
    for (int64_t r = 0; r < m; ++r) {
      T* const sums = room->sums + r * columns_;
      index[c_.batch.rank] = i + r;
      if constexpr (std::is_floating_point_v<T>) {
        constexpr int32_t compute = sizeof(T) == 8 ? EP_DTYPE_f64 : EP_DTYPE_f32;
        apply_epilogues(desc_, device->simd, compute, launch, index, n, sums, &room->epilogue);
      }
      char* const row = to + r * c_.row * c_.size;
      if (c_.same) {
        c_.move(row, c_.column, sums, 1, n);
      } else if (c_.column == 1) {
        c_.convert(row, 1, sums, 1, n);
      } else {
        c_.convert(room->raw, 1, sums, 1, n);
        c_.move(row, c_.column, room->raw, 1, n);
      }
    }
  }

  ep_primitive_desc desc_;
  BlockKernels<T> kernels_;
  Matrix c_, a_, b_, bias_;
  int64_t m_ = 0, n_ = 0, k_ = 0;
  int64_t rows_ = 0, columns_ = 0;  // size of a block
  int32_t threads_ = 1;
  bool direct_ = false;           // the sums are the result
  bool packs_ = false;            // the host has packed b
  ThinKernel<T> thin_ = nullptr;  // for few rows: b is not packed
  int64_t room_ = 0;              // bytes per thread
};

template <class T>
ep_primitive* made(ep_device& device, const ep_primitive_desc& desc, ep_primitive_info* info) {
  auto* const primitive = make_primitive<BlockedMatmulPrimitive<T>>(device, device, desc);
  primitive->describe(info);
  return primitive;
}

}  // namespace

Refusal BlockedMatmul::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (is_dynamic(desc)) return Refusal::because("products in blocks need static dims");
  const ep_operand_desc& dst = desc.operands[0];
  const int32_t wide = wide_dtype(dst.dtype);
  if (wide == 0 || dst.dtype == EP_DTYPE_bool) return Refusal::because("no matmul on %s", dtype_name(dst.dtype));
  const bool floats = is_floating(dst.dtype);
  if (floats && desc.accumulate_dtype != 0 && desc.accumulate_dtype != wide) {
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
    if (operand.rank != dst.rank || operand.rank < 2) return Refusal::because("rank %d", operand.rank);
    if (wide_dtype(operand.dtype) != wide || operand.dtype == EP_DTYPE_bool)
      return Refusal::because("operand %u is %s, the result %s", i, dtype_name(operand.dtype), dtype_name(dst.dtype));
  }
  if (dst.role != EP_ROLE_DST || operand(desc, EP_ROLE_SRC) == nullptr || operand(desc, EP_ROLE_SRC_B) == nullptr) {
    return Refusal::because("an operand is missing");
  }
  if (operand(desc, EP_ROLE_SRC)->dims[dst.rank - 1] == 0) return Refusal::because("nothing to contract");
  if (desc.epilogue_count == 0) return {};
  if (!floats) return Refusal::because("epilogues on %s", dtype_name(dst.dtype));
  if (OneDnnMatmul::is_faster_apart(device, desc)) {
    return Refusal::because("oneDNN is faster if the host separates the epilogues over bf16");
  }
  return why_no_plain_epilogues(desc, device.simd, wide);
}

Refusal BlockedMatmul::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                            ep_primitive_info& info) {
  *out = with_sum_type(desc.operands[0].dtype, [&]<class T>() { return made<T>(device, desc, &info); });
  return {};
}

}  // namespace tenon::provider::cpu
