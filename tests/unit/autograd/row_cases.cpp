#include "tests/unit/autograd/row_cases.h"

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
    {"log_sum", {{2, 3}}, [](X x) { return log_sum(x[0], 1, true); }, 0.2, 0.8},
    {"log_sum_exp", {{2, 3}}, [](X x) { return log_sum_exp(x[0], 1); }},
    {"var", {{2, 3}}, [](X x) { return var(x[0], 1); }},
    {"std", {{2, 3}}, [](X x) { return tenon::std(x[0], 1); }},
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
    {"adaptive_avg_pool", {{1, 2, 4, 4}}, [](X x) { return adaptive_avg_pool(x[0], 2); }},
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
    {"gather",
     {{3, 4}},
     [](X x) {
       return gather(x[0], 1, index({0, -1, 2, 2}, {2, 2}));
     }},
    {"scatter",
     {{3, 4}, {2, 2}},
     [](X x) {
       return square(scatter(x[0], 1, index({0, -1, 2, 2}, {2, 2}), x[1]));
     }},
    {"scatter_add",
     {{3, 4}, {2, 2}},
     [](X x) {
       return square(scatter_add(x[0], 1, index({0, -1, 2, 2}, {2, 2}), x[1]));
     }},
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
    for (const auto* group : {&kSelection, &kReductions, &kNorms, &kProducts, &kPooling, &kIndexing, &kViews}) {
      cases.insert(cases.end(), group->begin(), group->end());
    }
    return cases;
  }();
  return all;
}

}  // namespace tenon
