#include "tests/unit/autograd/row_cases.h"

#include <limits>

#include "core/ops/operators.h"
#include "core/ops/ops.h"

namespace tenon {
namespace {

using X = const TensorList&;

Tensor index(const std::vector<int64_t>& values, const Dims& dims) { return Tensor::from<int64_t>(values, dims); }

const std::vector<RowCase> kSelection = {
    {"where", {{2, 3}, {3}}, [](X x) { return where(gt(x[0].detach(), 0), x[0], x[1]); }},
    {"where, numbers",
     {{2, 3}},
     [](X x) { return where(gt(x[0].detach(), 0), x[0], 2) * where(gt(x[0].detach(), 0), 3, x[0]); }},
    {"clamp, numbers", {{2, 3}}, [](X x) { return clamp(x[0] * x[0], 0.4, 1.1); }},
    {"clamp, tensors", {{2, 3}, {3}, {2, 1}}, [](X x) { return clamp(x[0], x[1], x[2]); }},
    {"fma", {{2, 3}, {3}, {2, 1}}, [](X x) { return fma(x[0], x[1], x[2]); }},
    {"threshold", {{2, 3}}, [](X x) { return threshold(x[0], 0.1, 3); }},
    {"nan_to_num_within", {{2, 3}}, [](X x) { return nan_to_num_within(x[0], 0, 0.4) * x[0]; }},
    {"lerp", {{2, 3}, {3}, {2, 1}}, [](X x) { return lerp(x[0], x[1], x[2]); }},
    {"lerp, number", {{2, 3}, {3}}, [](X x) { return lerp(x[0], x[1], 0.3); }},
    {"cast", {{2, 3}}, [](X x) { return cast(cast(x[0], DType::f64), DType::f64) * clone(x[0]); }},
    {"gelu, tanh", {{2, 3}}, [](X x) { return gelu(x[0], "tanh"); }},
    {"prelu", {{2, 3, 2}, {3, 1}}, [](X x) { return prelu(x[0], x[1]); }},
    {"masked_fill", {{2, 3}}, [](X x) { return masked_fill(x[0], gt(x[0].detach(), 0), 7); }},
};

const std::vector<RowCase> kReductions = {
    {"sum",
     {{2, 3, 2}},
     [](X x) {
       return sum(x[0], {0, 2}) * sum(x[0]);
     }},
    {"mean", {{2, 3, 2}}, [](X x) { return mean(x[0], 1, true) * mean(x[0]); }},
    {"prod, one axis", {{2, 5, 2}}, [](X x) { return prod(x[0], 1); }},
    {"prod, two axes",
     {{2, 3, 2}},
     [](X x) {
       return prod(x[0], {0, 2}, true);
     }},
    {"prod, zeros",
     {{3}},
     [](X x) {
       return prod(x[0] * Tensor::from<double>(std::vector<double>{0, 1, 1}, {3}));
     }},
    {"prod, two zeros",
     {{3}},
     [](X x) {
       return prod(x[0] * Tensor::from<double>(std::vector<double>{0, 1, 0}, {3}));
     }},
    {"amax", {{2, 3, 2}}, [](X x) { return amax(x[0], 1); }},
    {"amin",
     {{2, 3, 2}},
     [](X x) {
       return amin(x[0], {0, 2}, true);
     }},
    {"l1_norm", {{2, 3}}, [](X x) { return l1_norm(x[0], 1); }},
    {"l2_norm", {{2, 3}}, [](X x) { return l2_norm(x[0], 1); }},
    {"sum_square", {{2, 3}}, [](X x) { return sum_square(x[0], 0); }},
    {"nansum", {{2, 3}}, [](X x) { return nansum(x[0] * x[0], 1); }},
    {"log_sum", {{2, 3}}, [](X x) { return log_sum(x[0], 1, true); }, 0.2, 0.8},
    {"log_sum_exp", {{2, 3}}, [](X x) { return log_sum_exp(x[0], 1); }},
    {"var", {{2, 3}}, [](X x) { return var(x[0], 1); }},
    {"std", {{2, 3}}, [](X x) { return tenon::std(x[0], 1); }},
    {"std, several axes",
     {{2, 3, 2}},
     [](X x) {
       return tenon::std(x[0], {0, 2}, 0, true);
     }},
    {"median of all", {{2, 3}}, [](X x) { return median(x[0]) * x[0]; }},
    {"max along an axis", {{2, 3}}, [](X x) { return std::get<0>(tenon::max(x[0], 1)) * x[0].select(1, 0); }},
    {"vector_norm 3", {{2, 3}}, [](X x) { return vector_norm(x[0], 3, 1); }},
    {"vector_norm 1.5", {{2, 3}}, [](X x) { return vector_norm(x[0], 1.5); }},
    {"vector_norm -2", {{2, 3}}, [](X x) { return vector_norm(x[0], -2, 0, true); }},
    {"vector_norm inf", {{2, 3}}, [](X x) { return vector_norm(x[0], std::numeric_limits<double>::infinity(), 1); }},
    {"cdist 2", {{2, 3}, {4, 3}}, [](X x) { return cdist(x[0], x[1]); }},
    {"cdist 3", {{2, 1, 2, 3}, {2, 2, 3}}, [](X x) { return cdist(x[0], x[1], 3); }},
    {"cdist, eight axes", {{2, 1, 1, 1, 1, 1, 2, 3}, {2, 3}}, [](X x) { return cdist(x[0], x[1], 3); }},
    {"cdist, many rows", {{2, 2}, {26, 2}}, [](X x) { return cdist(x[0], x[1]); }},
    {"logit", {{2, 3}}, [](X x) { return logit(x[0]) * logit(x[0], 0.3); }, 0.2, 0.8},
    {"erfinv", {{2, 3}}, [](X x) { return erfinv(x[0]); }, -0.8, 0.8},
    {"binary_cross_entropy",
     {{2, 3}, {2, 3}, {3}},
     [](X x) { return binary_cross_entropy(x[0], x[1], x[2], "none") * binary_cross_entropy(x[0], x[1], x[2]); },
     0.2,
     0.8},
    {"sum of a number", {{}}, [](X x) { return sum(x[0] * x[0]); }},
};

const std::vector<RowCase> kNorms = {
    {"softmax", {{2, 3, 2}}, [](X x) { return softmax(x[0], 1); }},
    {"log_softmax", {{2, 3}}, [](X x) { return log_softmax(x[0], -1); }},
    {"layer_norm",
     {{2, 3, 2}, {3, 2}, {3, 2}},
     [](X x) {
       return layer_norm(x[0], {3, 2}, x[1], x[2]);
     }},
    {"layer_norm, bare", {{3, 4}}, [](X x) { return layer_norm(x[0], 4); }},
    {"layer_norm_with_statistics",
     {{2, 3, 2}, {3, 2}, {3, 2}},
     [](X x) {
       return std::get<0>(layer_norm_with_statistics(x[0], {3, 2}, x[1], x[2]));
     }},
    {"batch_norm_with_statistics",
     {{3, 2, 2}, {2}, {2}},
     [](X x) { return std::get<0>(batch_norm_with_statistics(x[0], x[1], x[2])); }},
    {"rms_norm", {{3, 4}, {4}}, [](X x) { return rms_norm(x[0], 4, x[1], 1e-5); }},
    {"rms_norm, several axes",
     {{2, 3, 2}, {3, 2}},
     [](X x) {
       return rms_norm(x[0], {3, 2}, x[1]);
     }},
    {"batch_norm",
     {{2, 3, 2}, {3}, {3}, {3}, {3}},
     [](X x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); },
     0.2,
     0.8},
    {"group_norm", {{2, 4, 3}, {4}, {4}}, [](X x) { return group_norm(x[0], 2, x[1], x[2]); }},
    {"group_norm, bare", {{2, 4, 3}}, [](X x) { return group_norm(x[0], 4); }},
};

const std::vector<RowCase> kProducts = {
    {"matmul", {{2, 3}, {3, 4}}, [](X x) { return matmul(x[0], x[1]); }},
    {"matmul, batches", {{2, 1, 2, 3}, {4, 3, 2}}, [](X x) { return matmul(x[0], x[1]); }},
    {"matmul, row", {{3}, {2, 3, 2}}, [](X x) { return matmul(x[0], x[1]); }},
    {"matmul, column", {{2, 2, 3}, {3}}, [](X x) { return matmul(x[0], x[1]); }},
    {"matmul, dot", {{3}, {3}}, [](X x) { return matmul(x[0], x[1]); }},
    {"linear", {{2, 3}, {4, 3}, {4}}, [](X x) { return linear(x[0], x[1], x[2]); }},
    {"conv", {{2, 2, 4, 4}, {3, 2, 3, 3}, {3}}, [](X x) { return conv(x[0], x[1], x[2]); }},
    {"conv, strided",
     {{1, 2, 6, 5}, {2, 2, 2, 3}},
     [](X x) {
       return conv(x[0], x[1], {}, {2, 3}, {1, 0, 0, 1});
     }},
    {"conv, dilated in groups", {{2, 4, 7}, {6, 2, 2}, {6}}, [](X x) { return conv(x[0], x[1], x[2], 2, 1, 3, 2); }},
    {"conv, depthwise", {{2, 3, 5}, {3, 1, 3}}, [](X x) { return conv(x[0], x[1], {}, 1, 1, 1, 3); }},
    {"conv, three axes", {{1, 1, 3, 3, 2}, {2, 1, 2, 2, 2}}, [](X x) { return conv(x[0], x[1]); }},
    {"conv_transpose", {{2, 2, 3}, {2, 3, 3}, {3}}, [](X x) { return conv_transpose(x[0], x[1], x[2], 2, 1, 1); }},
    {"conv_transpose, padded by more than its stride",
     {{1, 2, 3, 3}, {2, 1, 2, 2}},
     [](X x) {
       return conv_transpose(x[0], x[1], {}, {1, 2}, 0, {1, 3}, 1, {2, 4});
     }},
    {"conv_transpose, cut and padded by more than its stride",
     {{1, 2, 3, 3}, {2, 1, 2, 2}},
     [](X x) {
       return conv_transpose(x[0], x[1], {}, {1, 2}, {1, 2}, {1, 2}, 1, {2, 3});
     }},
    {"conv_transpose, groups",
     {{1, 4, 2, 3}, {4, 1, 2, 2}},
     [](X x) { return conv_transpose(x[0], x[1], {}, 1, 0, 0, 2, 2); }},
    {"conv_grad_weight",
     {{2, 4, 7}, {2, 6, 4}},
     [](X x) {
       return conv_grad_weight(x[0], {6, 2, 2}, x[1], 2, 1, 2, 2);
     }},
    {"attention",
     {{2, 3, 2}, {2, 4, 2}, {2, 4, 3}},
     [](X x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }},
    {"attention, causal",
     {{3, 2}, {3, 2}, {3, 2}},
     [](X x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, true); }},
    {"attention, groups and bias",
     {{1, 4, 3, 2}, {1, 2, 4, 2}, {1, 2, 4, 3}, {1, 1, 3, 4}},
     [](X x) { return attention(x[0], x[1], x[2], x[3], {}, 2, 1, true, 0.7, 1.5); }},
    {"attention_with_log_sum",
     {{1, 2, 3, 2}, {1, 1, 4, 2}, {1, 1, 4, 3}},
     [](X x) {
       const auto [y, log_sum] = attention_with_log_sum(x[0], x[1], x[2]);
       return sum(square(y)) + sum(square(log_sum));
     }},
    {"rotary_embedding",
     {{1, 2, 3, 5}},
     [](X x) {
       const Tensor angles = reshape(arange(0, 6, 1, DType::f64), {3, 2});
       return square(rotary_embedding(x[0], cos(angles), sin(angles)));
     }},
    {"rotary_embedding, interleaved",
     {{1, 2, 3, 4}},
     [](X x) {
       const Tensor angles = reshape(arange(0, 8, 1, DType::f64), {4, 2});
       const Tensor places = Tensor::from<int64_t>(std::vector<int64_t>{3, 0, 1}, {1, 3});
       return square(rotary_embedding(x[0], cos(angles), sin(angles), places, true));
     }},
};

