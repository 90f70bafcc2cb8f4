// Recurrent layers on every dispatch target against the reference in double: widths and depths that end within a vector
// and within a panel, one row and many, weights that are multiplied as they lie, packed ones and constant ones, strided
// weights, all float dtypes; NaN and denormals.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "primitives/dtype/convert.h"
#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

using Numbers = std::vector<double>;

struct Layer {
  int32_t cell;
  int32_t flags;
  int64_t gates;
};
constexpr Layer layers[] = {{EP_CELL_TANH, 0, 1},
                            {EP_CELL_RELU, 0, 1},
                            {EP_CELL_LSTM, EP_RECURRENT_FLAG_TORCH, 4},
                            {EP_CELL_LSTM, EP_RECURRENT_FLAG_COUPLED | EP_RECURRENT_FLAG_REVERSE, 4},
                            {EP_CELL_GRU, 0, 3},
                            {EP_CELL_GRU, EP_RECURRENT_FLAG_TORCH | EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET, 3}};

struct Sizes {
  int64_t steps, batch, inputs, width;
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

class Recurrent : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  // Numbers that `T` represents.
  template <class T>
  std::vector<T> random(int64_t count) {
    std::vector<T> values;
    std::uniform_real_distribution<double> distribution(-0.5, 0.5);
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(distribution(generator_)));
    return values;
  }

  // One layer in double: [steps, batch, width] states.
  template <class T>
  static Numbers expected(const Layer& layer, const Sizes& s, const std::vector<T>& x, const std::vector<T>& w,
                          const std::vector<T>& r, const std::vector<T>& bias, const std::vector<T>& first) {
    const auto at = [](const auto& list, int64_t i) { return static_cast<double>(list[static_cast<size_t>(i)]); };
    const bool torch = (layer.flags & EP_RECURRENT_FLAG_TORCH) != 0;
    Numbers h, c(static_cast<size_t>(s.batch * s.width)), out(static_cast<size_t>(s.steps * s.batch * s.width));
    for (int64_t i = 0; i < s.batch * s.width; ++i) h.push_back(at(first, i));
    for (int64_t step = 0; step < s.steps; ++step) {
      const int64_t time = (layer.flags & EP_RECURRENT_FLAG_REVERSE) != 0 ? s.steps - 1 - step : step;
      Numbers next = h;
      for (int64_t b = 0; b < s.batch; ++b) {
        const auto state = [&](int64_t p) { return at(h, b * s.width + p); };
        const auto from_input = [&](int64_t block, int64_t j) {
          double sum = at(bias, block * s.width + j);
          for (int64_t p = 0; p < s.inputs; ++p)
            sum += at(x, (time * s.batch + b) * s.inputs + p) * at(w, (block * s.width + j) * s.inputs + p);
          return sum;
        };
        const auto from_state = [&](int64_t block, int64_t j, const auto& of) {
          double sum = 0;
          for (int64_t p = 0; p < s.width; ++p) sum += of(p) * at(r, (block * s.width + j) * s.width + p);
          return sum;
        };
        const auto both = [&](int64_t block, int64_t j) { return from_input(block, j) + from_state(block, j, state); };
        for (int64_t j = 0; j < s.width; ++j) {
          double& result = next[static_cast<size_t>(b * s.width + j)];
          if (layer.cell == EP_CELL_TANH) {
            result = std::tanh(both(0, j));
          } else if (layer.cell == EP_CELL_RELU) {
            const double sum = both(0, j);
            result = sum < 0 ? 0 : sum;
          } else if (layer.cell == EP_CELL_LSTM) {  // i o f c, or i f c o
            const double i = logistic(both(0, j)), o = logistic(both(torch ? 3 : 1, j));
            const bool coupled = (layer.flags & EP_RECURRENT_FLAG_COUPLED) != 0;
            const double f = coupled ? 1 - i : logistic(both(torch ? 1 : 2, j));
            double& cell = c[static_cast<size_t>(b * s.width + j)];
            cell = f * cell + i * std::tanh(both(torch ? 2 : 3, j));
            result = o * std::tanh(cell);
          } else {  // z r h, or r z h
            const auto reset = [&](int64_t p) { return logistic(both(torch ? 0 : 1, p)); };
            const double z = logistic(both(torch ? 1 : 0, j));
            const bool linear = (layer.flags & EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET) != 0;
            const double rest = linear ? reset(j) * from_state(2, j, state)
                                       : from_state(2, j, [&](int64_t p) { return reset(p) * state(p); });
            result = (1 - z) * std::tanh(from_input(2, j) + rest) + z * state(j);
          }
        }
      }
      h = next;
      std::copy(h.begin(), h.end(), out.begin() + time * s.batch * s.width);
    }
    return out;
  }

  enum class Weights : uint8_t { plain, transposed, constant };

  // Runs the layer on operands of `dtype`, which T stores.
  template <class T>
  std::vector<T> run(const Layer& layer, const Sizes& s, int32_t dtype, std::vector<T> x, std::vector<T> w,
                     std::vector<T> r, std::vector<T> bias, std::vector<T> first, Weights weights) {
    const int64_t rows = layer.gates * s.width;
    std::vector<T> dst(static_cast<size_t>(s.steps * s.batch * s.width));
    const auto weight = [&](int32_t role, int64_t depth, std::vector<T>* values) {
      ep_operand_desc whole = dense(role, dtype, {rows, depth});
      if (weights == Weights::constant) whole.flags |= EP_OPERAND_FLAG_CONSTANT;
      if (weights != Weights::transposed) return whole;
      const std::vector<T> given = *values;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t p = 0; p < depth; ++p)
          (*values)[static_cast<size_t>(p * rows + i)] = given[static_cast<size_t>(i * depth + p)];
      }
      return strided(role, dtype, {rows, depth}, {1, rows});
    };
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_recurrent,
                   {dense(EP_ROLE_DST, dtype, {s.steps, s.batch, s.width}),
                    dense(EP_ROLE_SRC, dtype, {s.steps, s.batch, s.inputs}), weight(EP_ROLE_WEIGHT, s.inputs, &w),
                    dense(EP_ROLE_BIAS, dtype, {rows}), weight(EP_ROLE_RECURRENT_WEIGHT, s.width, &r),
                    dense(EP_ROLE_HIDDEN, dtype, {s.batch, s.width})});
    desc.attributes.recurrent = {layer.cell, layer.flags, 0};
    EXPECT_EQ(run_once(*cpu_, desc, {dst.data(), x.data(), w.data(), bias.data(), r.data(), first.data()}).status,
              EP_STATUS_OK)
        << cpu_->host.sentence();
    return dst;
  }

  template <class T>
  void check(const Layer& layer, const Sizes& s, Weights weights) {
    SCOPED_TRACE(testing::Message() << "cell " << layer.cell << ", flags " << layer.flags << ", " << s.steps
                                    << " steps of " << s.batch << ", " << s.inputs << " inputs, width " << s.width
                                    << ", " << sizeof(T) << " bytes"
                                    << ", weights " << static_cast<int>(weights));
    constexpr int32_t kDType = sizeof(T) == 4 ? EP_DTYPE_f32 : EP_DTYPE_f64;
    const int64_t rows = layer.gates * s.width;
    const auto x = random<T>(s.steps * s.batch * s.inputs), w = random<T>(rows * s.inputs),
               r = random<T>(rows * s.width), bias = random<T>(rows), first = random<T>(s.batch * s.width);
    const std::vector<T> got = run(layer, s, kDType, x, w, r, bias, first, weights);
    const Numbers want = expected(layer, s, x, w, r, bias, first);
    double greatest = 1;  // results of relu grow
    for (const double value : want) greatest = std::max(greatest, std::fabs(value));
    const double most = (sizeof(T) == 4 ? 2e-6 : 4e-15) * static_cast<double>(s.steps + 4) * greatest;
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(static_cast<double>(got[i]), want[i], most) << "number " << i;
  }

  std::mt19937 generator_{11};
  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(Recurrent, OfManySizes) {
  for (const Layer& layer : layers) {
    for (const Sizes& s : {Sizes{1, 1, 5, 3},
                           {2, 1, 17, 33},
                           {1, 2, 64, 16},
                           {5, 1, 9, 130},
                           {3, 2, 31, 64},
                           {4, 3, 8, 65},
                           {2, 7, 40, 31},
                           {3, 17, 3, 20},
                           {2, 29, 70, 9}}) {
      for (const Weights weights : {Weights::plain, Weights::transposed, Weights::constant}) {
        check<float>(layer, s, weights);
        check<double>(layer, s, weights);
      }
    }
  }
}

