// Kernel modules in C. They are compiled and loaded as in the cpu provider, and run on one thread in the order of the
// stream.
#include "providers/cpu/modules/c_compiler.h"
#include "providers/cpu/modules/library.h"
#include "providers/cpu/modules/source.h"
#include "sdk/provider/modules/slots.h"
#include "sdk/provider/modules/source.h"
#include "tests/fakes/mirror/device.h"

#include <algorithm>

struct ep_kernel {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  std::string name = {};
  uint64_t flags = 0;
  uint32_t shared_bytes = 0;
  void* function = nullptr;
  ep_kernel_info info{};
};

struct ep_module {
  const ep_host* host;
  ep_device* device = nullptr;
  std::unique_ptr<tenon::provider::cpu::Library> library = {};
  std::vector<std::unique_ptr<ep_kernel>> kernels = {};
};

namespace tenon::mirror {
namespace {

using provider::entry;
using provider::fail_text;
using provider::fill;
using provider::make;
using provider::to_ep_string;
using provider::to_view;
using provider::cpu::FaultSink;

using Entry = void (*)(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local);
using FaultEntry = void (*)(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local,
                            FaultSink* sink);

ep_status dialect_info(ep_device* device, uint32_t index, ep_dialect_info* out_info, ep_error** error) {
  if (index != 0) return fail_text(device->host, error, EP_STATUS_NOT_FOUND, "The mirror compiles one dialect.");
  provider::cpu::CCompiler compiler(device->host, 16);
  if (const std::string& why = compiler.toolchain().sentence; !why.empty()) {
    return fail_text(device->host, error, EP_STATUS_NOT_FOUND, why);
  }
  ep_dialect_info info = provider::cpu::c_dialect();
  info.compiler = to_ep_string("as the cpu provider");
  if (device->breaks("moody_dialect")) info.vector_bytes = static_cast<uint32_t>(16 + device->asked++ % 2);
  fill(out_info, info);
  return EP_STATUS_OK;
}

// Returns the compiler's result for `text`, which a violation may have changed.
std::string spoilt(ep_device* device, std::string text) {
  const auto replace = [&](std::string_view what, std::string_view with) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
      text.replace(at, what.size(), with);
    }
  };
  if (device->breaks("contracts")) replace("x[i] * x[i] - HALF", "__builtin_fmaf(x[i], x[i], -HALF)");
  if (device->breaks("rounds_constants")) replace("THIRD (0x1.5555555555555p-2)", "THIRD 0.333333333f");
  if (device->breaks("raises_other")) replace("ep_raise(1, 0,", "ep_raise(1, 1,");
  return text;
}

ep_status module_create(ep_device* device, const ep_module_desc* desc, ep_module** out_module, ep_module_info* out_info,
                        ep_error** error) {
  const ep_host* host = device->host;
  ep_module_desc known = *desc;
  if (device->breaks("any_dialect")) known.dialect = EP_DIALECT_C;
  if (const ep_status status = provider::check_module(host, known, provider::cpu::c_dialect(), error);
      status != EP_STATUS_OK)
    return status;
  provider::cpu::CCompiler compiler(host, 16);
  const provider::CompileResult compiled = compiler.compile(spoilt(device, provider::cpu::source_of(known)));
  if (!compiled.output.empty() && !device->breaks("says_nothing")) {
    desc->diagnose(desc->context, to_ep_string(compiled.output));
  }
  if (compiled.status != EP_STATUS_OK) {
    const bool lineless = device->breaks("without_line") && compiled.status == EP_STATUS_INVALID_ARGUMENT;
    const bool wrong = device->breaks("unsupported_text");
    return fail_text(host, error, wrong ? EP_STATUS_UNSUPPORTED : compiled.status,
                     lineless ? "The text is wrong." : compiled.sentence);
  }
  std::string why;
  auto* module = make<ep_module>(host, host);
  module->device = device;
  module->library = provider::cpu::Library::load(compiled.binary, &why);
  for (uint32_t i = 0; i < desc->entry_count && module->library != nullptr; ++i) {
    const ep_module_entry& from = desc->entries[i];
    const std::string name(to_view(from.name));
    module->kernels.push_back(std::make_unique<ep_kernel>(
        ep_kernel{host, device, name, from.flags, from.shared_bytes, module->library->function(name)}));
  }
  ep_module_info info{};
  info.host_bytes = compiled.binary.size();
  fill(out_info, info);
  *out_module = module;
  return EP_STATUS_OK;
}

