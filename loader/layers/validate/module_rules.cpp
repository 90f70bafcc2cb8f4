// Kernel modules: the languages that a device states to compile, the texts it receives, and launches of their kernels.
#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "loader/layers/validate/rules.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

constexpr uint64_t block_alignment = 256;  // required alignment of workspace and scratch
constexpr uint32_t least_buffers = 16;
constexpr uint64_t least_parameter_bytes = 1024;
constexpr uint64_t known_flags = EP_ENTRY_FLAG_FAULTS | EP_ENTRY_FLAG_WORKSPACE | EP_ENTRY_FLAG_SCRATCH;
constexpr uint64_t known_features = EP_DIALECT_FEATURE_F16 | EP_DIALECT_FEATURE_F64 | EP_DIALECT_FEATURE_I64 |
                                    EP_DIALECT_FEATURE_STORE_8 | EP_DIALECT_FEATURE_STORE_16 |
                                    EP_DIALECT_FEATURE_SUBGROUPS | EP_DIALECT_FEATURE_BARRIERS;

bool is_identifier(ep_string name) {
  if (name.data == nullptr || name.size == 0 || std::isdigit(static_cast<unsigned char>(name.data[0])) != 0)
    return false;
  return std::all_of(name.data, name.data + name.size,
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

std::string text_of(ep_string text) { return text.data == nullptr ? "" : std::string(text.data, text.size); }

Memory* enter_memory(Call& call, ep_buffer* buffer) {
  if (buffer->memory == nullptr) return nullptr;
  auto* memory = static_cast<Memory*>(call.enter(Kind::memory, buffer->memory));
  buffer->memory = memory == nullptr ? nullptr : static_cast<ep_memory*>(memory->inner);
  return memory;
}

void check_entry(Call& call, const ep_module_desc& desc, const ep_module_entry& entry, std::set<std::string>* names) {
  const std::string name = text_of(entry.name);
  if (!is_identifier(entry.name)) return call.refuse("Z02", fmt::format("the entry '{}' is not a C identifier", name));
  if (!names->insert(name).second) return call.refuse("Z02", fmt::format("two entries are called {}", name));
  if ((entry.flags & ~known_flags) != 0) {
    call.refuse("Z02", fmt::format("the entry {} has the flags 0x{:x}", name, entry.flags));
  }
  const bool one = entry.group[0] == 1 && entry.group[1] == 1 && entry.group[2] == 1;
  const bool none = entry.group[0] == 0 || entry.group[1] == 0 || entry.group[2] == 0;
  if (none || (desc.dialect == EP_DIALECT_C && !one)) {
    call.refuse("Z02", fmt::format("the entry {} has groups of {} x {} x {}", name, entry.group[0], entry.group[1],
                                   entry.group[2]));
  }
}

void check_desc(Call& call, const ep_module_desc& desc) {
  if (desc.dialect < EP_DIALECT_C || desc.dialect > EP_DIALECT_GLSL) {
    return call.refuse("Z02", fmt::format("there is no dialect {}", desc.dialect));
  }
  if (desc.entry_count == 0 || desc.entries == nullptr) return call.refuse("Z02", "the text has no entry");
  if (desc.dialect == EP_DIALECT_GLSL && desc.entry_count != 1) {
    call.refuse("Z02", fmt::format("a text in GLSL has {} entries", desc.entry_count));
  }
  std::set<std::string> names;
  for (uint32_t i = 0; i < desc.entry_count && !call.refused(); ++i) check_entry(call, desc, desc.entries[i], &names);
  if (desc.constant_count != 0 && desc.constants == nullptr) return call.refuse("A01", "the constants are NULL");
  for (uint32_t i = 0; i < desc.constant_count && !call.refused(); ++i) {
    const std::string name = text_of(desc.constants[i].name);
    if (!is_identifier(desc.constants[i].name)) {
      call.refuse("Z02", fmt::format("the constant '{}' is not a C identifier", name));
    } else if (!names.insert(name).second) {
      call.refuse("Z02", fmt::format("two constants or entries are called {}", name));
    }
  }
  if (desc.text.data == nullptr || desc.text.size == 0) call.refuse("Z02", "the text is empty");
}

void check_room(Call& call, const Memory* memory, ep_buffer buffer, bool wanted, const char* what) {
  if (wanted != (memory != nullptr)) {
    return call.refuse("Z03", fmt::format("the entry has {}{}, and the launch gives {}", wanted ? "" : "no ", what,
                                          wanted ? "none" : "one"));
  }
  if (memory == nullptr) return;
  const uint64_t address = reinterpret_cast<uintptr_t>(memory->host) + buffer.offset;
  if ((memory->host != nullptr ? address : buffer.offset) % block_alignment == 0) return;
  call.refuse("Z03", fmt::format("the {} begins at offset {}, which is not 256-aligned", what, buffer.offset));
}

// Only the text shows which bytes of a buffer a kernel uses, and if it writes them. Assumes that it reads one byte.
std::vector<RecordedCommands::Access> accesses_of(const Argument<const ep_kernel_launch*>& launch) {
  std::vector<RecordedCommands::Access> accesses;
  const auto add = [&](Memory* memory, uint64_t offset) {
    if (memory != nullptr) accesses.push_back({memory, offset, 1, 1, false});
  };
  for (size_t i = 0; i < launch.memories.size(); ++i) add(launch.memories[i], launch.buffers[i].offset);
  add(launch.workspace, launch.inner.workspace.offset);
  add(launch.scratch, launch.inner.scratch.offset);
  return accesses;
}

}  // namespace

Argument<const ep_module_desc*>::Argument(Call& call, const ep_module_desc* given) : desc(given) {
  if (given == nullptr) {
    call.refuse("A01", "the description of the text is NULL");
  } else if (given->struct_type != EP_STRUCT_MODULE_DESC || given->struct_size < sizeof *given) {
    call.refuse("T01", fmt::format("the description's struct_size is {} and its struct_type {}", given->struct_size,
                                   given->struct_type));
  } else {
    inner = *given;
  }
}

void Argument<const ep_module_desc*>::after(Call& call, ep_status) const {
  if (diagnoses > 1) call.blame("Z04", fmt::format("it called diagnose {} times", diagnoses));
}

Argument<const ep_kernel_launch*>::Argument(Call& call, const ep_kernel_launch* given) {
  if (given == nullptr) {
    call.refuse("A01", "the launch is NULL");
  } else if (given->buffer_count != 0 && given->buffers == nullptr) {
    call.refuse("Z03", "the list of buffers is NULL");
  } else if (given->parameter_bytes != 0 && given->parameters == nullptr) {
    call.refuse("Z03", "the parameters are NULL");
  }
  if (call.refused()) return;
  inner = *given;
  for (uint32_t i = 0; i < given->buffer_count && !call.refused(); ++i) {
    buffers.push_back(given->buffers[i]);
    memories.push_back(enter_memory(call, &buffers.back()));
  }
  workspace = enter_memory(call, &inner.workspace);
  scratch = enter_memory(call, &inner.scratch);
}

void after(Tag<Slot::dialect_info>, Call& call, ep_status status, Device&, Argument<uint32_t>&,
           Argument<ep_dialect_info*>& out, Error&) {
  if (status != EP_STATUS_OK) return;
  const ep_dialect_info& info = out.room.info;
  if (info.dialect < EP_DIALECT_C || info.dialect > EP_DIALECT_GLSL || (info.features & ~known_features) != 0) {
    call.blame("Z01", fmt::format("it names the dialect {} with the features 0x{:x}", info.dialect, info.features));
  }
  if (info.compiler.data == nullptr || info.compiler.size == 0) call.blame("Z01", "it names no compiler");
  if (info.greatest_buffers < least_buffers || info.parameter_bytes < least_parameter_bytes) {
    call.blame("Z01", fmt::format("it takes {} buffers and {} bytes of parameters; {} and {} are the least",
                                  info.greatest_buffers, info.parameter_bytes, least_buffers, least_parameter_bytes));
  }
  const bool groups = std::all_of(info.groups, info.groups + 3, [](uint64_t count) { return count != 0; }) &&
                      std::all_of(info.group_dims, info.group_dims + 3, [](uint32_t dim) { return dim != 0; });
  if (!groups || info.group_items == 0) call.blame("Z01", "its limits of groups allow no launch");
}

void before(Tag<Slot::module_create>, Call& call, Device&, Argument<const ep_module_desc*>& desc,
            Argument<ep_module**>&, Argument<ep_module_info*>&, Error&) {
  if (!call.refused()) check_desc(call, *desc.desc);
}

void after(Tag<Slot::module_create>, Call&, ep_status status, Device&, Argument<const ep_module_desc*>& desc,
           Argument<ep_module**>& out, Argument<ep_module_info*>&, Error&) {
  if (status != EP_STATUS_OK || out.object == nullptr) return;
  for (uint32_t i = 0; i < desc.desc->entry_count; ++i) {
    out.object->entries[text_of(desc.desc->entries[i].name)] = desc.desc->entries[i];
  }
}

void before(Tag<Slot::module_destroy>, Call& call, Device&, ModuleHandle& module) {
  if (module.object == nullptr) return;
  for (Kernel* kernel : module.object->kernels) call.check_unused(*kernel);
  for (Kernel* kernel : module.object->kernels) check_no_list(call, kernel);
}

void after(Tag<Slot::module_destroy>, Call&, ep_status, Device&, ModuleHandle& module) {
  if (module.object == nullptr) return;
  for (Kernel* kernel : module.object->kernels) Objects::instance().bury(kernel);
  module.object->kernels.clear();
  Objects::instance().bury(module.object);
}

void before(Tag<Slot::kernel_get>, Call& call, ModuleHandle&, Argument<ep_string>& entry, Argument<ep_kernel**>&,
            Argument<ep_kernel_info*>&, Error&) {
  if (entry.value.data == nullptr) call.refuse("A01", "the name of the entry is NULL");
}

void after(Tag<Slot::kernel_get>, Call& call, ep_status status, ModuleHandle& module, Argument<ep_string>& entry,
           Argument<ep_kernel**>& out, Argument<ep_kernel_info*>&, Error&) {
  const auto known = module.object->entries.find(text_of(entry.value));
  const bool exists = known != module.object->entries.end();
  if (exists == (status == EP_STATUS_NOT_FOUND) || (status == EP_STATUS_OK && !exists)) {
    call.blame("Z05", fmt::format("it answered {} for the entry {}, which the text {}", status, text_of(entry.value),
                                  exists ? "has" : "lacks"));
  }
  if (!exists || out.object == nullptr || call.blamed()) return;
  out.object->flags = known->second.flags;
  out.object->buffer_count = known->second.buffer_count;
  out.object->parameter_bytes = known->second.parameter_bytes;
  module.object->kernels.push_back(out.object.get());
}

void before(Tag<Slot::kernel_launch>, Call& call, KernelHandle& kernel, StreamHandle& stream,
            Argument<const ep_kernel_launch*>& launch, Argument<ep_fault*>& fault, Error&) {
  if (call.refused()) return;
  const Kernel& made = *kernel.object;
  if (call.layer->synchronous() && fault.out == nullptr) {
    call.refuse("A01", "out_fault is NULL on a synchronous device");
  }
  if (launch.inner.buffer_count != made.buffer_count || launch.inner.parameter_bytes != made.parameter_bytes) {
    return call.refuse("Z03", fmt::format("{} buffers and {} bytes of parameters were given, the entry has {} and {}",
                                          launch.inner.buffer_count, launch.inner.parameter_bytes, made.buffer_count,
                                          made.parameter_bytes));
  }
  const uint64_t* groups = launch.inner.groups;
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) {
    call.refuse("Z03", fmt::format("{} x {} x {} groups were given", groups[0], groups[1], groups[2]));
  }
  for (size_t i = 0; i < launch.memories.size(); ++i) {
    if (launch.memories[i] == nullptr) continue;
    const std::string name = fmt::format("buffer {}", i);
    check_range(call, *launch.memories[i], launch.buffers[i].offset, 1, name);
    check_plain(call, launch.memories[i], launch.buffers[i].offset, name.c_str());
  }
  check_room(call, launch.workspace, launch.inner.workspace, (made.flags & EP_ENTRY_FLAG_WORKSPACE) != 0, "workspace");
  check_room(call, launch.scratch, launch.inner.scratch, (made.flags & EP_ENTRY_FLAG_SCRATCH) != 0, "scratch");
  if (!call.refused() && stream.object->recording != nullptr) {
    check_bindings(call, *stream.object, accesses_of(launch));
  }
}