const std::vector<RowCase> kPooling = {
    {"max_pool", {{2, 2, 4, 5}}, [](X x) { return max_pool(x[0], 2); }},
    {"max_pool, overlapping",
     {{1, 2, 5, 2}},
     [](X x) {
       return max_pool(x[0], {3, 3}, {2, 1}, 1);
     }},
    {"max_pool, dilated", {{1, 1, 7}}, [](X x) { return max_pool(x[0], 2, 2, 1, 2, true); }},
    {"max_pool_with_indices", {{1, 2, 5, 4}}, [](X x) { return std::get<0>(max_pool_with_indices(x[0], 3, 2, 1)); }},
    {"avg_pool", {{2, 2, 4, 5}}, [](X x) { return square(avg_pool(x[0], 2)); }},
    {"avg_pool, padding", {{1, 2, 5, 4}}, [](X x) { return square(avg_pool(x[0], 3, 2, 1, true)); }},
    {"avg_pool, padding left out",
     {{1, 2, 5, 4}},
     [](X x) {
       return avg_pool(x[0], {3, 2}, {2, 3}, 1, true, false);
     }},
    {"max_pool_with_indices_backward",
     {{1, 2, 3}},
     [](X x) {
       return max_pool_with_indices_backward(x[0], {1, 2, 6}, 2, 2, 0, 1, false, index({0, 3, 5, 1, 2, 4}, {1, 2, 3}));
     }},
    {"avg_pool_backward",
     {{1, 2, 3}},
     [](X x) {
       return avg_pool_backward(x[0], {1, 2, 5}, 3, 2, 1);
     }},
    {"lp_pool", {{1, 2, 5, 4}}, [](X x) { return lp_pool(x[0], 3, 2, 1); }},
    {"lp_pool, padded", {{1, 2, 5}}, [](X x) { return lp_pool(x[0], 2, 3, 2, false, 1); }},
    {"resize", {{2, 5}}, [](X x) { return square(resize(x[0], 1, 8, 1.6, -0.5, "linear", "floor", true)); }},
    {"resize, antialias",
     {{7, 2}},
     [](X x) { return square(resize(x[0], 0, 3, 3.0 / 7, -0.5, "cubic", "floor", true, -0.5, true, true)); }},
    {"resize, nearest", {{2, 5}}, [](X x) { return square(resize(x[0], -1, 7, 1.4, 0.0, "nearest")); }},
    {"interpolate",
     {{1, 2, 3, 4}},
     [](X x) {
       return square(interpolate(x[0], {5, 7}, std::nullopt, "bilinear"));
     }},
    {"adaptive_avg_pool", {{1, 2, 4, 4}}, [](X x) { return adaptive_avg_pool(x[0], 2); }},
};