// A layer of f16 or bf16 gives what a layer of f32 gives for the same numbers, rounded.
TEST_P(Recurrent, OfNarrowFloatsRoundsOnce) {
  for (const int32_t dtype : {EP_DTYPE_f16, EP_DTYPE_bf16}) {
    for (const Layer& layer : layers) {
      for (const Sizes& s : {Sizes{1, 1, 19, 35}, {3, 5, 19, 35}}) {
        const int64_t rows = layer.gates * s.width;
        const auto narrow = [&](int64_t count) {
          std::vector<uint16_t> bits;
          for (const float value : random<float>(count)) {
            bits.push_back(static_cast<uint16_t>(encode_float(static_cast<DType>(dtype), value)));
          }
          return bits;
        };
        const auto wide = [&](const std::vector<uint16_t>& bits) {
          std::vector<float> values;
          for (const uint16_t each : bits) {
            values.push_back(static_cast<float>(decode_float(static_cast<DType>(dtype), each)));
          }
          return values;
        };
        const auto x = narrow(s.steps * s.batch * s.inputs), w = narrow(rows * s.inputs), r = narrow(rows * s.width),
                   bias = narrow(rows), first = narrow(s.batch * s.width);
        const std::vector<uint16_t> got = run(layer, s, dtype, x, w, r, bias, first, Weights::plain);
        const std::vector<float> want =
            run(layer, s, EP_DTYPE_f32, wide(x), wide(w), wide(r), wide(bias), wide(first), Weights::plain);
        const double step = dtype == EP_DTYPE_f16 ? 1e-3 : 8e-3;
        for (size_t i = 0; i < want.size(); ++i) {
          const double number = decode_float(static_cast<DType>(dtype), got[i]), exact = static_cast<double>(want[i]);
          ASSERT_NEAR(number, exact, step * (std::fabs(exact) + 1e-3)) << "cell " << layer.cell << ", number " << i;
        }
      }
    }
  }
}

