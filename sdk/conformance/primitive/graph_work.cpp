#include "sdk/conformance/primitive/graph_work.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "primitives/dtype/dtype.h"
#include "primitives/reference/reference.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"
#include "sdk/conformance/primitive/work.h"
#include "tests/cases/compare.h"

namespace tenon::conformance {
namespace {

constexpr uint64_t workspace_alignment = 256;

bool is_scalar(const ep_operand_desc& operand) { return (operand.flags & EP_OPERAND_FLAG_SCALAR) != 0; }

int64_t reach_of(const ep_operand_desc& operand) {
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return last + 1;
}

int64_t count_of(const ep_operand_desc& operand) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) count *= operand.dims[axis];
  return count;
}

ep_primitive_desc baked(const cases::Case& test) {
  ep_primitive_desc desc = test.desc;
  for (uint32_t slot = 0; slot < EP_MAX_SCALARS && slot < test.scalars.size(); ++slot) {
    desc.baked_scalars |= uint32_t{1} << slot;
    desc.scalars[slot] = test.scalars[slot];
  }
  return desc;
}

bool is_output(const ep_primitive_desc& desc, uint32_t index) {
  return table::is_output(desc.kind, desc.operands[index].role);
}

}  // namespace

bool has_dense_outputs(const cases::Case& test) {
  for (uint32_t i = 0; i < test.desc.operand_count; ++i) {
    if (is_output(test.desc, i) && count_of(test.desc.operands[i]) != reach_of(test.desc.operands[i])) return false;
  }
  return true;
}

GraphWork::GraphWork(Subject& subject, const std::vector<cases::Case>& tests, Options options)
    : subject_(subject), options_(options) {
  for (const cases::Case& test : tests) {
    Part& part = parts_.emplace_back();
    part.test = test;
    part.test.desc = baked(test);
    part.start = cases::make_image(part.test.desc, false);
    cases::fill_inputs(part.test, part.test.desc, &part.start);
  }
  for (size_t i = 0; i < parts_.size(); ++i) add_node(i);
  run_reference();
}

void GraphWork::add_node(size_t index) {
  const ep_primitive_desc& desc = parts_[index].test.desc;
  const uint32_t before = index == 0 ? 0 : nodes_[index - 1].operands[0].value;
  ep_graph_node node{};
  node.primitive = desc;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand)) {
      node.operands[i].value = EP_GRAPH_NO_VALUE;
    } else if (options_.chained && index > 0 && operand.role == EP_ROLE_SRC) {
      node.operands[i].value = before;
    } else {
      const bool inner = options_.chained && i == 0 && index + 1 < parts_.size();
      const uint64_t given = options_.constants ? EP_GRAPH_VALUE_CONSTANT : EP_GRAPH_VALUE_INPUT;
      const auto bytes = static_cast<uint64_t>(dtype_bytes(static_cast<DType>(operand.dtype), reach_of(operand)));
      node.operands[i].value = static_cast<uint32_t>(values_.size());
      values_.push_back({inner ? 0 : is_output(desc, i) ? EP_GRAPH_VALUE_OUTPUT : given, bytes, operand.dtype, 0});
      origins_.push_back({index, parts_[index].start.offsets[i]});
    }
  }
  nodes_.push_back(node);
}

// Inner values have no memory, so the reference restores the bytes that it wrote for them.
void GraphWork::run_reference() {
  std::vector<uint8_t> inner;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    const ep_primitive_desc& desc = part.test.desc;
    part.want = part.start;
    std::vector<void*> addresses;
    for (uint32_t k = 0; k < desc.operand_count; ++k) addresses.push_back(part.want.address(k));
    const std::vector<uint8_t> source = inner;
    if (options_.chained && i > 0) addresses[1] = const_cast<uint8_t*>(source.data());
    const bool passes_on = options_.chained && i + 1 < parts_.size();
    inner.resize(passes_on ? values_[nodes_[i].operands[0].value].bytes : 0);
    if (passes_on) addresses[0] = inner.data();
    const Status run = reference::run(desc, addresses.data(), nullptr, 0, nullptr);
    if (!run.ok() && run.code() != Code::fault) subject_.host.violate(run.with_context("  in the reference"));
  }
}

const ep_graph_desc& GraphWork::table() {
  constants_.assign(values_.size(), {});
  for (size_t i = 0; i < values_.size(); ++i) {
    const Origin& origin = origins_[i];
    if (values_[i].flags == EP_GRAPH_VALUE_CONSTANT) constants_[i] = {parts_[origin.part].memory.get(), origin.offset};
  }
  desc_ = {};
  desc_.struct_size = sizeof desc_;
  desc_.struct_type = EP_STRUCT_GRAPH_DESC;
  desc_.values = values_.data();
  desc_.constants = constants_.data();
  desc_.nodes = nodes_.data();
  desc_.value_count = static_cast<uint32_t>(values_.size());
  desc_.node_count = static_cast<uint32_t>(nodes_.size());
  return desc_;
}

