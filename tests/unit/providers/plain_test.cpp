// The cpu provider computes large work with a loop that is not optimised only where a row of `exceptions` says why. The
// test asks for each kind, dtype, layout and chain of epilogues on one dispatch target; it launches nothing. PLAIN_SIMD
// names the target (default: avx3). oneDNN has one limit of instructions per process, so each target has its own run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

using Sizes = std::vector<int64_t>;

struct Exception {
  std::string_view kind;
  std::string_view dtypes;  // their names, separated by spaces; empty: all
  std::string_view what;    // the beginning of the work's name; empty: any
  std::string_view target;  // the dispatch target; empty: all
  std::string_view why;
};

// The test fails for a row that is not needed.
constexpr Exception exceptions[] = {
    {"pooling", "", "op 4 power 3 ", "", "a norm of another power than 1 and 2 needs a power and a root per element"},
    {"softmax", "f64", "", "baseline", "the baseline has no vectors for functions of f64"},
    {"unary", "f64", "", "baseline", "the baseline has no vectors for functions of f64"},
    {"binary", "f64", "", "baseline", "the baseline has no vectors for divisions and powers of f64"},
    {"binary", "i8 u8 i16 u16 i32 u32 i64 u64", "div ", "",
     "a divisor of 0 is a fault, so the loop tests each element"},
    {"binary", "i8 u8 i16 u16 i32 u32 i64 u64", "floor_div ", "",
     "a divisor of 0 is a fault, so the loop tests each element"},
    {"binary", "i8 u8 i16 u16 i32 u32 i64 u64", "fmod ", "",
     "a divisor of 0 is a fault, so the loop tests each element"},
    {"binary", "i8 u8 i16 u16 i32 u32 i64 u64", "mod ", "",
     "a divisor of 0 is a fault, so the loop tests each element"},
    {"binary", "i8 u8 i16 u16 i32 u32 i64 u64", "pow ", "", "the number of squarings depends on the element"},
    {"binary", "i8 u8 i16 u16 i32 u32 i64 u64", "gcd ", "", "the number of Euclid's steps depends on the element"},
    {"binary", "i8 u8 i16 u16 i32 u32 i64 u64", "lcm ", "", "it divides by the greatest common divisor"},
};

struct Work {
  std::string name;  // what is special about it: op, layout, epilogues
  ep_primitive_desc desc;
  DType dtype;
};

constexpr DType floats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
constexpr DType numbers[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::u8,
                             DType::i16, DType::u16, DType::i32, DType::u32,  DType::i64, DType::u64};

int32_t id_of(DType dtype) { return static_cast<int32_t>(dtype); }

// Sizes and strides with the innermost axis in the place of axis 1.
ep_operand_desc channels_last(int32_t role, DType dtype, const Sizes& dims) {
  Sizes strides(dims.size());
  int64_t next = dims[1];
  strides[1] = 1;
  for (size_t axis = dims.size(); axis-- > 2;) {
    strides[axis] = next;
    next *= dims[axis];
  }
  strides[0] = next;
  return strided(role, id_of(dtype), dims, strides);
}
// Rows that are a part of rows twice as long.
ep_operand_desc sliced(int32_t role, DType dtype, const Sizes& dims) {
  Sizes strides(dims.size(), 1);
  for (size_t axis = dims.size() - 1; axis-- > 0;) {
    strides[axis] = strides[axis + 1] * dims[axis + 1] * (axis + 2 == dims.size() ? 2 : 1);
  }
  return strided(role, id_of(dtype), dims, strides);
}
ep_operand_desc turned(int32_t role, DType dtype, const Sizes& dims) {
  Sizes strides(dims.size(), 1);
  strides[dims.size() - 1] = dims[dims.size() - 2];
  for (size_t axis = dims.size() - 2; axis-- > 0;) {
    strides[axis] = axis + 3 == dims.size() ? dims[axis + 1] * dims[axis + 2] : strides[axis + 1] * dims[axis + 1];
  }
  return strided(role, id_of(dtype), dims, strides);
}
ep_operand_desc rows(int32_t role, DType dtype, const Sizes& dims) { return dense(role, id_of(dtype), dims); }

