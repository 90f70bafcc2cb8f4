#include "providers/vulkan/kernels/specialize.h"

#include <map>
#include <set>

namespace tenon::provider::vulkan {
namespace {

// SPIR-V opcodes, by their numbers in the specification.
enum Op : uint32_t {
  OP_SOURCE = 3,
  OP_SOURCE_EXTENSION = 4,
  OP_NAME = 5,
  OP_MEMBER_NAME = 6,
  OP_STRING = 7,
  OP_LINE = 8,
  OP_ENTRY_POINT = 15,
  OP_EXECUTION_MODE = 16,
  OP_CAPABILITY = 17,
  OP_TYPE_FLOAT = 22,
  OP_SPEC_CONSTANT = 50,
  OP_FUNCTION = 54,
  OP_FUNCTION_END = 56,
  OP_FUNCTION_CALL = 57,
  OP_STORE = 62,
  OP_COPY_MEMORY = 63,
  OP_DECORATE = 71,
  OP_CONTROL_BARRIER = 224,
  OP_MEMORY_BARRIER = 225,
  OP_ATOMIC_STORE = 228,
  OP_LOOP_MERGE = 246,
  OP_SELECTION_MERGE = 247,
  OP_LABEL = 248,
  OP_BRANCH = 249,
  OP_BRANCH_CONDITIONAL = 250,
  OP_SWITCH = 251,
  OP_MODULE_PROCESSED = 330,
};
constexpr uint32_t spec_id_decoration = 1;
constexpr uint32_t keep_denormals_capability = 4464;
constexpr uint32_t keep_nan_capability = 4466;
constexpr uint32_t round_even_capability = 4467;
constexpr uint32_t keep_denormals_mode = 4459;
constexpr uint32_t keep_nan_mode = 4461;
constexpr uint32_t round_even_mode = 4462;
constexpr size_t header_words = 5;

struct Instruction {
  const uint32_t* words;
  uint32_t op;
  uint32_t count;
};

struct BasicBlock {
  std::vector<Instruction> instructions;  // the first is OpLabel
  bool kept = false;
};

struct Function {
  std::vector<Instruction> head;  // OpFunction and its parameters
  std::vector<uint32_t> order;    // labels in the order of the module
  std::map<uint32_t, BasicBlock> blocks;
  Instruction end{};
  bool kept = false;
};

class Specializer {
 public:
  Specializer(std::span<const uint32_t> module, std::span<const uint32_t> values) : module_(module), values_(values) {}

  std::vector<uint32_t> run() {
    read();
    read_constants();
    for (auto& [id, function] : functions_) resolve(function);
    keep_function(entry_);
    return write();
  }

 private:
  void read() {
    Function* function = nullptr;
    BasicBlock* block = nullptr;
    for (size_t at = header_words; at < module_.size();) {
      const Instruction one = {&module_[at], module_[at] & 0xffffU, module_[at] >> 16};
      at += one.count;
      if (one.op == OP_ENTRY_POINT) entry_ = one.words[2];
      if (one.op == OP_FUNCTION) {
        function_order_.push_back(one.words[2]);
        function = &functions_[one.words[2]];
        block = nullptr;
      }
      if (function == nullptr) {
        globals_.push_back(one);
      } else if (one.op == OP_FUNCTION_END) {
        function->end = one;
        function = nullptr;
      } else if (one.op == OP_LABEL) {
        function->order.push_back(one.words[1]);
        block = &function->blocks[one.words[1]];
        block->instructions.push_back(one);
      } else {
        (block == nullptr ? function->head : block->instructions).push_back(one);
      }
    }
  }

  void read_constants() {
    std::map<uint32_t, uint32_t> spec_ids;
    for (const Instruction& one : globals_) {
      if (one.op == OP_DECORATE && one.words[2] == spec_id_decoration) spec_ids[one.words[1]] = one.words[3];
    }
    for (const Instruction& one : globals_) {
      if (one.op != OP_SPEC_CONSTANT) continue;
      const auto found = spec_ids.find(one.words[2]);
      const bool given = found != spec_ids.end() && found->second < values_.size();
      constants_[one.words[2]] = given ? values_[found->second] : one.words[3];
    }
  }

  // Replaces the switches over constants in `function` by branches_.
  void resolve(Function& function) {
    for (auto& [label, block] : function.blocks) {
      const Instruction last = block.instructions.back();
      if (last.op != OP_SWITCH) continue;
      const auto constant = constants_.find(last.words[1]);
      if (constant == constants_.end()) continue;
      uint32_t target = last.words[2];
      for (uint32_t i = 3; i + 1 < last.count; i += 2) {
        if (last.words[i] == constant->second) target = last.words[i + 1];
      }
      block.instructions.pop_back();
      if (block.instructions.back().op == OP_SELECTION_MERGE) block.instructions.pop_back();
      branches_.push_back({2U << 16 | OP_BRANCH, target});
      block.instructions.push_back({nullptr, OP_BRANCH, 2});
      branch_of_[label] = branches_.size() - 1;
    }
  }

  const uint32_t* words_of(uint32_t label, const Instruction& one) const {
    return one.words != nullptr ? one.words : branches_[branch_of_.at(label)].data();
  }

  void keep_function(uint32_t id) {
    std::vector<uint32_t> waiting = {id};
    while (!waiting.empty()) {
      Function& function = functions_[waiting.back()];
      waiting.pop_back();
      if (function.kept || function.order.empty()) continue;
      function.kept = true;
      keep_blocks(function, &waiting);
    }
  }

