// Norms of training whose sums are computed in parts, on the fake driver and on a GPU, against sums in double.
#include <cmath>

#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

// Images [n, c, h, w] in rows or with channels innermost.
struct Images {
  int64_t n, c, plane;
  bool channels_last;

  size_t count() const { return static_cast<size_t>(n * c * plane); }
  std::vector<int64_t> strides() const {
    if (channels_last) return {c * plane, 1, c};
    return {c * plane, plane, 1};
  }
  ep_operand_desc operand(int32_t role) const { return strided(role, EP_DTYPE_f32, {n, c, plane}, strides()); }
  size_t channel(size_t at) const {
    const auto i = static_cast<int64_t>(at);
    return static_cast<size_t>(channels_last ? i % c : i / plane % c);
  }
};

constexpr double eps = 1e-3;

class CudaKernelsOfTraining : public FakeCuda {
 protected:
  // Values with a mean that is large compared with their deviation.
  static std::vector<float> far_from_zero(size_t count) {
    std::vector<float> x = random_floats(count, 7);
    for (float& value : x) value += 50;
    return x;
  }
  static std::vector<Images> all_images() {
    const int64_t plane = on_fake() ? 4973 : 49730;
    return {{6, 3, plane, false}, {6, 3, plane, true}, {2, 300, 5, false}};
  }
};

TEST_F(CudaKernelsOfTraining, BatchNormFindsItsStatisticsInParts) {
  for (const Images& images : all_images()) {
    const std::vector<float> x = far_from_zero(images.count());
    const auto channels = static_cast<size_t>(images.c);
    const std::vector<float> scale = random_floats(channels, 8);
    const std::vector<float> shift = random_floats(channels, 9);
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_batch_norm_training,
                   {images.operand(EP_ROLE_DST), dense(EP_ROLE_MEAN, EP_DTYPE_f32, {images.c}),
                    dense(EP_ROLE_INV_STD, EP_DTYPE_f32, {images.c}), images.operand(EP_ROLE_SRC),
                    dense(EP_ROLE_SCALE, EP_DTYPE_f32, {images.c}), dense(EP_ROLE_SHIFT, EP_DTYPE_f32, {images.c})});
    desc.attributes.batch_norm_training.axis = 1;
    ep_memory* result = with(std::vector<float>(x.size(), 77));
    ep_memory* mean = with(std::vector<float>(channels, 77));
    ep_memory* inv_std = with(std::vector<float>(channels, 77));
    ASSERT_EQ(
        launch(desc, {result, mean, inv_std, with(x), with(scale), with(shift)}, {{EP_DTYPE_f32, 0, {.f64 = eps}}}),
        EP_STATUS_OK)
        << cuda().host.sentence();
    std::vector<double> sums(channels), squares(channels);
    const double each = static_cast<double>(x.size()) / static_cast<double>(channels);
    for (size_t i = 0; i < x.size(); ++i) sums[images.channel(i)] += x[i] / each;
    for (size_t i = 0; i < x.size(); ++i) squares[images.channel(i)] += std::pow(x[i] - sums[images.channel(i)], 2);
    const std::vector<float> means = get<float>(mean, channels);
    const std::vector<float> inverses = get<float>(inv_std, channels);
    const std::vector<float> got = get<float>(result, x.size());
    for (size_t c = 0; c < channels; ++c) {
      ASSERT_NEAR(means[c], sums[c], 1e-4) << c;
      ASSERT_NEAR(inverses[c] * std::sqrt(squares[c] / each + eps), 1, 1e-5) << c;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = images.channel(i);
      const double normal = (x[i] - sums[c]) / std::sqrt(squares[c] / each + eps);
      ASSERT_NEAR(got[i], normal * scale[c] + shift[c], 1e-3) << i;
    }
  }
}