Status GraphWork::create(const Stream& stream) {
  for (Part& part : parts_) {
    TENON_ASSIGN_OR_RETURN(part.memory, subject_.allocate(part.start.bytes.size()));
  }
  TENON_RETURN_IF_ERROR(upload(stream));
  TENON_RETURN_IF_ERROR(subject_.finish(stream));
  TENON_ASSIGN_OR_RETURN(const std::vector<ep_graph_answer> answers, ask_capability(subject_, table()));
  for (const ep_graph_answer& answer : answers) {
    if (answer.island == 0 || answer.island != answers[0].island) {
      return not_claimed("the device does not take the nodes as one graph.");
    }
  }
  return compile();
}

Status GraphWork::compile() {
  ep_graph* graph = nullptr;
  info_ = with_header<ep_graph_info>(EP_STRUCT_GRAPH_INFO);
  const Status made =
      subject_.call("graph_compile", subject_.ops.graph_compile, subject_.device, &table(), &graph, &info_);
  if (made.code() == Code::unsupported) return not_claimed("unsupported: {}", made.sentence());
  TENON_RETURN_IF_ERROR(made);
  graph_ = Graph(&subject_, graph);
  if (info_.implementation.size == 0) return broken("P17", "graph_compile answers 'ok' and names no implementation");
  // Overwrites the arguments that the call borrowed.
  constants_.assign(constants_.size(), {});
  std::vector<ep_graph_node>(nodes_.size()).swap(nodes_);
  if (info_.workspace_bytes == 0) return {};
  TENON_ASSIGN_OR_RETURN(workspace_, subject_.allocate(info_.workspace_bytes + workspace_alignment));
  return {};
}

Status GraphWork::upload(const Stream& stream) {
  for (Part& part : parts_) {
    TENON_RETURN_IF_ERROR(subject_.upload(stream, part.memory, 0, part.start.bytes));
  }
  if (workspace_.get() == nullptr) return {};
  dirty_.assign(info_.workspace_bytes + workspace_alignment, options_.dirt);
  return subject_.upload(stream, workspace_, 0, dirty_);
}

Status GraphWork::submit(const Stream& stream) {
  // Constants must not change after graph_compile.
  if (!options_.constants) TENON_RETURN_IF_ERROR(upload(stream));
  lent_buffers_.clear();
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].flags != EP_GRAPH_VALUE_INPUT && values_[i].flags != EP_GRAPH_VALUE_OUTPUT) continue;
    lent_buffers_.push_back({parts_[origins_[i].part].memory.get(), origins_[i].offset});
  }
  ep_graph_launch launch{};
  launch.operands = lent_buffers_.data();
  launch.operand_count = static_cast<uint32_t>(lent_buffers_.size());
  launch.workspace = {workspace_.get(), 0};
  launch.tag = tag;
  ep_fault fault{};
  const Status launched =
      subject_.call("graph_launch", subject_.ops.graph_launch, graph_.get(), stream.get(),
                    static_cast<const ep_graph_launch*>(&launch), subject_.synchronous() ? &fault : nullptr);
  std::memset(static_cast<void*>(lent_buffers_.data()), 0xee, lent_buffers_.size() * sizeof(ep_buffer));
  if (launched.code() == Code::unsupported) {
    return broken("G02", "graph_compile succeeded, but graph_launch answers 'unsupported': {}",
                  without_rule(launched).message());
  }
  if (launched.code() == Code::fault) {
    if (!subject_.synchronous()) return broken("P07", "an asynchronous device answered a launch with a fault");
    faults_.push_back(fault);
  } else {
    TENON_RETURN_IF_ERROR(launched);
  }
  for (Part& part : parts_) {
    part.got = part.start;
    TENON_RETURN_IF_ERROR(subject_.download(stream, part.memory, 0, part.got.bytes));
  }
  return {};
}

Status GraphWork::settle(const Stream& stream) {
  return subject_.synchronous() ? Status() : take_faults(subject_, stream, &faults_);
}

Status GraphWork::compare() const {
  for (const Part& part : parts_) {
    const Status same =
        cases::compare_images(part.test, part.test.desc, part.start, subject_.accuracy, part.got, part.want);
    if (!same.ok()) return broken("G06", "in a graph, {}: {}", part.test.name, without_rule(same).message());
  }
  return {};
}

Result<std::vector<ep_graph_answer>> ask_capability(Subject& subject, const ep_graph_desc& table) {
  std::vector<ep_graph_answer> answers(table.node_count + 1);
  std::memset(static_cast<void*>(answers.data()), 0xa5, answers.size() * sizeof(ep_graph_answer));
  const ep_graph_answer guard = answers.back();
  TENON_RETURN_IF_ERROR(
      subject.call("graph_capability", subject.ops.graph_capability, subject.device, &table, answers.data()));
  if (std::memcmp(&answers.back(), &guard, sizeof guard) != 0) {
    return broken("G01", "graph_capability wrote more answers than the table has nodes");
  }
  answers.pop_back();
  for (size_t i = 0; i < answers.size(); ++i) {
    if (std::memcmp(&answers[i], &guard, sizeof guard) != 0) continue;
    return broken("G01", "graph_capability gave no answer for node {} of {}", i, answers.size());
  }
  return answers;
}

}  // namespace tenon::conformance