using Layout = ep_operand_desc (*)(int32_t role, DType dtype, const Sizes& dims);

struct Walk {
  std::vector<Work> all;

  ep_primitive_desc& add(int32_t kind, DType dtype, std::string name, const std::vector<ep_operand_desc>& operands) {
    all.push_back({std::move(name), descriptor(kind, operands), dtype});
    return all.back().desc;
  }

  // The scalar functions over 64 K elements: dense, and over a part of longer rows.
  void scalar_functions() {
    const Sizes dims{256, 300};
    for (const DType dtype : numbers) {
      for (const auto& [layout, of] : {std::pair<const char*, Layout>{"dense", rows}, {"sliced", sliced}}) {
        for (const table::ScalarRow& row : table::unary_rows()) {
          if (!table::in_domain(row.domain, dtype)) continue;
          add(EP_PRIMITIVE_unary, dtype, fmt::format("{} {}", row.name, layout),
              {rows(EP_ROLE_DST, table::result_dtype(row, dtype), dims), of(EP_ROLE_SRC, dtype, dims)})
              .attributes.unary.op = row.id;
        }
        for (const table::ScalarRow& row : table::binary_rows()) {
          if (!table::in_domain(row.domain, dtype)) continue;
          add(EP_PRIMITIVE_binary, dtype, fmt::format("{} {}", row.name, layout),
              {rows(EP_ROLE_DST, table::result_dtype(row, dtype), dims), of(EP_ROLE_SRC, dtype, dims),
               rows(EP_ROLE_SRC_B, dtype, dims)})
              .attributes.binary.op = row.id;
        }
        for (const DType to : numbers) {
          add(EP_PRIMITIVE_copy, dtype, fmt::format("to {} {}", dtype_name(to), layout),
              {rows(EP_ROLE_DST, to, dims), of(EP_ROLE_SRC, dtype, dims)});
        }
      }
    }
  }

  void reductions() {
    const Sizes dims{300, 400};
    for (const DType dtype : numbers) {
      for (const uint32_t axes : {1U, 2U, 3U}) {
        const Sizes kept{(axes & 1U) != 0 ? 1 : dims[0], (axes & 2U) != 0 ? 1 : dims[1]};
        for (const table::ReduceRow& row : table::reduce_rows()) {
          if (!table::in_domain(row.domain, dtype)) continue;
          ep_reduce_attributes& attributes = add(EP_PRIMITIVE_reduce, dtype, fmt::format("{} axes {}", row.name, axes),
                                                 {rows(EP_ROLE_DST, dtype, kept), rows(EP_ROLE_SRC, dtype, dims)})
                                                 .attributes.reduce;
          attributes.op = row.id;
          attributes.axes = axes;
        }
        if (axes == 3) continue;
        ep_arg_reduce_attributes& attributes =
            add(EP_PRIMITIVE_arg_reduce, dtype, fmt::format("axes {}", axes),
                {rows(EP_ROLE_DST, DType::i64, kept), rows(EP_ROLE_SRC, dtype, dims)})
                .attributes.arg_reduce;
        attributes.op = EP_REDUCE_max;
        attributes.axis = axes == 1 ? 0 : 1;
      }
    }
  }

  void norms() {
    const Sizes dims{4, 64, 24, 24};
    for (const DType dtype : floats) {
      for (const auto& [layout, of] :
           {std::pair<const char*, Layout>{"dense", rows}, {"channels last", channels_last}}) {
        const std::vector<ep_operand_desc> map{of(EP_ROLE_DST, dtype, dims), of(EP_ROLE_SRC, dtype, dims)};
        for (const int32_t axis : {1, 3}) {
          add(EP_PRIMITIVE_softmax, dtype, fmt::format("axis {} {}", axis, layout), map).attributes.softmax.axis = axis;
        }
        std::vector<ep_operand_desc> four = map;
        for (const int32_t role : {EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_VARIANCE}) {
          four.push_back(rows(role, dtype, {64}));
        }
        add(EP_PRIMITIVE_batch_norm, dtype, layout, four).attributes.batch_norm.axis = 1;
        four.resize(4);
        add(EP_PRIMITIVE_group_norm, dtype, layout, four).attributes.group_norm.groups = 8;
      }
      const Sizes matrix{300, 400};
      for (const auto& [layout, of] : {std::pair<const char*, Layout>{"dense", rows}, {"sliced", sliced}}) {
        const std::vector<ep_operand_desc> map{rows(EP_ROLE_DST, dtype, matrix), of(EP_ROLE_SRC, dtype, matrix)};
        add(EP_PRIMITIVE_layer_norm, dtype, layout, map).attributes.layer_norm.axis = 1;
        add(EP_PRIMITIVE_rms_norm, dtype, layout, map).attributes.rms_norm.axis = 1;
      }
    }
  }