ep_status kernel_get(ep_module* module, ep_string name, ep_kernel** out_kernel, ep_kernel_info* out_info,
                     ep_error** error) {
  const bool any = module->device->breaks("any_entry") && !module->kernels.empty();
  const bool known = std::any_of(module->kernels.begin(), module->kernels.end(),
                                 [&](const auto& kernel) { return kernel->name == to_view(name); });
  if (any && !known) name = to_ep_string(module->kernels.front()->name);
  return provider::find_kernel(module, name, out_kernel, out_info, error);
}

// One launch, and copies of its borrowed arguments.
struct Run {
  const ep_kernel* kernel;
  std::vector<void*> buffers;
  std::vector<char> parameters;
  int64_t items;
  uint64_t tag;

  // True if a fault was raised.
  bool operator()(ep_fault* fault) const {
    const ep_device& device = *kernel->device;
    FaultSink sink;
    std::vector<char> memory(kernel->shared_bytes + 128);
    auto* local = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    if (device.breaks("local_anywhere")) local += 8;
    const int64_t end = device.breaks("forgets_item") && items > 2 ? items - 1 : items;
    if ((kernel->flags & EP_ENTRY_FLAG_FAULTS) != 0) {
      reinterpret_cast<FaultEntry>(kernel->function)(buffers.data(), parameters.data(), 0, end, local, &sink);
    } else {
      reinterpret_cast<Entry>(kernel->function)(buffers.data(), parameters.data(), 0, end, local);
    }
    if (sink.raised == 0 || device.breaks("swallows_raises")) return false;
    *fault = {device.breaks("untagged_raise") ? 0 : tag, sink.code, sink.operand, sink.value, sink.limit, 0};
    return true;
  }
};

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault* out_fault,
                        ep_error**) {
  Run run{kernel, {}, {}, static_cast<int64_t>(launch->groups[0]), launch->tag};
  for (uint32_t i = 0; i < launch->buffer_count; ++i) run.buffers.push_back(address_of(launch->buffers[i]));
  if (launch->workspace.memory != nullptr) run.buffers.push_back(address_of(launch->workspace));
  if (launch->scratch.memory != nullptr) run.buffers.push_back(address_of(launch->scratch));
  const auto* parameters = static_cast<const char*>(launch->parameters);
  const size_t bytes =
      kernel->device->breaks("short_parameters") ? launch->parameter_bytes / 2 : launch->parameter_bytes;
  run.parameters.assign(parameters, parameters + bytes);
  run.parameters.resize(launch->parameter_bytes);
  if (stream->recording != nullptr) {
    stream->recording->calls.push_back([run = std::move(run)](const Places& places, std::vector<ep_fault>* faults) {
      Run moved = run;
      for (void*& buffer : moved.buffers) buffer = places(static_cast<char*>(buffer));
      ep_fault fault{};
      if (moved(&fault)) faults->push_back(fault);
    });
    return EP_STATUS_OK;
  }
  if (!stream->device->is("async")) {
    ep_fault fault{};
    if (!run(&fault)) return EP_STATUS_OK;
    if (out_fault != nullptr) *out_fault = fault;
    return EP_STATUS_FAULT;
  }
  stream->submit([run = std::move(run), queue = stream->queue] {
    ep_fault fault{};
    if (run(&fault)) queue->faults.push_back(fault);
  });
  return EP_STATUS_OK;
}

}  // namespace

void fill_modules(ep_device_ops* ops) {
  provider::fill_module_slots<dialect_info, module_create, kernel_launch>(ops);
  ops->kernel_get = entry<kernel_get>;
}

}  // namespace tenon::mirror
