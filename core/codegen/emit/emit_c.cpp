// Prints EP_DIALECT_C: a kernel as a C function, with its loops.
#include <algorithm>

#include "core/codegen/emit/c_printer.h"

namespace tenon::codegen {
namespace {

// Outputs of more bytes do not stay in a cache anyway; stores past it save the reading of each line.
constexpr int64_t kFarBytes = int64_t{16} << 20;

}  // namespace

KernelText CPrinter::emit() {
  const symbolic::ArenaScope scope(kernel_.arena);
  for (size_t id = 0; id < kernel_.stages.size(); ++id) {
    if (kernel_.stages[id].storage == Storage::row) lay_out(static_cast<Id>(id));
  }
  find_guarded_loads();
  KernelText result;
  result.dialect = EP_DIALECT_C;
  result.entry = "k_" + kernel_.name;
  body(result.entry);
  const std::string code = functions_text() + body_;
  result.text = prelude(code) + code;
  result.buffer_count = static_cast<uint32_t>(kernel_.buffers.size());
  result.parameter_bytes = static_cast<uint32_t>(8 * kernel_.parameters.size());
  result.shared_bytes = static_cast<uint32_t>(local_);
  result.flags = faults_ ? EP_ENTRY_FLAG_FAULTS : 0;
  return result;
}

std::string CPrinter::prelude(const std::string& code) const {
  return fmt::format("{}{}{}", prelude_c_types(), turns_ ? prelude_c_turn() : "", prelude_c(uses_, code));
}

std::string CPrinter::functions_text() const {
  std::string text;
  for (const auto& function : functions_) text += function.second;
  return text;
}

std::string CPrinter::name_of(DType dtype) {
  uses_.numbers.insert(computed(dtype));
  return std::string(dtype_name(computed(dtype)));
}

std::string CPrinter::memory_of(DType dtype) {
  uses_.numbers.insert(computed(dtype));
  uses_.memory.insert(dtype);
  return std::string(dtype_name(dtype));
}

void CPrinter::step(const Context& context, Id id, Memo* memo) {
  const Stage& stage = kernel_.stages[id];
  if (stage.kind != StageKind::reduce) held_copies_[id] = context.copies;
  for (int64_t copy = 0; copy < context.copies; ++copy) {
    const std::string value = expr(context, stage.value, copy, memo);
    switch (stage.kind) {
      case StageKind::reduce: accumulate(context, id, copy, value); break;
      case StageKind::store: store(context, stage, copy, value); break;
      case StageKind::value:
        if (stage.storage == Storage::row) {
          write_row(context, id, copy, value);
        } else {
          line("const {} s{}_{} = {};", vector_of(stage.dtype), id, copy, value);
        }
    }
  }
}

void CPrinter::store(const Context& context, const Stage& stage, int64_t copy, const std::string& value) {
  const std::string type = memory_of(stage.dtype);
  const std::string address = fmt::format("b{} + {}", stage.buffer, size(context, stage.index, lane_of(copy)));
  const Stride step = stride(context, stage.index);
  if (!step.linear) {
    line("{{");
    line("  const {} k = ep_give_{}({});", c_memory_vector(stage.dtype), type, value);
    line("  for (int64_t i = 0; i < {}; ++i) b{}[{}] = k[i];", context.count(), stage.buffer,
         size(context, stage.index, fmt::format("{} + i", kLanes * copy)));
    line("}}");
  } else if (is_number(step.step, 0)) {
    line("ep_scatter_{}({}, 1, {}, 1);", type, address, value);
  } else if (!is_number(step.step, 1)) {
    line("ep_scatter_{}({}, {}, {}, {});", type, address, size(context, step.step), value, context.count());
  } else if (context.part.empty()) {
    line("ep_store_far_{}({}, {}, far{});", type, address, value, stage.buffer);
  } else {
    line("ep_store_part_{}({}, {}, {});", type, address, value, context.part);
  }
}

void CPrinter::statements(const Context& context, const std::vector<Node>& nodes, size_t depth) {
  Memo memo;
  for (const Node& node : nodes) {
    if (!node.is_loop()) {
      step(context, node.stage, &memo);
      continue;
    }
    const std::vector<Id> reductions = places_.starting(node, depth);
    for (const Id id : reductions) begin_reduction(context, id);
    loop(context, node, depth);
    for (const Id id : reductions) end_reduction(context, id);
  }
}

void CPrinter::loop(const Context& context, const Node& node, size_t depth) {
  if (node.kind == LoopKind::vector) return vector_loop(context, node, depth);
  const Part part = context.parts()[node.axis];
  const std::string at = fmt::format("i{}", next_++);
  if (node.kind == LoopKind::items) {
    line("for (int64_t item = begin; item < end; item += {}) {{", node.unroll);
    ++indent_;
    line("const int64_t {} = item{};", at, node.step == 1 ? "" : fmt::format(" * {}", node.step));
  } else {
    line("for (int64_t {} = {}; {} < {}; {} += {}) {{", at, part.lo, at, part.hi, at, node.step);
    ++indent_;
  }
  Context inside = context;
  inside.at[node.axis] = at;
  inside.levels.push_back(context.parts());
  Part& left = inside.levels.back()[node.axis];
  left = {at, fmt::format("{} + 1", at)};
  if (node.step != 1) {
    left.hi = fmt::format("h{}", next_++);
    const std::string length = node.unroll == 1 ? fmt::format("{}", node.step)
                                                : fmt::format("ep_least({}, end - item) * {}", node.unroll, node.step);
    line("const int64_t {} = ep_least({} + {}, {});", left.hi, at, length, part.hi);
    left.most = left_by(node);
    const std::optional<int64_t> extent = most(kernel_.axes[node.axis].extent);
    if (extent) left.most = std::clamp<int64_t>(*extent, 1, left.most);
    turn(&inside, node);
  }
  if (node.kind == LoopKind::serial && node.step != 1) inside.block = &node;
  // If several loops read columns, a loop that does more than add up prefetches the neighbouring columns. Where threads
  // share columns, no hardware prefetcher knows where a line continues.
  if (inside.vector_axis != kNone && node.step == 1) {
    const bool works = std::any_of(node.body.begin(), node.body.end(), [&](const Node& step) {
      return !step.is_loop() && kernel_.stages[step.stage].kind != StageKind::reduce;
    });
    inside.ahead = works ? inside.vector_axis : kNone;
  } else if (kernel_.body.front().unroll > 1 && node.kind == LoopKind::serial) {
    inside.ahead = node.axis;
  }
  statements(inside, node.body, depth + 1);
  --indent_;
  line("}}");
}

void CPrinter::vector_loop(const Context& context, const Node& node, size_t depth) {
  const Part part = context.parts()[node.axis];
  const std::string at = fmt::format("i{}", next_++);
  Context inside = context;
  inside.at[node.axis] = at;
  inside.vector_axis = node.axis;
  if (inside.block != nullptr && inside.block->axis != node.axis) inside.block = nullptr;
  // Loops that only add up wait for memory themselves, so they do not prefetch.
  inside.prefetches = std::any_of(node.body.begin(), node.body.end(), [&](const Node& step) {
    return !step.is_loop() && kernel_.stages[step.stage].kind != StageKind::reduce;
  });
  inside.levels.push_back(context.parts());
  inside.levels.back()[node.axis] = {at, ""};
  // The known bounds of the length: if the loop covers the whole axis, those of the axis.
  const bool whole = part.lo == "0";
  const SymDim extent = kernel_.axes[node.axis].extent;
  const int64_t length = whole && extent.is_number() ? extent.number() : -1;
  const int64_t divisor = whole ? (length == 0 ? kLanes : kernel_.arena.divisor(extent)) : 1;
  const int64_t block = kLanes * node.unroll;
  line("int64_t {} = {};", at, part.lo);
  if (node.unroll > 1 && (length < 0 || length >= block)) {
    line("for (; {} + {} <= {}; {} += {}) {{", at, block, part.hi, at, block);
    inside.copies = node.unroll;
    block_of(inside, node, depth);
  }
  inside.copies = 1;
  const bool rest = length >= 0 ? length % block >= kLanes || node.unroll == 1 : divisor % block != 0;
  if ((rest || node.unroll == 1) && (length < 0 || length >= kLanes)) {
    line("for (; {} + EP_LANES <= {}; {} += EP_LANES) {{", at, part.hi, at);
    block_of(inside, node, depth);
  }
  if (divisor % kLanes == 0 && divisor != 0) return;
  line("if ({} < {}) {{", at, part.hi);
  inside.part = fmt::format("n{}", next_++);
  line("  const int64_t {} = {} - {};", inside.part, part.hi, at);
  block_of(inside, node, depth);
}

void CPrinter::block_of(const Context& inside, const Node& node, size_t depth) {
  ++indent_;
  statements(inside, node.body, depth + 1);
  --indent_;
  line("}}");
}

void CPrinter::body(const std::string& entry) {
  const std::string head =
      fmt::format("void {}(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local{})",
                  entry, faults_ ? ", EP_FAULT_PARAMETER" : "");
  line("{};", head);
  line("{} {{", head);
  ++indent_;
  for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
    line("const int64_t p{} = ((const int64_t*)parameters)[{}];", i, i);
  }
  if (kernel_.parameters.empty()) line("(void)parameters;");
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const char* access = kernel_.buffers[i].output ? "" : "const ";
    line("{}{}* const b{} = ({}{}*)buffers[{}];", access, c_storage(kernel_.buffers[i].dtype), i, access,
         c_storage(kernel_.buffers[i].dtype), i);
  }
  line("(void)local;");
  std::string far = "0";
  const Context none;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    if (!kernel_.buffers[i].output) continue;
    std::string over;  // a store over data that was just read hits the cache
    for (size_t k = 0; k < kernel_.buffers.size(); ++k) {
      if (!kernel_.buffers[k].output) over += fmt::format(" && (const void*)b{} != (const void*)b{}", i, k);
    }
    line("const int far{} = ({}) * {} > {}{};", i, size(none, kernel_.buffers[i].elements),
         dtype_size(kernel_.buffers[i].dtype), kFarBytes, over);
    far += fmt::format(" | far{}", i);
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i]) continue;
    const DType dtype = kernel_.stages[i].dtype == DType::boolean ? DType::i32 : row_dtype(kernel_.stages[i].dtype);
    line("{}* const row{} = ({}*)((char*)local + {});", c_storage(dtype), i, c_storage(dtype), rows_[i]->offset);
  }
  Context context;
  context.at.resize(kernel_.axes.size());
  context.levels.emplace_back();
  for (const Axis& axis : kernel_.axes) {
    context.levels.back().push_back({"0", size(context, axis.extent), most(axis.extent).value_or(0)});
  }
  std::set<Id> seen;
  for (const Stage& stage : kernel_.stages) settle(stage.value, &seen);
  statements(context, kernel_.body, 0);
  line("if ({}) {{ EP_FENCE }}", far);
  --indent_;
  line("}}");
}

Result<KernelText> emit_c(const Kernel& kernel) {
  TENON_RETURN_IF_ERROR(verify(kernel));
  if (!kernel.scheduled()) {
    return Status(Code::invalid_argument, fmt::format("Kernel {} has no loops; schedule it first.", kernel.name));
  }
  try {
    return CPrinter(kernel).emit();
  } catch (const Error& error) {
    return error.status();
  }
}

}  // namespace tenon::codegen