TEST_F(CudaKernelsOfTraining, BatchNormSumsItsGradientsInParts) {
  for (const Images& images : all_images()) {
    const std::vector<float> x = random_floats(images.count(), 1);
    const std::vector<float> g = random_floats(images.count(), 2);
    const auto channels = static_cast<size_t>(images.c);
    const std::vector<float> scale = random_floats(channels, 3);
    const std::vector<float> mean = random_floats(channels, 4);
    const std::vector<float> inv_std = random_floats(channels, 5);
    const auto list = [&](int32_t role) { return dense(role, EP_DTYPE_f32, {images.c}); };
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_batch_norm_backward,
                                        {images.operand(EP_ROLE_DST), list(EP_ROLE_SCALE_GRADIENT),
                                         list(EP_ROLE_SHIFT_GRADIENT), images.operand(EP_ROLE_SRC), list(EP_ROLE_SCALE),
                                         list(EP_ROLE_MEAN), list(EP_ROLE_INV_STD), images.operand(EP_ROLE_GRADIENT)});
    desc.attributes.batch_norm_backward.axis = 1;
    ep_memory* result = with(std::vector<float>(x.size(), 77));
    ep_memory* scales = with(std::vector<float>(channels, 77));
    ep_memory* shifts = with(std::vector<float>(channels, 77));
    ASSERT_EQ(launch(desc, {result, scales, shifts, with(x), with(scale), with(mean), with(inv_std), with(g)}),
              EP_STATUS_OK)
        << cuda().host.sentence();
    std::vector<double> sums(channels), products(channels);
    const auto normal = [&](size_t i) {
      return (static_cast<double>(x[i]) - mean[images.channel(i)]) * inv_std[images.channel(i)];
    };
    for (size_t i = 0; i < x.size(); ++i) {
      sums[images.channel(i)] += g[i];
      products[images.channel(i)] += g[i] * normal(i);
    }
    const double each = static_cast<double>(x.size()) / static_cast<double>(channels);
    const std::vector<float> by_scale = get<float>(scales, channels);
    const std::vector<float> by_shift = get<float>(shifts, channels);
    const std::vector<float> got = get<float>(result, x.size());
    for (size_t c = 0; c < channels; ++c) {
      ASSERT_NEAR(by_scale[c], products[c], 2e-6 * each + 1e-4) << c;
      ASSERT_NEAR(by_shift[c], sums[c], 2e-6 * each + 1e-4) << c;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = images.channel(i);
      const double want =
          static_cast<double>(inv_std[c]) * scale[c] * (g[i] - sums[c] / each - normal(i) * products[c] / each);
      ASSERT_NEAR(got[i], want, 2e-4) << i;
    }
  }
}

// Rows for a warp and for a block; sums over many rows in parts.
TEST_F(CudaKernelsOfTraining, LayerNormSumsItsGradientsInParts) {
  const int64_t many = on_fake() ? 3001 : 60001;
  for (const auto& shape : {std::pair<int64_t, int64_t>{many, 20}, {7, 513}, {5, 9001}, {200, 512}}) {
    const int64_t rows = shape.first;
    const int64_t length = shape.second;
    const auto count = static_cast<size_t>(rows * length);
    const auto columns = static_cast<size_t>(length);
    const std::vector<float> x = random_floats(count, 1);
    const std::vector<float> g = random_floats(count, 2);
    const std::vector<float> scale = random_floats(columns, 3);
    const std::vector<float> mean = random_floats(static_cast<size_t>(rows), 4);
    const std::vector<float> inv_std = random_floats(static_cast<size_t>(rows), 5);
    const auto matrix = [&](int32_t role) { return dense(role, EP_DTYPE_f32, {rows, length}); };
    const auto list = [&](int32_t role) { return dense(role, EP_DTYPE_f32, {length}); };
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_layer_norm_backward,
                   {matrix(EP_ROLE_DST), list(EP_ROLE_SCALE_GRADIENT), list(EP_ROLE_SHIFT_GRADIENT),
                    matrix(EP_ROLE_SRC), list(EP_ROLE_SCALE), dense(EP_ROLE_MEAN, EP_DTYPE_f32, {rows, 1}),
                    dense(EP_ROLE_INV_STD, EP_DTYPE_f32, {rows, 1}), matrix(EP_ROLE_GRADIENT)});
    desc.attributes.layer_norm_backward.axis = 1;
    ep_memory* result = with(std::vector<float>(count, 77));
    ep_memory* scales = with(std::vector<float>(columns, 77));
    ep_memory* shifts = with(std::vector<float>(columns, 77));
    ASSERT_EQ(launch(desc, {result, scales, shifts, with(x), with(scale), with(mean), with(inv_std), with(g)}),
              EP_STATUS_OK)
        << cuda().host.sentence();
    const std::vector<float> got = get<float>(result, count);
    std::vector<double> sums(columns), products(columns);
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
      const size_t at = row * columns;
      const auto normal = [&](size_t i) { return (static_cast<double>(x[at + i]) - mean[row]) * inv_std[row]; };
      double middle = 0;
      double slope = 0;
      for (size_t i = 0; i < columns; ++i) {
        sums[i] += g[at + i];
        products[i] += g[at + i] * normal(i);
        middle += static_cast<double>(g[at + i]) * scale[i] / static_cast<double>(length);
        slope += static_cast<double>(g[at + i]) * scale[i] * normal(i) / static_cast<double>(length);
      }
      for (size_t i = 0; i < columns; ++i) {
        const double want = inv_std[row] * (static_cast<double>(g[at + i]) * scale[i] - middle - normal(i) * slope);
        ASSERT_NEAR(got[at + i], want, 3e-4) << length << " " << row << " " << i;
      }
    }
    const std::vector<float> by_scale = get<float>(scales, columns);
    const std::vector<float> by_shift = get<float>(shifts, columns);
    const double error = 2e-6 * static_cast<double>(rows) + 1e-4;
    for (size_t i = 0; i < columns; ++i) {
      ASSERT_NEAR(by_scale[i], products[i], error) << length << " " << i;
      ASSERT_NEAR(by_shift[i], sums[i], error) << length << " " << i;
    }
  }
}

}  // namespace
}  // namespace tenon::provider::cuda
