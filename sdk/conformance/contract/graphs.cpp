// Whole graphs: answers, results, and the nodes named in faults. Skipped on devices without the slots.
#include <cstring>
#include <optional>
#include <set>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/primitive/graph_work.h"

namespace tenon::conformance {
namespace {

constexpr size_t most_elements = 20000;

Status without_graphs() { return skipped("the device has no graph_capability."); }

size_t elements_of(const cases::Case& test) {
  size_t sum = 0;
  for (uint32_t i = 0; i < test.desc.operand_count; ++i) {
    size_t count = 1;
    for (int32_t axis = 0; axis < test.desc.operands[i].rank; ++axis) {
      count *= static_cast<size_t>(test.desc.operands[i].dims[axis]);
    }
    sum += count;
  }
  return sum;
}

bool takes(Subject& subject, const cases::Case& test) {
  GraphWork alone(subject, {test}, {});
  const auto answers = ask_capability(subject, alone.table());
  return answers.ok() && answers->front().island != 0;
}

// One case for each kind that the device accepts as a graph of one node, with or without a fault.
std::vector<cases::Case> graph_samples(Subject& subject, bool faulty) {
  std::vector<cases::Case> found;
  std::set<int32_t> kinds;
  for (const cases::Case& test : cases::all_cases()) {
    if (kinds.contains(test.desc.kind) || (test.fault != 0) != faulty) continue;
    if (elements_of(test) > most_elements || !has_dense_outputs(test) || !takes(subject, test)) continue;
    kinds.insert(test.desc.kind);
    found.push_back(test);
  }
  return found;
}

std::optional<cases::Case> case_named(std::string_view name) {
  for (const cases::Case& test : cases::all_cases()) {
    if (test.name == name) return test;
  }
  return std::nullopt;
}

// Changes a node into one that no device of this version can accept.
struct Unknown {
  const char* what;
  void (*put)(ep_primitive_desc* desc);
};

constexpr Unknown unknowns[] = {
    {"kind 0x7fff", [](ep_primitive_desc* desc) { desc->kind = 0x7fff; }},
    {"the descriptor flag 1 << 40", [](ep_primitive_desc* desc) { desc->flags |= UINT64_C(1) << 40; }},
    {"precision 77", [](ep_primitive_desc* desc) { desc->precision = 77; }},
    {"an extension of type 0x12345",
     [](ep_primitive_desc* desc) { desc->extensions[0] = UINT64_C(8) << 32 | 0x12345; }},
    {"role 999 of the last operand",
     [](ep_primitive_desc* desc) { desc->operands[desc->operand_count - 1].role = 999; }},
    {"a dim that is EP_ANY", [](ep_primitive_desc* desc) { desc->operands[0].dims[0] = EP_ANY; }},
};

// Node `index` of `tests`, changed by `unknown`, must not be accepted, without an error.
Status must_leave_out(Subject& subject, const std::vector<cases::Case>& tests, size_t index, const Unknown& unknown) {
  GraphWork work(subject, tests, {});
  unknown.put(&work.node(index).primitive);
  const auto answers = ask_capability(subject, work.table());
  if (!answers.ok()) {
    return broken("G01", "graph_capability fails for a table with {}: {}", unknown.what,
                  without_rule(answers.status()).message());
  }
  if (answers.value()[index].island == 0) return {};
  return broken("G01", "graph_capability takes {} with {}", tests[index].name, unknown.what);
}

// Runs `tests` as one graph. If the device does not accept the graph, this is not a failure, and `refusal` (if not
// null) gets the reason.
Status run_graph(Subject& subject, const Stream& stream, const std::vector<cases::Case>& tests,
                 GraphWork::Options options, Status* refusal = nullptr) {
  GraphWork work(subject, tests, options);
  const Drain drain(subject, stream);
  const Status made = work.create(stream);
  if (is_unclaimed(made) && refusal != nullptr) *refusal = made;
  if (is_unclaimed(made)) return {};
  TENON_RETURN_IF_ERROR(made);
  TENON_RETURN_IF_ERROR(work.submit(stream));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  TENON_RETURN_IF_ERROR(work.settle(stream));
  if (!work.faults().empty()) return broken("G07", "a graph that met no bad data has a fault");
  return work.compare();
}

}  // namespace

// The same table gets the same answers, one for each node, and no memory is kept. Nodes with an unknown part are not
// accepted.
Status graphs_answers(Subject& subject) {
  if (subject.ops.graph_capability == nullptr) return without_graphs();
  const std::vector<cases::Case> tests = graph_samples(subject, false);
  if (tests.empty()) return skipped("the device takes none of the cases in a graph of one node.");
  GraphWork work(subject, tests, {});
  TENON_ASSIGN_OR_RETURN(const std::vector<ep_graph_answer> first, ask_capability(subject, work.table()));
  const int64_t held = subject.host.bytes_held();
  TENON_ASSIGN_OR_RETURN(const std::vector<ep_graph_answer> second, ask_capability(subject, work.table()));
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i].island == second[i].island) continue;
    return broken("G01", "graph_capability answered {} and then {} for node {} of one table", first[i].island,
                  second[i].island, i);
  }
  if (subject.host.bytes_held() != held) return broken("G01", "graph_capability kept memory of the host");
  for (size_t i = 0; i < tests.size(); ++i) {
    for (const Unknown& unknown : unknowns) TENON_RETURN_IF_ERROR(must_leave_out(subject, tests, i, unknown));
  }
  return {};
}

