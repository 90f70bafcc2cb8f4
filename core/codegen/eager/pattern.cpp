#include "core/codegen/eager/pattern.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "core/codegen/fuse/legality.h"
#include "core/interpreter/order.h"
#include "core/ops/op_rows.h"
#include "primitives/infer/broadcast.h"
#include "primitives/simplify/simplify.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

int64_t count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

class Reader {
 public:
  Reader(const OpCall& call, const std::vector<TensorMeta>& outputs) : call_(call), outputs_(outputs) {}

  Result<Pattern> run() {
    note(std::string(call_.op->name));
    bytes(call_.attributes, call_.op->attribute_bytes);
    note(fmt::format("{}", static_cast<int>(call_.precision)));
    made_.folded = call_.op->form == OpForm::elementwise || is_cast();
    const Status read = made_.folded ? fold() : each_input();
    if (!read.ok()) return read;
    bake_scalars();
    return std::move(made_);
  }

 private:
  static Status no(std::string why) { return Status(Code::unsupported, std::move(why)); }
  bool is_cast() const { return call_.op == &op_row(OpId::cast); }
  void note(const std::string& text) { made_.key += text + ";"; }
  void bytes(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) made_.key += fmt::format("{:02x}", static_cast<const uint8_t*>(data)[i]);
    made_.key += ';';
  }

  Length length(int64_t number) {
    if (number <= 1 || exact_) return {number, kNoSize};
    made_.sizes.push_back(number);
    return {number, static_cast<uint32_t>(made_.sizes.size() - 1)};
  }
  // The lengths of an input's dims. A dim that is as long as the dim of an earlier input at the same distance from the
  // end shares its size.
  std::vector<Length> lengths(const Dims& dims) {
    std::vector<Length> all;
    for (int32_t dim = 0; dim < dims.rank(); ++dim) {
      const auto behind = static_cast<size_t>(dims.rank() - dim);
      const Length* known = nullptr;
      for (const std::vector<Length>& before : seen_) {
        if (before.size() < behind || before[before.size() - behind].number != dims[dim]) continue;
        known = &before[before.size() - behind];
        break;
      }
      all.push_back(known != nullptr ? *known : length(dims[dim]));
    }
    seen_.push_back(all);
    return all;
  }

  // A reduction of many elements to few items is split into two; how depends on the sizes.
  bool is_long_reduction() const {
    if (call_.inputs.empty() || call_.inputs[0] == nullptr) return false;
    const auto items = static_cast<double>(count(outputs_[0].dims));
    return items < kFewItems && static_cast<double>(call_.inputs[0]->elements()) >= kManyElements;
  }

  Status each_input() {
    exact_ = is_long_reduction();
    for (const Tensor* input : call_.inputs) {
      if (input == nullptr) {
        made_.sources.emplace_back();
        note("absent");
        continue;
      }
      const TensorImpl& impl = *input->impl();
      TENON_RETURN_IF_ERROR(add(impl.dtype, lengths(impl.dims), impl.strides));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) note(std::string(dtype_name(outputs_[i].dtype)));
    return {};
  }

  // The axes of an element-wise call are those of its result, folded to as few as possible.
  Status fold() {
    const Dims& all = outputs_[0].dims;
    std::vector<Dims> strides{outputs_[0].strides};
    std::vector<size_t> inputs;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      if (call_.inputs[i] == nullptr) continue;
      const TensorImpl& impl = *call_.inputs[i]->impl();
      strides.push_back(infer::broadcast_strides(impl.dims, impl.strides, all));
      inputs.push_back(i);
    }
    if (inputs.empty()) return no("it reads no tensor");
    Dims dims = folded(all, &strides);
    if (!(strides[0] == contiguous_strides(dims))) {
      if (is_cast()) return no("its result has gaps, but kernels write dense results");
      made_.written_apart = true;
      strides[0] = contiguous_strides(all);
      for (size_t k = 0; k < inputs.size(); ++k) {
        const TensorImpl& impl = *call_.inputs[inputs[k]]->impl();
        strides[k + 1] = infer::broadcast_strides(impl.dims, impl.strides, all);
      }
      dims = folded(all, &strides);
    }
    made_.folded_dims = dims;
    note(std::string(dtype_name(outputs_[0].dtype)));
    return sources(lengths(dims), strides, inputs);
  }

  static Dims folded(const Dims& all, std::vector<Dims>* strides) {
    std::vector<std::array<int64_t, EP_MAX_RANK>> room(strides->size());
    std::array<int64_t, EP_MAX_RANK> dims{};
    std::vector<int64_t*> pointers;
    std::copy(all.begin(), all.end(), dims.begin());
    for (size_t i = 0; i < room.size(); ++i) {
      std::copy((*strides)[i].begin(), (*strides)[i].end(), room[i].begin());
      pointers.push_back(room[i].data());
    }
    const auto rank = static_cast<size_t>(
        simplify::fold_elementwise(all.rank(), dims.data(), pointers.data(), static_cast<int32_t>(pointers.size())));
    for (size_t i = 0; i < room.size(); ++i) (*strides)[i] = Dims(std::span<const int64_t>(room[i].data(), rank));
    return Dims(std::span<const int64_t>(dims.data(), rank));
  }

  // Arguments broadcast: an axis that an argument repeats has length 1. If all arguments repeat it, one of them has its
  // full length.
  Status sources(const std::vector<Length>& dims, const std::vector<Dims>& strides, const std::vector<size_t>& inputs) {
    DType compute = DType::none;
    for (size_t i = call_.op->cond_first ? 1 : 0; i < call_.inputs.size() && compute == DType::none; ++i) {
      if (call_.inputs[i] != nullptr) compute = call_.inputs[i]->dtype();
    }
    size_t next = 0;
    const size_t arguments = std::max(call_.inputs.size(), call_.op->form == OpForm::elementwise ? arity() : 1);
    for (size_t i = 0; i < arguments; ++i) {
      if (next >= inputs.size() || inputs[next] != i) {
        TENON_RETURN_IF_ERROR(number(i, compute));
        continue;
      }
      std::vector<Length> own = dims;
      for (size_t dim = 0; dim < dims.size(); ++dim) {
        const auto repeats = [&](const Dims& steps) { return steps[static_cast<int32_t>(dim)] == 0; };
        const bool everywhere = next == 0 && std::all_of(strides.begin() + 1, strides.end(), repeats);
        if (repeats(strides[next + 1]) && !everywhere) own[dim] = {1, kNoSize};
      }
      TENON_RETURN_IF_ERROR(add(call_.inputs[i]->dtype(), own, strides[next + 1]));
      ++next;
    }
    return {};
  }

  size_t arity() const { return static_cast<size_t>(call_.op->kind - EP_PRIMITIVE_unary + 1); }

  // A launch scalar that replaces an argument becomes a tensor of rank 0, so no text contains its value.
  Status number(size_t i, DType dtype) {
    if (i >= call_.scalars.size() || dtype == DType::none) return no("an argument is absent");
    Source source;
    source.dtype = call_.op->cond_first && i == 0 ? DType::boolean : dtype;
    source.scalar = static_cast<int32_t>(i);
    note(fmt::format("{} number", dtype_name(source.dtype)));
    made_.sources.push_back(std::move(source));
    return {};
  }

  // Other scalars become numbers in the text.
  void bake_scalars() {
    std::vector<bool> taken(call_.scalars.size(), false);
    for (const Source& source : made_.sources) {
      if (source.scalar >= 0) taken[static_cast<size_t>(source.scalar)] = true;
    }
    const bool stands_for_input = call_.op->form == OpForm::elementwise && call_.op->kind != EP_PRIMITIVE_unary;
    for (size_t i = 0; i < call_.scalars.size(); ++i) {
      if (taken[i] || stands_for_input) continue;
      const double value = call_.scalars[i].to_double();
      bytes(&value, sizeof value);
      made_.baked = true;
    }
  }

  // Adds an input with `dims` and `strides`.
  Status add(DType dtype, const std::vector<Length>& dims, const Dims& strides) {
    Source source;
    source.dtype = dtype;
    source.dims = dims;
    const Dims numbers = source.numbers();
    if (count(numbers) != 0 && !is_contiguous(numbers, strides)) TENON_RETURN_IF_ERROR(view(dims, strides, &source));
    describe(source);
    made_.sources.push_back(std::move(source));
    return {};
  }

  // Sets `source` for a tensor whose elements are not row-major.
  Status view(const std::vector<Length>& dims, const Dims& strides, Source* source) {
    std::vector<int32_t> axes;  // the largest stride first
    for (int32_t dim = 0; dim < strides.rank(); ++dim) {
      const Length own = dims[static_cast<size_t>(dim)];
      if (own.number > 1 && strides[dim] != 0) {
        axes.push_back(dim);
        continue;
      }
      source->ones.push_back(dim);
      if (own.number > 1) source->repeats.emplace_back(dim, own);
    }
    std::stable_sort(axes.begin(), axes.end(), [&](int32_t a, int32_t b) { return strides[a] > strides[b]; });
    source->dims.clear();
    for (size_t i = 0; i < axes.size(); ++i) {
      const Length own = dims[static_cast<size_t>(axes[i])];
      const int64_t step = strides[axes[i]];
      const int64_t room = i == 0 ? own.number : strides[axes[i - 1]] / step;
      if (i != 0 && (strides[axes[i - 1]] % step != 0 || room < own.number))
        return no("the strides of an input overlap");
      source->dims.push_back(room == own.number ? own : length(room));
      if (room != own.number) source->slices.emplace_back(static_cast<int32_t>(i), own);
    }
    if (!axes.empty() && strides[axes.back()] > 1) {
      source->dims.push_back(length(strides[axes.back()]));
      source->selects = true;
    }
    put_in_order(axes, source);
    return {};
  }

  static void put_in_order(const std::vector<int32_t>& axes, Source* source) {
    if (std::is_sorted(axes.begin(), axes.end())) return;
    source->order.resize(axes.size());
    std::iota(source->order.begin(), source->order.end(), 0);
    std::sort(source->order.begin(), source->order.end(),
              [&](int64_t a, int64_t b) { return axes[static_cast<size_t>(a)] < axes[static_cast<size_t>(b)]; });
  }

  static std::string text(const Length& length) {
    return length.size == kNoSize ? fmt::format("{}", length.number) : fmt::format("n{}", length.size);
  }
  void describe(const Source& source) {
    std::string all(dtype_name(source.dtype));
    for (const Length& dim : source.dims) all += " " + text(dim);
    for (const auto& [dim, length] : source.slices) all += fmt::format(" slice {} {}", dim, text(length));
    if (source.selects) all += " select";
    for (const int64_t dim : source.order) all += fmt::format(" from {}", dim);
    for (const int64_t dim : source.ones) all += fmt::format(" one {}", dim);
    for (const auto& [dim, length] : source.repeats) all += fmt::format(" repeat {} {}", dim, text(length));
    note(all);
  }

  const OpCall& call_;
  const std::vector<TensorMeta>& outputs_;
  bool exact_ = false;                     // sizes are baked as numbers
  std::vector<std::vector<Length>> seen_;  // dims of earlier inputs
  Pattern made_;
};

}  // namespace

Dims Source::numbers() const {
  Dims all;
  for (const Length& dim : dims) all.push_back(dim.number);
  return all;
}

Result<Pattern> pattern_of(const OpCall& call, DeviceState* device, const std::vector<TensorMeta>& outputs) {
  if (device->layouts) return Status(Code::unsupported, "the device has layouts of its own");
  if (call.inputs.empty()) return Status(Code::unsupported, "it reads no tensor");
  if (!call.epilogues.empty()) return Status(Code::unsupported, "it has epilogues");
  return Reader(call, outputs).run();
}

}  // namespace tenon::codegen