  void poolings() {
    const Sizes dims{4, 64, 24, 24}, results{4, 64, 12, 12};
    ep_pooling_attributes pooling{};
    pooling.spatial_rank = 2;
    pooling.kernel[0] = pooling.kernel[1] = pooling.stride[0] = pooling.stride[1] = 2;
    pooling.dilation[0] = pooling.dilation[1] = 1;
    for (const DType dtype : numbers) {
      for (const auto& [layout, of] :
           {std::pair<const char*, Layout>{"dense", rows}, {"channels last", channels_last}, {"sliced", sliced}}) {
        const ep_operand_desc dst = of(EP_ROLE_DST, dtype, results), src = of(EP_ROLE_SRC, dtype, dims);
        for (const int32_t op : {EP_POOLING_MAX, EP_POOLING_AVERAGE, EP_POOLING_AVERAGE_INCLUDE_PAD, EP_POOLING_LP}) {
          if (op != EP_POOLING_MAX && !is_floating(dtype)) continue;
          pooling.op = op;
          for (const double p : {1, 2, 3}) {
            pooling.p = op == EP_POOLING_LP ? p : 0;
            if (op != EP_POOLING_LP && p != 1) continue;
            add(EP_PRIMITIVE_pooling, dtype, fmt::format("op {} power {} {}", op, pooling.p, layout), {dst, src})
                .attributes.pooling = pooling;
          }
        }
        pooling.op = EP_POOLING_MAX;
        pooling.p = 0;
        add(EP_PRIMITIVE_pooling, dtype, fmt::format("positions {}", layout),
            {dst, of(EP_ROLE_DST_INDICES, DType::i64, results), src})
            .attributes.pooling = pooling;
      }
    }
  }

  // Convolutions, transposed ones, and gradients of weights, with 1 to 3 spatial dims.
  void convolutions() {
    for (const DType dtype : floats) {
      for (const Sizes& spatial : {Sizes{1024}, {24, 24}, {8, 9, 10}}) {
        for (const auto& [channels, groups] :
             {std::pair<int64_t, int64_t>{64, 1}, {64, 4}, {64, 32}, {64, 64}, {63, 63}, {3, 1}}) {
          for (const auto& [layout, of] :
               {std::pair<const char*, Layout>{"dense", rows}, {"channels last", channels_last}, {"sliced", sliced}}) {
            const auto name =
                fmt::format("{} spatial dims, {} channels in {} groups, {}", spatial.size(), channels, groups, layout);
            Sizes image{4, channels}, kernel{channels, channels / groups};
            image.insert(image.end(), spatial.begin(), spatial.end());
            kernel.resize(image.size(), 3);
            ep_convolution_attributes attributes{};
            attributes.spatial_rank = static_cast<int32_t>(spatial.size());
            attributes.groups = static_cast<int32_t>(groups);
            for (size_t i = 0; i < spatial.size(); ++i) {
              attributes.stride[i] = attributes.dilation[i] = attributes.pad_low[i] = attributes.pad_high[i] = 1;
            }
            for (const int32_t transposed : {0, 1}) {
              attributes.transposed = transposed;
              add(EP_PRIMITIVE_convolution, dtype, (transposed != 0 ? "transposed, " : "") + name,
                  {of(EP_ROLE_DST, dtype, image), of(EP_ROLE_SRC, dtype, image), rows(EP_ROLE_WEIGHT, dtype, kernel)})
                  .attributes.convolution = attributes;
            }
            ep_convolution_weight_attributes& weight =
                add(EP_PRIMITIVE_convolution_weight, dtype, name,
                    {rows(EP_ROLE_DST, dtype, kernel), of(EP_ROLE_SRC, dtype, image),
                     of(EP_ROLE_GRADIENT, dtype, image)})
                    .attributes.convolution_weight;
            weight.spatial_rank = attributes.spatial_rank;
            weight.groups = attributes.groups;
            std::copy_n(attributes.stride, 3, weight.stride);
            std::copy_n(attributes.dilation, 3, weight.dilation);
            std::copy_n(attributes.pad_low, 3, weight.pad_low);
          }
        }
      }
    }
  }

