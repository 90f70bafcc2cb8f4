// attention in double, query by query, with the same blocks of keys and running sums.
#include <cmath>
#include <limits>

#include "providers/cpu/attention/attention.h"
#include "providers/cpu/attention/problem.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr double none = -std::numeric_limits<double>::infinity();

// One element of any floating type.
class Element {
 public:
  explicit Element(int32_t dtype)
      : wide_(wide_dtype(dtype)), read_(widen(dtype)), write_(narrow(EP_DTYPE_f64, dtype)) {}
  double get(const char* at) const {
    double value = 0;
    float single = 0;
    if (wide_ == EP_DTYPE_f64) {
      read_(&value, 1, at, 1, 1);
      return value;
    }
    read_(&single, 1, at, 1, 1);
    return static_cast<double>(single);
  }
  void set(char* at, double value) const { write_(at, 1, &value, 1, 1); }

 private:
  int32_t wide_;
  ConvertFunction read_;
  ConvertFunction write_;
};

class PlainAttentionPrimitive final : public ep_primitive {
 public:
  PlainAttentionPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc), threads_(on.threads), element_(desc.operands[0].dtype) {}

  bool has_workspace() const override { return true; }
  uint64_t workspace(const ep_shape* shapes) const override {
    return static_cast<uint64_t>(threads_ * AttentionSizes(desc_, shapes).columns) * sizeof(double);
  }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1)
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "attention has no launch scalar 0 (scale).");
    const AttentionProblem p(desc_, launch);
    const int64_t rows = p.batch * p.heads * p.queries;
    parallel(device->threads, rows * p.keys * (p.width + p.columns), [&](int32_t part, int32_t parts) {
      auto* const sums = reinterpret_cast<double*>(address_of(launch.workspace)) + runner() * p.columns;
      for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
        query(p, row / p.queries / p.heads, row / p.queries % p.heads, row % p.queries, sums);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  double score(const AttentionProblem& p, int64_t b, int64_t head, int64_t i, int64_t j) const {
    const char* bias = p.bias.base == nullptr ? nullptr : p.bias.at(b, head, i) + j * p.bias.strides[3] * p.bias.size;
    const bool selects = bias != nullptr && p.bias.dtype == EP_DTYPE_bool;
    if (selects && *bias == 0) return none;
    const char* x = p.query.at(b, head, i);
    const char* y = p.key.at(b, p.head_of_key(head), j);
    double sum = 0;
    for (int64_t k = 0; k < p.width; ++k) {
      sum +=
          element_.get(x + k * p.query.strides[3] * p.query.size) * element_.get(y + k * p.key.strides[3] * p.key.size);
    }
    sum *= p.scale;
    if (p.softcap > 0) sum = p.softcap * std::tanh(sum / p.softcap);
    return bias == nullptr || selects ? sum : sum + element_.get(bias);
  }

  void query(const AttentionProblem& p, int64_t b, int64_t head, int64_t i, double* sums) const {
    double most = none;
    double total = 0;
    std::fill_n(sums, p.columns, 0.0);
    const KeyRange range = p.range(p.length(b), i);
    for (int64_t j = range.first; j < range.end; ++j) {
      const double s = score(p, b, head, i, j);
      if (s == none) continue;
      const double greatest = s > most || std::isnan(s) ? s : most;
      const double factor = most == none ? 0 : std::exp(most - greatest);
      const double weight = std::exp(s - greatest);
      most = greatest;
      total = total * factor + weight;
      const char* value = p.value.at(b, p.head_of_key(head), j);
      for (int64_t c = 0; c < p.columns; ++c) {
        sums[c] = sums[c] * factor + weight * element_.get(value + c * p.value.strides[3] * p.value.size);
      }
    }
    char* const to = p.dst.at(b, head, i);
    for (int64_t c = 0; c < p.columns; ++c) {
      element_.set(to + c * p.dst.strides[3] * p.dst.size, total == 0 ? 0 : sums[c] / total);
    }
    p.store_log_sum(b, head, i, total == 0 ? none : most + std::log(total));
  }

  ep_primitive_desc desc_;
  int32_t threads_;
  Element element_;
};

}  // namespace

Refusal Attention::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t align = desc.attributes.attention.align;
  if (!is_row_float(dtype)) return Refusal::because("%s is not a float", dtype_name(dtype));
  if (align != EP_ATTENTION_START && align != EP_ATTENTION_END) return Refusal::because("align %d", align);
  for (int32_t role : {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C}) {
    const ep_operand_desc* each = operand(desc, role);
    if (each == nullptr || each->rank != 4) return Refusal::because("operand %d is missing or not of rank 4", role);
    if (each->dtype != dtype) return Refusal::because("%s beside %s", dtype_name(each->dtype), dtype_name(dtype));
  }
  const ep_operand_desc* bias = operand(desc, EP_ROLE_BIAS);
  if (bias != nullptr && (bias->rank != 4 || (bias->dtype != EP_DTYPE_bool && bias->dtype != dtype)))
    return Refusal::because("a bias of %s", dtype_name(bias->dtype));
  const ep_operand_desc* lengths = operand(desc, EP_ROLE_LENGTHS);
  if (lengths != nullptr && (lengths->rank != 1 || (lengths->dtype != EP_DTYPE_i32 && lengths->dtype != EP_DTYPE_i64)))
    return Refusal::because("lengths of %s", dtype_name(lengths->dtype));
  const ep_operand_desc* log_sum = operand(desc, EP_ROLE_LOG_SUM);
  const int32_t statistics = dtype == EP_DTYPE_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32;
  if (log_sum != nullptr && (log_sum->rank != 4 || log_sum->dtype != statistics))
    return Refusal::because("a logarithm of %s", dtype_name(log_sum->dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Attention::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<PlainAttentionPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