void after(Tag<Slot::kernel_launch>, Call& call, ep_status status, KernelHandle& kernel, StreamHandle& stream,
           Argument<const ep_kernel_launch*>& launch, Argument<ep_fault*>& fault, Error&) {
  if (status == EP_STATUS_FAULT) {
    if (!call.layer->synchronous()) return call.blame("F01", "a launch on an asynchronous device returned FAULT");
    if (fault.written.tag != launch.inner.tag || fault.written.code <= 0) {
      call.blame("F01", "it answered FAULT and did not fill out_fault with the launch's tag and a code");
    }
    if ((kernel.object->flags & EP_ENTRY_FLAG_FAULTS) == 0) {
      call.blame("Z06", "it answered FAULT for an entry without EP_ENTRY_FLAG_FAULTS");
    }
  }
  if (stream.object->recording != nullptr) {
    return note_recorded(*stream.object, status, kernel.object, accesses_of(launch));
  }
  if (status != EP_STATUS_OK || call.layer->synchronous()) return;
  submitted(*stream.object, {kernel.object, launch.workspace, launch.scratch});
  for (Memory* memory : launch.memories) {
    if (memory != nullptr) memory->uses.raise(stream.object->number, stream.object->point);
  }
  if (call.layer->inner.stream_take_fault != nullptr) {
    stream.object->launched.push_back({launch.inner.tag, stream.object->point});
  }
}

}  // namespace tenon::loader::validate