  void sequences() {
    for (const DType dtype : floats) {
      const Sizes heads{1, 12, 256, 64};
      ep_attention_attributes attention{};
      attention.align = EP_ATTENTION_START;
      attention.before = attention.after = -1;
      add(EP_PRIMITIVE_attention, dtype, "dense",
          {rows(EP_ROLE_DST, dtype, heads), rows(EP_ROLE_SRC, dtype, heads), rows(EP_ROLE_SRC_B, dtype, heads),
           rows(EP_ROLE_SRC_C, dtype, heads)})
          .attributes.attention = attention;
      for (const auto& [cell, gates] : {std::pair<int32_t, int64_t>{EP_CELL_LSTM, 4}, {EP_CELL_GRU, 3}}) {
        add(EP_PRIMITIVE_recurrent, dtype, fmt::format("{} gates", gates),
            {rows(EP_ROLE_DST, dtype, {40, 2, 128}), rows(EP_ROLE_SRC, dtype, {40, 2, 70}),
             rows(EP_ROLE_WEIGHT, dtype, {gates * 128, 70}), rows(EP_ROLE_RECURRENT_WEIGHT, dtype, {gates * 128, 128})})
            .attributes.recurrent.cell = cell;
      }
    }
  }

  void products() {
    for (const DType dtype : numbers) {
      struct Shape {
        const char* name;
        int64_t batch, m, n, k;
      };
      for (const Shape& s : {Shape{"square", 1, 96, 96, 96}, {"vector", 1, 1, 1024, 1024}, {"batch", 4, 64, 48, 80}}) {
        for (const auto& [layout, of] :
             {std::pair<const char*, Layout>{"dense", rows}, {"turned", turned}, {"sliced", sliced}}) {
          const ep_primitive_desc bare =
              descriptor(EP_PRIMITIVE_matmul,
                         {rows(EP_ROLE_DST, dtype, {s.batch, s.m, s.n}), rows(EP_ROLE_SRC, dtype, {s.batch, s.m, s.k}),
                          of(EP_ROLE_SRC_B, dtype, {s.batch, s.k, s.n})});
          with_epilogues(dtype, fmt::format("{} {}", s.name, layout), bare);
        }
      }
    }
    for (const DType dtype : floats) {
      for (const int64_t groups : {1, 64}) {
        for (const int64_t kernel : {1, 3}) {
          for (const auto& [layout, of] :
               {std::pair<const char*, Layout>{"dense", rows}, {"channels last", channels_last}}) {
            const Sizes image{1, 64, 28, 28};
            ep_primitive_desc bare =
                descriptor(EP_PRIMITIVE_convolution, {of(EP_ROLE_DST, dtype, image), of(EP_ROLE_SRC, dtype, image),
                                                      rows(EP_ROLE_WEIGHT, dtype, {64, 64 / groups, kernel, kernel})});
            ep_convolution_attributes& attributes = bare.attributes.convolution;
            attributes.spatial_rank = 2;
            attributes.groups = groups;
            for (int i = 0; i < 2; ++i) {
              attributes.stride[i] = attributes.dilation[i] = 1;
              attributes.pad_low[i] = attributes.pad_high[i] = kernel / 2;
            }
            with_epilogues(dtype, fmt::format("{} groups of {} x {} {}", groups, kernel, kernel, layout), bare);
          }
        }
      }
    }
  }