  void keep_blocks(Function& function, std::vector<uint32_t>* calls) {
    std::vector<uint32_t> waiting = {function.order.front()};
    while (!waiting.empty()) {
      const uint32_t label = waiting.back();
      BasicBlock& block = function.blocks[label];
      waiting.pop_back();
      if (block.kept) continue;
      block.kept = true;
      for (const Instruction& one : block.instructions) {
        const uint32_t* words = words_of(label, one);
        switch (one.op) {
          case OP_FUNCTION_CALL: calls->push_back(words[3]); break;
          case OP_BRANCH:
          case OP_SELECTION_MERGE: waiting.push_back(words[1]); break;
          case OP_LOOP_MERGE:
          case OP_BRANCH_CONDITIONAL:
            if (one.op == OP_LOOP_MERGE) waiting.push_back(words[1]);
            waiting.push_back(words[2]);
            if (one.op == OP_BRANCH_CONDITIONAL) waiting.push_back(words[3]);
            break;
          case OP_SWITCH:
            waiting.push_back(words[2]);
            for (uint32_t i = 4; i < one.count; i += 2) waiting.push_back(words[i]);
            break;
          default: break;
        }
      }
    }
  }

  // The id that an instruction defines; 0 if it defines none.
  static uint32_t result_of(const Instruction& one) {
    switch (one.op) {
      case OP_STORE:
      case OP_COPY_MEMORY:
      case OP_CONTROL_BARRIER:
      case OP_MEMORY_BARRIER:
      case OP_ATOMIC_STORE:
      case OP_LINE: return 0;
      default: return one.op >= OP_LOOP_MERGE && one.op <= 255 ? 0 : (one.count > 2 ? one.words[2] : 0);
    }
  }

  void drop(const std::vector<Instruction>& instructions) {
    for (const Instruction& one : instructions) {
      if (one.words != nullptr) dropped_.insert(result_of(one));
    }
  }

  static void append(std::vector<uint32_t>* out, const uint32_t* words, uint32_t count) {
    out->insert(out->end(), words, words + count);
  }

  std::vector<uint32_t> write() {
    for (const auto& [id, function] : functions_) {
      if (!function.kept) drop(function.head);
      for (const auto& [label, block] : function.blocks) {
        if (!function.kept || !block.kept) drop(block.instructions);
      }
    }
    std::vector<uint32_t> out(module_.begin(), module_.begin() + header_words);
    for (const Instruction& one : globals_) {
      const bool name = (one.op >= OP_SOURCE && one.op <= OP_LINE) || one.op == OP_MODULE_PROCESSED;
      if (name || (one.op == OP_DECORATE && dropped_.contains(one.words[1]))) continue;
      append(&out, one.words, one.count);
    }
    for (uint32_t id : function_order_) {
      const Function& function = functions_[id];
      if (!function.kept) continue;
      for (const Instruction& one : function.head) append(&out, one.words, one.count);
      for (uint32_t label : function.order) {
        const BasicBlock& block = function.blocks.at(label);
        if (!block.kept) continue;
        for (const Instruction& one : block.instructions) append(&out, words_of(label, one), one.count);
      }
      append(&out, function.end.words, function.end.count);
    }
    return out;
  }

  std::span<const uint32_t> module_;
  std::span<const uint32_t> values_;
  uint32_t entry_ = 0;
  std::vector<Instruction> globals_;
  std::vector<uint32_t> function_order_;
  std::map<uint32_t, Function> functions_;
  std::map<uint32_t, uint32_t> constants_;  // values of specialization constants, by id
  std::vector<std::vector<uint32_t>> branches_;
  std::map<uint32_t, size_t> branch_of_;  // indexed by label
  std::set<uint32_t> dropped_;
};

}  // namespace

std::vector<uint32_t> specialize(std::span<const uint32_t> module, std::span<const uint32_t> values) {
  return Specializer(module, values).run();
}

std::vector<uint32_t> ask_of_floats(std::vector<uint32_t> module, const FloatModes& modes) {
  size_t behind_entry = 0;
  uint32_t entry = 0;
  bool floats = false;
  for (size_t at = header_words; at < module.size() && (module[at] & 0xffffU) != OP_FUNCTION; at += module[at] >> 16) {
    const uint32_t op = module[at] & 0xffffU;
    floats = floats || op == OP_TYPE_FLOAT;
    if (op != OP_ENTRY_POINT) continue;
    entry = module[at + 2];
    behind_entry = at + (module[at] >> 16);
  }
  if (!floats || behind_entry == 0) return module;
  std::vector<uint32_t> capabilities;
  std::vector<uint32_t> executions;
  const auto ask = [&](uint32_t capability, uint32_t mode) {
    capabilities.insert(capabilities.end(), {2U << 16 | OP_CAPABILITY, capability});
    executions.insert(executions.end(), {4U << 16 | OP_EXECUTION_MODE, entry, mode, 32U});
  };
  if (modes.keep_nan) ask(keep_nan_capability, keep_nan_mode);
  if (modes.round_even) ask(round_even_capability, round_even_mode);
  if (modes.keep_denormals) ask(keep_denormals_capability, keep_denormals_mode);
  module.insert(module.begin() + static_cast<ptrdiff_t>(behind_entry), executions.begin(), executions.end());
  module.insert(module.begin() + header_words, capabilities.begin(), capabilities.end());
  return module;
}

}  // namespace tenon::provider::vulkan