// Each kind in its own graph, once with inputs and once with constants; then chained nodes.
Status graphs_results(Subject& subject) {
  if (subject.ops.graph_capability == nullptr) return without_graphs();
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  const std::vector<cases::Case> tests = graph_samples(subject, false);
  if (tests.empty()) return skipped("the device takes none of the cases in a graph of one node.");
  size_t refused = 0;
  Status reason;
  for (const cases::Case& test : tests) {
    for (const bool constants : {false, true}) {
      Status refusal;
      TENON_RETURN_IF_ERROR(run_graph(subject, stream, {test}, {constants, false, 0x5b}, &refusal));
      refused += refusal.ok() ? 0 : 1;
      if (!refusal.ok()) reason = refusal;
    }
  }
  if (refused == 2 * tests.size()) {
    return broken("G02",
                  "graph_capability accepts {} kinds of node, but graph_compile refuses every graph of one node: {}",
                  tests.size(), without_rule(reason).message());
  }
  TENON_RETURN_IF_ERROR(run_graph(subject, stream, tests, {}));
  if (const auto relu = case_named("unary/relu/f32/vector")) {
    for (const uint8_t dirt : {0x00, 0xc4}) {
      TENON_RETURN_IF_ERROR(run_graph(subject, stream, {*relu, *relu, *relu}, {false, true, dirt}));
    }
  }
  return {};
}

// A fault names the node with bad data and the tag of the launch, and later launches run.
Status graphs_faults(Subject& subject) {
  if (subject.ops.graph_capability == nullptr) return without_graphs();
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  const std::vector<cases::Case> sound = graph_samples(subject, false), faulty = graph_samples(subject, true);
  if (faulty.empty()) return skipped("the device takes no case in which a kernel meets bad data.");
  for (const cases::Case& test : faulty) {
    GraphWork work(subject, {sound.front(), test}, {});
    const Drain drain(subject, stream);
    const Status made = work.create(stream);
    if (is_unclaimed(made)) continue;
    TENON_RETURN_IF_ERROR(made);
    work.tag = 0x7f0000000000 + static_cast<uint64_t>(test.desc.kind);
    TENON_RETURN_IF_ERROR(work.submit(stream));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    TENON_RETURN_IF_ERROR(work.settle(stream));
    if (work.faults().empty()) return broken("G07", "{} met bad data in a graph, and no fault says so", test.name);
    const ep_fault& fault = work.faults().front();
    if (fault.tag != work.tag || EP_FAULT_NODE(fault.flags) != 1 || fault.code != test.fault) {
      return broken("G07",
                    "{} met bad data as node 1 of launch {:#x}; the fault names node {} of launch {:#x}, code {}",
                    test.name, work.tag, EP_FAULT_NODE(fault.flags), fault.tag, fault.code);
    }
    TENON_RETURN_IF_ERROR(run_graph(subject, stream, {sound.front()}, {}));
  }
  return {};
}

Status exercise_graphs(Subject& subject, const Stream& stream) {
  const auto relu = case_named("unary/relu/f32/vector");
  if (subject.ops.graph_capability == nullptr || !relu) return {};
  return run_graph(subject, stream, {*relu, *relu}, {false, true, 0x5b});
}

}  // namespace tenon::conformance