  // The product alone, and with the chains of epilogues of models.
  void with_epilogues(DType dtype, const std::string& name, const ep_primitive_desc& bare) {
    all.push_back({name, bare, dtype});
    if (!is_floating(dtype)) return;
    for (const int32_t op : {EP_UNARY_relu, EP_UNARY_sigmoid, EP_UNARY_gelu, EP_UNARY_silu, EP_UNARY_tanh}) {
      ep_primitive_desc after = bare;
      after.epilogues[after.epilogue_count++] = {1, op, 0, 4};
      ep_primitive_desc residual_after = after, residual_first = bare;
      then_add_residual(&residual_first);
      residual_first.epilogues[residual_first.epilogue_count++] = {1, op, 0, 4};
      const int32_t role = EP_ROLE_EPILOGUE_0 + 1;
      residual_after.operands[residual_after.operand_count] = bare.operands[0];
      residual_after.operands[residual_after.operand_count++].role = role;
      residual_after.epilogues[residual_after.epilogue_count++] = {2, EP_BINARY_add, role, 0};
      const std::string_view activation = table::unary_row(op)->name;
      all.push_back({fmt::format("{}, then {}", name, activation), after, dtype});
      all.push_back({fmt::format("{}, then {}, add", name, activation), residual_after, dtype});
      all.push_back({fmt::format("{}, then add, {}", name, activation), residual_first, dtype});
    }
  }
};

// The implementation that would compute `desc`, or "refused".
std::string implementation_of(OpenProvider& cpu, const ep_primitive_desc& desc) {
  ep_support_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_SUPPORT_INFO;
  ep_error* error = nullptr;
  const ep_status status = cpu.ops.primitive_support(cpu.device, &desc, &info, &error);
  if (status != EP_STATUS_OK) return "refused";
  return {info.implementation.data, info.implementation.size};
}

bool names(std::string_view list, std::string_view word) {
  return list.empty() || fmt::format(" {} ", list).find(fmt::format(" {} ", word)) != std::string::npos;
}

// The row that excuses `work` on `target`; null: none.
const Exception* exception_of(const Work& work, std::string_view target) {
  for (const Exception& row : exceptions) {
    if (row.kind == table::kind_name(work.desc.kind) && names(row.dtypes, dtype_name(work.dtype)) &&
        work.name.rfind(row.what, 0) == 0 && (row.target.empty() || row.target == target)) {
      return &row;
    }
  }
  return nullptr;
}

// If the provider refuses the epilogues, the host runs them after the product, which must be fast.
bool is_separated(OpenProvider& cpu, const Work& work, const std::string& implementation) {
  if (implementation != "refused" || work.desc.epilogue_count == 0) return false;
  ep_primitive_desc bare = work.desc;
  bare.epilogue_count = 0;
  bare.operand_count = 3;
  const std::string alone = implementation_of(cpu, bare);
  return alone != "plain" && alone != "refused";
}

TEST(Plain, ComputesNoLargeWorkWithoutAReason) {
  Walk walk;
  walk.scalar_functions();
  walk.reductions();
  walk.norms();
  walk.poolings();
  walk.convolutions();
  walk.sequences();
  walk.products();
  ASSERT_GT(walk.all.size(), 2000U);
  const char* const named = std::getenv("PLAIN_SIMD");
  const std::string simd = named == nullptr ? "avx3" : named;
  const std::unique_ptr<OpenProvider> cpu = open_on_target(simd);
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << simd;
  std::set<const Exception*> used;
  for (const Work& work : walk.all) {
    const std::string implementation = implementation_of(*cpu, work.desc);
    if (implementation != "plain" && implementation != "refused") continue;
    if (is_separated(*cpu, work, implementation)) continue;
    const Exception* row = exception_of(work, simd);
    used.insert(row);
    EXPECT_NE(row, nullptr) << simd << ": " << table::kind_name(work.desc.kind) << " " << dtype_name(work.dtype) << " "
                            << work.name << " is " << implementation << ". Give it a fast kernel, or a row in "
                            << "`exceptions` that says why it has none.";
  }
  for (const Exception& row : exceptions) {
    const bool is_needed = used.count(&row) != 0 || !(row.target.empty() || row.target == simd);
    EXPECT_TRUE(is_needed) << "no work needs the row " << row.kind << " [" << row.dtypes << "] " << row.what;
  }
}

}  // namespace
}  // namespace tenon::provider