// A matrix far from singular, and a symmetric one whose eigenvalues are far apart.
Tensor regular(const Tensor& x) { return x + eye(x.dim(-1), std::nullopt, x.dtype()) * 6; }
Tensor symmetric(const Tensor& x) {
  const Tensor steps = cast(arange(x.dim(-1)), x.dtype()) * 7 + 9;
  return x + transpose(x, -2, -1) + eye(x.dim(-1), std::nullopt, x.dtype()) * steps;
}

const std::vector<RowCase> kMatrices = {
    {"linalg_cholesky", {{2, 3, 3}}, [](X x) { return linalg_cholesky(symmetric(x[0])); }},
    {"linalg_cholesky, upper", {{3, 3}}, [](X x) { return linalg_cholesky(symmetric(x[0]), true); }},
    {"linalg_inv", {{2, 3, 3}}, [](X x) { return linalg_inv(regular(x[0])); }},
    {"linalg_det", {{2, 3, 3}}, [](X x) { return linalg_det(regular(x[0])); }},
    {"linalg_slogdet", {{3, 3}}, [](X x) { return std::get<1>(linalg_slogdet(regular(x[0]))); }},
    {"linalg_solve", {{3, 3}, {2, 3, 2}}, [](X x) { return linalg_solve(regular(x[0]), x[1]); }},
    {"linalg_solve, vector", {{3, 3}, {3}}, [](X x) { return linalg_solve(regular(x[0]), x[1]); }},
    {"linalg_solve_triangular",
     {{3, 3}, {3, 2}},
     [](X x) { return linalg_solve_triangular(regular(x[0]), x[1], true); }},
    {"linalg_solve_triangular, unit",
     {{3, 3}, {3, 2}},
     [](X x) { return linalg_solve_triangular(x[0], x[1], false, true); }},
    {"linalg_qr",
     {{2, 4, 3}},
     [](X x) {
       const auto [q, r] = linalg_qr(x[0]);
       return concat({q, r}, 1);
     }},
    {"linalg_qr, wide",
     {{2, 4}},
     [](X x) {
       const auto [q, r] = linalg_qr(x[0]);
       return concat({q, r}, 1);
     }},
    {"linalg_qr, R of a wide matrix", {{2, 4}}, [](X x) { return std::get<1>(linalg_qr(x[0])); }},
    {"linalg_qr, Q of a wide matrix", {{2, 4}}, [](X x) { return std::get<0>(linalg_qr(x[0])); }},
    {"linalg_svd_reduced",
     {{4, 2}},
     [](X x) {
       const auto [values, u, v] = linalg_svd_reduced(x[0]);
       return concat({square(u), matmul(u, v), unsqueeze(values, 0)}, 0);
     }},
    {"linalg_svd_reduced, wide",
     {{2, 3, 4}},
     [](X x) {
       const auto [values, u, v] = linalg_svd_reduced(x[0]);
       return square(v) * unsqueeze(values, -1) + matmul(u, v);
     }},
    {"linalg_pinv", {{2, 4, 3}}, [](X x) { return linalg_pinv(x[0]); }},
    {"linalg_pinv, wide", {{2, 3}}, [](X x) { return linalg_pinv(x[0]); }},
    {"linalg_lstsq", {{2, 4, 2}, {2, 4, 3}}, [](X x) { return linalg_lstsq(x[0], x[1]); }},
    {"linalg_svdvals", {{3, 3}}, [](X x) { return linalg_svdvals(symmetric(x[0])); }},
    {"linalg_eigvalsh", {{3, 3}}, [](X x) { return linalg_eigvalsh(symmetric(x[0])); }},
    {"linalg_eigh, values", {{3, 3}}, [](X x) { return std::get<0>(linalg_eigh(symmetric(x[0]))); }},
    {"linalg_eigh", {{3, 3}}, [](X x) { return std::get<1>(linalg_eigh(symmetric(x[0]))); }},
    {"fft_c2c", {{3, 5, 2}}, [](X x) { return square(fft_c2c(x[0], 1, true, 0.5)); }},
    {"fft_r2c", {{2, 5}}, [](X x) { return square(fft_r2c(x[0])); }},
    {"fft_r2c, even", {{6, 2}}, [](X x) { return square(fft_r2c(x[0], 0)); }},
    {"fft_c2r", {{2, 3, 2}}, [](X x) { return square(fft_c2r(x[0], 5)); }},
    {"fft_c2r, even", {{2, 4, 2}}, [](X x) { return square(fft_c2r(x[0], 6, 1, false)); }},
    {"lstm",
     {{3, 2, 3}, {1, 2, 2}, {1, 2, 2}, {8, 3}, {8, 2}, {8}, {8}},
     [](X x) {
       return std::get<0>(lstm(x[0], x[1], x[2], {x[3], x[4], x[5], x[6]}));
     }},
    {"gru",
     {{3, 2, 3}, {2, 2, 2}, {6, 3}, {6, 2}, {6, 3}, {6, 2}},
     [](X x) {
       return std::get<0>(gru(x[0], x[1], {x[2], x[3], x[4], x[5]}, false, 1, 0, false, true));
     }},
    {"rnn_tanh",
     {{3, 2, 3}, {1, 2, 2}, {2, 3}, {2, 2}},
     [](X x) {
       return std::get<1>(rnn_tanh(x[0], x[1], {x[2], x[3]}, false));
     }},
};