TEST_P(Recurrent, KeepsNanAndDenormals) {
  for (const int64_t batch : {1, 3}) {
    const Sizes s = {2, batch, 4, 21};
    for (const Layer& layer : layers) {
      const int64_t rows = layer.gates * s.width;
      const auto w = random<float>(rows * s.inputs), r = random<float>(rows * s.width);
      std::vector<float> x = random<float>(s.steps * s.batch * s.inputs), bias(static_cast<size_t>(rows));
      const std::vector<float> first(static_cast<size_t>(s.batch * s.width));
      x[0] = NAN;
      const std::vector<float> got = run(layer, s, EP_DTYPE_f32, x, w, r, bias, first, Weights::plain);
      const size_t time = (layer.flags & EP_RECURRENT_FLAG_REVERSE) != 0 ? 0 : static_cast<size_t>(s.steps - 1);
      for (int64_t j = 0; j < s.width; ++j) {
        const size_t at = time * static_cast<size_t>(s.batch * s.width) + static_cast<size_t>(j);
        EXPECT_TRUE(std::isnan(got[at])) << "cell " << layer.cell << ", number " << j;
        if (batch > 1) {
          EXPECT_FALSE(std::isnan(got[at + static_cast<size_t>(s.width)])) << "cell " << layer.cell;
        }
      }
    }
    // relu of a denormal sum is that denormal.
    std::vector<float> x(static_cast<size_t>(s.steps * s.batch * s.inputs)), w(static_cast<size_t>(s.width * s.inputs));
    std::vector<float> r(static_cast<size_t>(s.width * s.width)), none(static_cast<size_t>(s.width));
    const std::vector<float> first(static_cast<size_t>(s.batch * s.width));
    for (size_t i = 0; i < x.size(); i += 4) x[i] = 1e-40F;
    for (size_t i = 0; i < w.size(); i += 4) w[i] = 1;
    const std::vector<float> got = run(layers[1], s, EP_DTYPE_f32, x, w, r, none, first, Weights::plain);
    for (const float value : got) EXPECT_EQ(value, 1e-40F);
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Recurrent, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
