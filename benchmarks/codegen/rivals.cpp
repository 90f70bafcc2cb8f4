// Tenon's side of rivals.py, a library that Python loads with ctypes: rows of ops as compiled kernels and as our
// hand-written primitives, models, and the best copy. If a function returns null or a negative number, rivals_error()
// has the reason.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/peers/stream_copy.h"
#include "core/compile/compile.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "sdk/onnx/onnx.h"

namespace {

using tenon::Tensor;
using tenon::TensorList;

// The inputs of all rows. The mask has the shape of x.
struct Inputs {
  Tensor x, y, weight, bias, mask;
};

// A row: written in elementary ops for the compiler, and with our primitives.
struct Row {
  const char* name;
  Tensor (*elementary)(const Inputs& in);
  Tensor (*primitives)(const Inputs& in);
};

constexpr double kEpsilon = 1e-5;
const double kInfinity = std::numeric_limits<double>::infinity();

Tensor softmax_of(const Tensor& x) {
  const Tensor e = tenon::exp(x - tenon::amax(x, {-1}, true));
  return e / tenon::sum(e, {-1}, true);
}
Tensor gelu_of(const Tensor& x) { return 0.5 * x * (1.0 + tenon::erf(x * std::sqrt(0.5))); }
int64_t columns(const Inputs& in) { return in.x.dim(-1); }

constexpr Row kRows[] = {
    {"RMS norm",
     [](const Inputs& in) -> Tensor {
       return in.x * tenon::rsqrt(tenon::mean(tenon::square(in.x), {-1}, true) + kEpsilon) * in.weight;
     },
     [](const Inputs& in) -> Tensor { return tenon::rms_norm(in.x, {columns(in)}, in.weight, kEpsilon); }},
    {"layer norm",
     [](const Inputs& in) -> Tensor {
       const Tensor d = in.x - tenon::mean(in.x, {-1}, true);
       return d * tenon::rsqrt(tenon::mean(tenon::square(d), {-1}, true) + kEpsilon) * in.weight + in.bias;
     },
     [](const Inputs& in) -> Tensor { return tenon::layer_norm(in.x, {columns(in)}, in.weight, in.bias, kEpsilon); }},
    {"softmax", [](const Inputs& in) -> Tensor { return softmax_of(in.x); },
     [](const Inputs& in) -> Tensor { return tenon::softmax(in.x, -1); }},
    {"masked softmax", [](const Inputs& in) -> Tensor { return softmax_of(tenon::where(in.mask, in.x, -kInfinity)); },
     [](const Inputs& in) -> Tensor { return tenon::softmax(tenon::where(in.mask, in.x, -kInfinity), -1); }},
    {"GELU", [](const Inputs& in) -> Tensor { return gelu_of(in.x); },
     [](const Inputs& in) -> Tensor { return tenon::gelu(in.x); }},
    {"SwiGLU", [](const Inputs& in) -> Tensor { return in.x * tenon::sigmoid(in.x) * in.y; },
     [](const Inputs& in) -> Tensor { return tenon::silu(in.x) * in.y; }},
    {"bias + GELU + residual", [](const Inputs& in) -> Tensor { return gelu_of(in.x + in.bias) + in.y; },
     [](const Inputs& in) -> Tensor { return tenon::gelu(in.x + in.bias) + in.y; }},
};

// One side of a row, or a model with its inputs.
struct Side {
  std::function<TensorList()> call;
  TensorList results;
  tenon::onnx::Inputs inputs;  // for a model
};

std::string last_error;

template <class F>
auto guarded(F function, decltype(function()) otherwise) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& error) {
    last_error = error.what();
    return otherwise;
  }
}

Tensor borrowed(const void* data, const tenon::Dims& dims, tenon::DType dtype) {
  return Tensor::borrow(const_cast<void*>(data), dims, {}, dtype, [] {});
}

Inputs of_list(const TensorList& list) { return {list[0], list[1], list[2], list[3], list[4]}; }

tenon::CompileOptions options(bool fuse) {
  tenon::CompileOptions made;
  made.fuse = fuse;
  made.compile = tenon::Compiling::wait;
  return made;
}

}  // namespace

extern "C" {

TENON_API const char* rivals_error() { return last_error.c_str(); }

// The name of row `number`; null after the last row.
TENON_API const char* rivals_row(size_t number) { return number < std::size(kRows) ? kRows[number].name : nullptr; }

// `inputs`: x and y of rows x columns, weight and bias of columns, f32, and the mask, bool. The caller keeps them.
TENON_API Side* rivals_open(size_t number, bool compiled, const void* const* inputs, int64_t rows, int64_t columns) {
  return guarded(
      [&] {
        const tenon::Dims whole{rows, columns}, row{columns};
        const TensorList list{borrowed(inputs[0], whole, tenon::DType::f32),
                              borrowed(inputs[1], whole, tenon::DType::f32),
                              borrowed(inputs[2], row, tenon::DType::f32), borrowed(inputs[3], row, tenon::DType::f32),
                              borrowed(inputs[4], whole, tenon::DType::boolean)};
        const Row& row_of = kRows[number];
        if (!compiled) {
          return new Side{[list, &row_of] { return TensorList{row_of.primitives(of_list(list))}; }, {}, {}};
        }
        const auto function = tenon::compile(
            [&row_of](const TensorList& in) { return TensorList{row_of.elementary(of_list(in))}; }, options(true));
        return new Side{[list, function] { return function(list); }, {}, {}};
      },
      nullptr);
}

TENON_API Side* rivals_model(const char* path, bool fuse) {
  return guarded(
      [&] {
        tenon::onnx::Options options;
        options.fuse = fuse;
        options.compile = tenon::Compiling::wait;
        Side* side = new Side;
        side->call = [model = tenon::onnx::load(path, options), side] { return model.run(side->inputs); };
        return side;
      },
      nullptr);
}

// An input of a model: f32, or i64 if `integers`.
TENON_API int rivals_input(Side* side, const char* name, bool integers, const int64_t* dims, size_t rank,
                           const void* data) {
  return guarded(
      [&] {
        tenon::Dims made;
        for (size_t i = 0; i < rank; ++i) made.push_back(dims[i]);
        side->inputs[name] = borrowed(data, made, integers ? tenon::DType::i64 : tenon::DType::f32);
        return 0;
      },
      -1);
}

// Seconds for `count` calls, each waited for; negative if one failed.
TENON_API double rivals_run(Side* side, int64_t count) {
  return guarded(
      [&] {
        const auto begin = std::chrono::steady_clock::now();
        for (int64_t i = 0; i < count; ++i) {
          side->results = side->call();
          for (const Tensor& result : side->results) result.wait();
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      },
      -1.0);
}

// Copies the first result of the last call to `data`.
TENON_API int rivals_result(const Side* side, float* data) {
  return guarded([&] { return side->results.at(0).copy_to_host(data), 0; }, -1);
}

TENON_API void rivals_close(Side* side) { delete side; }

// Seconds for `count` copies of `bytes` with stream_copy.
TENON_API double rivals_copy(void* to, const void* from, size_t bytes, int threads, int64_t count) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) tenon::bench::stream_copy(to, from, bytes, threads);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // extern "C"