const std::vector<RowCase> kIndexing = {
    {"gather_slices",
     {{3, 4}},
     [](X x) {
       return gather_slices(x[0], 1, index({0, -1, 0, 2}, {2, 2}));
     }},
    {"embedding",
     {{4, 3}},
     [](X x) {
       return square(embedding(x[0], index({1, 1, 3}, {3})));
     }},
    {"embedding_bag",
     {{4, 3}, {5}},
     [](X x) {
       return square(embedding_bag(index({1, 1, 3, 0, 2}, {5}), x[0], index({0, 2, 2}, {3}), "sum", x[1]));
     }},
    {"embedding_bag, mean",
     {{4, 3}},
     [](X x) {
       return square(embedding_bag(index({1, 1, 3, 0}, {2, 2}), x[0], {}, "mean", {}, false, 1));
     }},
    {"gather",
     {{3, 4}},
     [](X x) {
       return gather(x[0], 1, index({0, 1, 2, 2}, {2, 2}));
     }},
    {"scatter",
     {{3, 4}, {2, 2}},
     [](X x) {
       return square(scatter(x[0], 1, index({0, 1, 2, 2}, {2, 2}), x[1]));
     }},
    {"scatter_add",
     {{3, 4}, {2, 2}},
     [](X x) {
       return square(scatter_add(x[0], 1, index({0, 1, 2, 2}, {2, 2}), x[1]));
     }},
    {"gather_nd",
     {{2, 3, 2}},
     [](X x) {
       return square(gather_nd(x[0], index({0, -1, 1, 2, 0, 2}, {3, 2})));
     }},
    {"scatter_reduce, sum",
     {{2, 3}, {2, 4}},
     [](X x) {
       return square(scatter_reduce(x[0], 1, index({0, 1, 2, 2}, {2, 2}), x[1], "sum", false));
     }},
    {"scatter_reduce, mean",
     {{2, 3}, {2, 3}},
     [](X x) {
       return square(scatter_reduce(x[0], 1, index({0, 0, 2, 2}, {2, 2}), x[1], "mean"));
     }},
    {"scatter_reduce, prod",
     {{2, 3}, {2, 2}},
     [](X x) {
       return square(scatter_reduce(x[0], 1, index({0, 0, 2, 1}, {2, 2}), x[1], "prod"));
     }},
    {"scatter_reduce, amax",
     {{2, 3}, {2, 2}},
     [](X x) {
       return square(scatter_reduce(x[0], 1, index({0, 0, 2, 1}, {2, 2}), x[1], "amax", false));
     }},
    {"scatter_nd",
     {{2, 3}, {3}},
     [](X x) {
       return square(scatter_nd(x[0], index({0, -1, 1, 2, 0, 2}, {3, 2}), x[1]));
     }},
    {"scatter_nd, sum",
     {{2, 3}, {3}},
     [](X x) {
       return square(scatter_nd(x[0], index({0, -1, 1, 2, 0, 2}, {3, 2}), x[1], "sum"));
     }},
    {"index_fill, a tensor",
     {{2, 3}, {}},
     [](X x) {
       return square(index_fill(x[0], 1, index({2, 0}, {2}), x[1]));
     }},
    {"masked_fill, a tensor", {{2, 3}, {}}, [](X x) { return square(masked_fill(x[0], gt(x[0].detach(), 0), x[1])); }},
    {"index_fill",
     {{2, 3}},
     [](X x) {
       return square(index_fill(x[0], 1, index({2, 0}, {2}), 5));
     }},
    {"put",
     {{2, 3}, {2}},
     [](X x) {
       return square(put(x[0], index({4, -1}, {2}), x[1], true));
     }},
    {"index_put",
     {{3, 4}, {2}},
     [](X x) {
       return square(index_put(x[0], {index({2, 0}, {2}), index({1, -1}, {2})}, x[1]));
     }},
    {"index_put, add",
     {{3, 4}, {3}},
     [](X x) {
       return square(index_put(x[0], {Tensor(), index({1, 1, -1}, {3})}, x[1], true));
     }},
    {"index_put, mask", {{3, 4}, {}}, [](X x) { return square(index_put(x[0], {gt(x[0].detach(), 0)}, x[1])); }},
    {"rrelu", {{2, 3}}, [](X x) { return rrelu(x[0]); }},
    {"istft", {{3, 5, 2}}, [](X x) { return square(istft(x[0], 4, 1)); }},
    {"repeat_interleave, tensor",
     {{3, 2}},
     [](X x) {
       return square(repeat_interleave(x[0], index({2, 0, 3}, {3}), 0, 5));
     }},
    {"masked_scatter", {{2, 3}, {6}}, [](X x) { return square(masked_scatter(x[0], gt(x[0].detach(), 0), x[1])); }},
    {"cumsum", {{2, 4, 2}}, [](X x) { return square(cumsum(x[0], 1)); }},
    {"cumsum, exclusive from the end", {{2, 4}}, [](X x) { return square(cumsum(x[0], 1, DType::none, true, true)); }},
    {"cumprod", {{2, 5, 2}}, [](X x) { return cumprod(x[0], 1); }},
    {"cumprod, exclusive from the end", {{2, 5}}, [](X x) { return cumprod(x[0], 1, DType::none, true, true); }},
    {"cumprod, zeros",
     {{4}},
     [](X x) {
       return cumprod(x[0] * Tensor::from<double>(std::vector<double>{1, 0, 1, 1}, {4}), 0);
     }},
    {"logcumsumexp", {{2, 4}}, [](X x) { return square(logcumsumexp(x[0], 1)); }},
    {"cummax", {{2, 5}}, [](X x) { return square(std::get<0>(cummax(x[0], 1))); }},
    {"cummin", {{5, 2}}, [](X x) { return square(std::get<0>(cummin(x[0], 0))); }},
    {"sort", {{3, 4}}, [](X x) { return cumsum(square(std::get<0>(sort(x[0], 0, true))), 0); }},
    {"topk", {{3, 4}}, [](X x) { return square(std::get<0>(topk(x[0], 2, 1))); }},
    {"median", {{3, 4}}, [](X x) { return square(std::get<0>(median(x[0], 1))); }},
    {"diff", {{3, 4}}, [](X x) { return square(diff(x[0], 2)); }},
    {"trapezoid", {{3, 4}, {4}}, [](X x) { return square(trapezoid(x[0], x[1])); }},
    {"index_add",
     {{3, 4}, {3, 2}},
     [](X x) {
       return square(index_add(x[0], 1, index({1, 1}, {2}), x[1], 3));
     }},
    {"index_copy",
     {{3, 2}, {2, 2}},
     [](X x) {
       return square(index_copy(x[0], 0, index({2, 0}, {2}), x[1]));
     }},
    {"slice_scatter", {{2, 7}, {2, 3}}, [](X x) { return square(slice_scatter(x[0], x[1], 1, 1, 7, 2)); }},
    {"select_scatter", {{2, 3}, {2}}, [](X x) { return square(select_scatter(x[0], x[1], -1, 1)); }},
    {"take",
     {{3, 2}},
     [](X x) {
       return take(x[0], index({5, 0, 5}, {3}));
     }},
    {"concat",
     {{2, 3}, {2, 1}, {2, 2}},
     [](X x) {
       return square(concat({x[0], x[1], x[2]}, 1));
     }},
    {"stack",
     {{2, 3}, {2, 3}},
     [](X x) {
       return stack({x[0], x[1]}, 1);
     }},
    {"split_with_sizes_copy",
     {{2, 5}},
     [](X x) {
       return square(split_with_sizes_copy(x[0], {1, 3, 1}, 1)[1]);
     }},
    {"split",
     {{2, 5}},
     [](X x) {
       TensorList parts = split(x[0], 2, 1);
       return parts[0] * parts[1];
     }},
    {"pad",
     {{2, 3}},
     [](X x) {
       return square(pad(x[0], {1, 2, 0, 1}, "constant", 3));
     }},
    {"pad, reflect",
     {{2, 4}},
     [](X x) {
       return square(pad(x[0], {2, 3, 1, 0}, "reflect"));
     }},
    {"pad, replicate",
     {{2, 3}},
     [](X x) {
       return square(pad(x[0], {2, 1, 1, 0}, "replicate"));
     }},
    {"pad, crop",
     {{2, 5}},
     [](X x) {
       return pad(x[0], {-1, -2});
     }},
    {"tile",
     {{2, 3}},
     [](X x) {
       return square(tile(x[0], {2, 2}));
     }},
};

const std::vector<RowCase> kViews = {
    {"reshape",
     {{2, 3}},
     [](X x) {
       return square(reshape(x[0], {3, 2}));
     }},
    {"view", {{2, 3}}, [](X x) { return square(view(x[0], {6})); }},
    {"squeeze", {{2, 1, 3}}, [](X x) { return square(squeeze(x[0], 1)); }},
    {"unsqueeze", {{2, 3}}, [](X x) { return square(unsqueeze(x[0], -1)); }},
    {"permute",
     {{2, 3, 4}},
     [](X x) {
       return square(permute(x[0], {2, 0, -2}));
     }},
    {"expand",
     {{2, 1}},
     [](X x) {
       return square(expand(x[0], {4, 2, 3}));
     }},
    {"slice", {{2, 7}}, [](X x) { return square(slice(x[0], 1, 1, 7, 2)); }},
    {"slice, step beyond the end", {{5, 2}}, [](X x) { return square(slice(x[0], 0, 1, {}, 3)); }},
    {"slice, reversed", {{2, 4}}, [](X x) { return square(slice(x[0], 1, {}, {}, -1)); }},
    {"select", {{3, 2, 2}}, [](X x) { return square(select(x[0], -2, -1)); }},
    {"to", {{2, 3}}, [](X x) { return square(to(x[0], x[0].device())); }},
    {"copy_",
     {{2, 3}, {3}},
     [](X x) {
       Tensor y = square(x[0]);
       copy_(select(y, 0, 1), x[1]);
       return y * y;
     }},
    {"copy_from",
     {{2, 3}, {2, 3}},
     [](X x) {
       Tensor y = square(x[0]);
       copy_from(y, x[1] * x[1]);
       return y;
     }},
    {"a write through a view",
     {{3, 4}, {3}},
     [](X x) {
       Tensor y = x[0] * 2;
       mul_(select(transpose(y, 0, 1), 0, 2), x[1]);
       return y * x[0];
     }},
    {"a view made before a write",
     {{4}},
     [](X x) {
       Tensor y = x[0] * 2;
       const Tensor v = slice(y, 0, 1, 3);
       add_(y, square(x[0]));
       return v * v;
     }},
    {"zeros written through a view",
     {{4}},
     [](X x) {
       Tensor y = x[0] * x[0];
       zero_(slice(y, 0, 1, 3));
       return y;
     }},
};

}  // namespace

const std::vector<RowCase>& row_cases() {
  static const std::vector<RowCase> all = [] {
    std::vector<RowCase> cases;
    for (const auto* group :
         {&kSelection, &kReductions, &kNorms, &kProducts, &kPooling, &kMatrices, &kIndexing, &kViews}) {
      cases.insert(cases.end(), group->begin(), group->end());
    }
    return cases;
  }();
  return all;
}

}  // namespace tenon
