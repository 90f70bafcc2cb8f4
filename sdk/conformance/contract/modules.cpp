// Kernel modules: dialects, valid and invalid texts, launches. Skipped on devices without module_create. The texts
// (module_texts.h) are compiled in each dialect of the device.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/module_texts.h"
#include "sdk/conformance/primitive/work.h"

namespace tenon::conformance {
namespace {

constexpr uint64_t kTag = 0x0123456789abcdef;
constexpr uint64_t kGuard = 64;  // bytes before and after each buffer
constexpr uint64_t kBlockAlignment = 256;
ep_string borrowed(std::string_view text) { return {text.data(), text.size()}; }

// A text, and the module compiled from it.
struct Text {
  Text(int32_t dialect, std::string of) : text(std::move(of)) {
    desc = with_header<ep_module_desc>(EP_STRUCT_MODULE_DESC);
    desc.dialect = dialect;
    desc.name = borrowed("conformance");
    desc.text = borrowed(text);
    desc.diagnose = [](void* context, ep_string output) {
      auto& self = *static_cast<Text*>(context);
      ++self.diagnoses;
      if (output.data != nullptr) self.output.assign(output.data, output.size);
    };
    desc.context = this;
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  void entry(std::string_view name, uint32_t buffers, uint32_t group, uint32_t parameter_bytes = 0, uint64_t flags = 0,
             uint32_t shared = 0) {
    entries.push_back({borrowed(name), flags, buffers, parameter_bytes, {group, 1, 1}, shared});
    desc.entries = entries.data();
    desc.entry_count = static_cast<uint32_t>(entries.size());
  }
  void constant(std::string_view name, int32_t dtype, double real, int64_t integer) {
    ep_scalar value{dtype, 0, {}};
    if (dtype == EP_DTYPE_i64) {
      value.value.i64 = integer;
    } else {
      value.value.f64 = real;
    }
    constants.push_back({borrowed(name), value});
    desc.constants = constants.data();
    desc.constant_count = static_cast<uint32_t>(constants.size());
  }
  Result<Module> compile(Subject& subject) {
    auto info = with_header<ep_module_info>(EP_STRUCT_MODULE_INFO);
    ep_module* module = nullptr;
    TENON_RETURN_IF_ERROR(subject.call("module_create", subject.ops.module_create, subject.device,
                                       static_cast<const ep_module_desc*>(&desc), &module, &info));
    if (module == nullptr) return broken("R01", "module_create answers 'ok' and gives no module");
    return Module(&subject, module);
  }

  const std::string text;
  ep_module_desc desc{};
  std::vector<ep_module_entry> entries;
  std::vector<ep_module_constant> constants;
  std::string output;
  int diagnoses = 0;
};

// One dialect of the device, and the kernels that the device must compile in it.
struct Dialect {
  const DialectRow* row = nullptr;
  ep_dialect_info info{};
  std::vector<size_t> kernels = {};

  bool has(std::string_view name) const {
    return std::any_of(kernels.begin(), kernels.end(), [name](size_t one) { return kKernels[one].name == name; });
  }
};

// A text with some kernels of a dialect and all constants.
struct KernelsText : Text {
  KernelsText(const Dialect& dialect, const std::vector<size_t>& kernels)
      : Text(dialect.row->dialect, text_of(*dialect.row, kernels)) {
    for (const size_t kernel : kernels) {
      const KernelRow& row = kKernels[kernel];
      entry(row.name, row.buffers, dialect.row->group, row.parameter_bytes, row.flags,
            row.shares ? static_cast<uint32_t>(kNumbers * 8) : 0);
    }
    constant("HALF", EP_DTYPE_f32, 0.5, 0);
    constant("THIRD", EP_DTYPE_f64, 1.0 / 3, 0);
    constant("MOST", EP_DTYPE_i64, 0, INT64_MAX);
  }
};

// Returns the dialects of the device for which the kit has texts. Skipped if there are none.
Result<std::vector<Dialect>> dialects_of(Subject& subject) {
  if (subject.ops.module_create == nullptr) return skipped("the device has no module_create.");
  auto all = std::make_unique<std::vector<Dialect>>();
  for (uint32_t index = 0;; ++index) {
    auto info = with_header<ep_dialect_info>(EP_STRUCT_DIALECT_INFO);
    const Status status = subject.call("dialect_info", subject.ops.dialect_info, subject.device, index, &info);
    if (status.code() == Code::not_found && !all->empty()) return std::move(*all);
    if (status.code() == Code::not_found) return skipped("it compiles no text: {}", status.message());
    TENON_RETURN_IF_ERROR(status);
    Dialect dialect{dialect_row(info.dialect), info};
    if (dialect.row == nullptr) continue;
    for (size_t i = 0; i < std::size(kKernels); ++i) {
      uint64_t needed = kKernels[i].features;
      if (kKernels[i].shares && dialect.row->group > 1) needed |= EP_DIALECT_FEATURE_BARRIERS;
      if ((needed & ~info.features) == 0) dialect.kernels.push_back(i);
    }
    all->push_back(std::move(dialect));
  }
}

// One module with all kernels, or one module per kernel if a text has only one entry.
struct Modules {
  Status compile(Subject& subject, const Dialect& dialect) {
    if (!dialect.row->one_entry) return add(subject, dialect, dialect.kernels);
    for (const size_t kernel : dialect.kernels) TENON_RETURN_IF_ERROR(add(subject, dialect, {kernel}));
    return {};
  }
  // Compiles only the kernel `name`.
  Status compile(Subject& subject, const Dialect& dialect, std::string_view name) {
    const auto row =
        std::find_if(std::begin(kKernels), std::end(kKernels), [name](const auto& one) { return one.name == name; });
    return add(subject, dialect, {static_cast<size_t>(row - std::begin(kKernels))});
  }
  const Module& of(std::string_view name) const {
    const auto found = std::find_if(kernels.begin(), kernels.end(), [name](const auto& some) {
      return std::any_of(some.begin(), some.end(), [name](size_t one) { return kKernels[one].name == name; });
    });
    return modules[static_cast<size_t>(found - kernels.begin())];
  }

  std::vector<Module> modules;
  std::vector<std::vector<size_t>> kernels;  // by module: the indices of its kernels

 private:
  Status add(Subject& subject, const Dialect& dialect, const std::vector<size_t>& some) {
    KernelsText text(dialect, some);
    TENON_ASSIGN_OR_RETURN(Module module, text.compile(subject));
    modules.push_back(std::move(module));
    kernels.push_back(some);
    return {};
  }
};

// Runs `test` in each dialect; its errors name the dialect.
template <class Test>
Status in_each_dialect(Subject& subject, const Test& test) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Dialect> dialects, dialects_of(subject));
  for (const Dialect& dialect : dialects) TENON_RETURN_IF_ERROR(test(dialect));
  return {};
}

Result<ep_kernel*> get(Subject& subject, const Module& module, std::string_view entry) {
  auto info = with_header<ep_kernel_info>(EP_STRUCT_KERNEL_INFO);
  ep_kernel* kernel = nullptr;
  TENON_RETURN_IF_ERROR(
      subject.call("kernel_get", subject.ops.kernel_get, module.get(), borrowed(entry), &kernel, &info));
  if (kernel == nullptr) return broken("R01", "kernel_get answers 'ok' and gives no kernel");
  return kernel;
}

// Device memory between two guards.
struct Bytes {
  Status make(Subject& subject, const Stream& stream, const void* data, size_t bytes) {
    size = bytes;
    image = random_bytes(kGuard + size + kGuard, 31 + size);
    if (data != nullptr) std::memcpy(image.data() + kGuard, data, size);
    TENON_ASSIGN_OR_RETURN(memory, subject.allocate(image.size()));
    return subject.upload(stream, memory, 0, image);
  }
  // Downloads the bytes. Broken if a guard has changed.
  Result<std::vector<uint8_t>> fetch(Subject& subject, const Stream& stream, const char* what) const {
    auto now = std::make_unique<std::vector<uint8_t>>(image.size());
    TENON_RETURN_IF_ERROR(subject.download(stream, memory, 0, *now));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    const bool before = std::equal(image.begin(), image.begin() + kGuard, now->begin());
    const bool behind = std::equal(image.end() - kGuard, image.end(), now->end() - kGuard);
    if (!before || !behind) return broken("P06", "a kernel wrote outside of {}", what);
    return std::vector<uint8_t>(now->begin() + kGuard, now->end() - kGuard);
  }
  ep_buffer buffer() const { return {memory.get(), kGuard}; }

  Memory memory;
  size_t size = 0;
  std::vector<uint8_t> image;
};

// Workspace or scratch: device memory, 256-aligned by its host address if it has one.
struct Room {
  Status make(Subject& subject, const Stream& stream, std::vector<uint8_t> contents) {
    bytes = std::move(contents);
    TENON_ASSIGN_OR_RETURN(memory, subject.allocate(bytes.size() + kBlockAlignment));
    if ((subject.info.pools[0].flags & EP_POOL_FLAG_HOST_VISIBLE) != 0 && subject.ops.memory_map != nullptr) {
      void* address = nullptr;
      TENON_RETURN_IF_ERROR(subject.call("memory_map", subject.ops.memory_map, subject.device, memory.get(), &address));
      offset = (kBlockAlignment - reinterpret_cast<uintptr_t>(address) % kBlockAlignment) % kBlockAlignment;
    }
    return subject.upload(stream, memory, offset, bytes);
  }
  ep_buffer buffer() const { return {memory.get(), offset}; }

  Memory memory;
  uint64_t offset = 0;
  std::vector<uint8_t> bytes;  // a device may read them until the stream has finished
};

struct Call {
  std::vector<ep_buffer> buffers;
  const void* parameters = nullptr;
  uint32_t parameter_bytes = 0;
  uint64_t items = 1;
  uint32_t group = 1;
  ep_buffer workspace{}, scratch{};
  uint64_t tag = kTag;
  ep_fault fault{};

  // Launches `kernel`. Borrowed arguments are overwritten after the call.
  Status run(Subject& subject, ep_kernel* kernel, const Stream& stream) {
    std::vector<ep_buffer> lent = buffers;
    const auto* bytes = static_cast<const uint8_t*>(parameters);
    std::vector<uint8_t> lent_bytes(bytes, bytes + parameter_bytes);
    ep_kernel_launch launch{};
    launch.buffers = lent.data();
    launch.parameters = lent_bytes.data();
    launch.groups[0] = (items + group - 1) / group;
    launch.groups[1] = launch.groups[2] = 1;
    launch.buffer_count = static_cast<uint32_t>(lent.size());
    launch.parameter_bytes = parameter_bytes;
    launch.workspace = workspace;
    launch.scratch = scratch;
    launch.tag = tag;
    const Status status = subject.call("kernel_launch", subject.ops.kernel_launch, kernel, stream.get(),
                                       static_cast<const ep_kernel_launch*>(&launch), &fault);
    for (ep_buffer& buffer : lent) buffer = {nullptr, ~uint64_t{0}};
    std::fill(lent_bytes.begin(), lent_bytes.end(), uint8_t{0xee});
    return status;
  }
};

template <class T>
Status expect(const std::vector<uint8_t>& got, const std::vector<T>& wanted, const char* what) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    T value;
    std::memcpy(&value, got.data() + i * sizeof value, sizeof value);
    if (std::memcmp(&value, &wanted[i], sizeof value) == 0) continue;
    return broken("Z07", "item {} of {} is {}, not {}", i, what, value, wanted[i]);
  }
  return {};
}

// Values x for which contraction changes the result of x * x - 0.5.
std::vector<float> inputs(size_t count) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = 1.0f + static_cast<float>(i % 97) * 0x1.8p-13f + static_cast<float>(i % 5);
  return x;
}

// Launches `kernel` on x, and compares the result with `wanted`.
template <class T>
Status compute(Subject& subject, const Dialect& dialect, const Modules& modules, const Stream& stream,
               std::string_view kernel, uint64_t items, const std::vector<float>& x, const std::vector<T>& wanted) {
  if (!dialect.has(kernel)) return {};
  Bytes from, to;
  TENON_RETURN_IF_ERROR(from.make(subject, stream, x.data(), x.size() * 4));
  TENON_RETURN_IF_ERROR(to.make(subject, stream, nullptr, wanted.size() * sizeof(T)));
  const Drain drain(subject, stream);
  TENON_ASSIGN_OR_RETURN(ep_kernel * found, get(subject, modules.of(kernel), kernel));
  const auto count = static_cast<int64_t>(items);
  Call call{{from.buffer(), to.buffer()}, &count, sizeof count, items, dialect.row->group};
  TENON_RETURN_IF_ERROR(call.run(subject, found, stream));
  TENON_ASSIGN_OR_RETURN(const auto got, to.fetch(subject, stream, "an output"));
  return expect(got, wanted, fmt::format("the kernel {} in {}", kernel, dialect.row->name).c_str());
}

Status compute_all(Subject& subject, const Dialect& dialect, const Modules& modules, const Stream& stream,
                   size_t items) {
  const std::vector<float> x = inputs(items), fourfold = inputs(4 * items);
  std::vector<float> y(items), w(4 * items);
  std::vector<double> z(items);
  std::vector<int64_t> n(items);
  for (size_t i = 0; i < items; ++i) {
    volatile float square = x[i] * x[i];
    y[i] = square - 0.5f;
    z[i] = static_cast<double>(x[i]) / (1.0 / 3);
    n[i] = INT64_MIN + static_cast<int64_t>(x[i]) - 1;
  }
  for (size_t i = 0; i < w.size(); ++i) {
    volatile float square = fourfold[i] * fourfold[i];
    w[i] = square - fourfold[i];
  }
  TENON_RETURN_IF_ERROR(compute(subject, dialect, modules, stream, "reals", items, x, y));
  TENON_RETURN_IF_ERROR(compute(subject, dialect, modules, stream, "doubles", items, x, z));
  TENON_RETURN_IF_ERROR(compute(subject, dialect, modules, stream, "integers", items, x, n));
  return compute(subject, dialect, modules, stream, "vectors", items, fourfold, w);
}

// Checks that compiling `text` fails with `code`. `what` describes the text in messages.
Status check_refused(Subject& subject, Text& text, Code code, std::string_view rule, std::string_view what) {
  const auto made = text.compile(subject);
  if (made.status().code() == code) return {};
  return broken(rule, "module_create answered '{}' to {}, not '{}'", code_name(made.status().code()), what,
                code_name(code));
}

// Launches the kernel `faults`, on data with one bad element if `faulty`.
Status raise(Subject& subject, const Dialect& dialect, ep_kernel* kernel, const Stream& stream, bool faulty) {
  constexpr size_t items = 3000, bad = 2222;
  std::vector<int64_t> x(items, 7);
  if (faulty) x[bad] = 5000;
  Bytes from, to;
  TENON_RETURN_IF_ERROR(from.make(subject, stream, x.data(), items * 8));
  TENON_RETURN_IF_ERROR(to.make(subject, stream, nullptr, items * 8));
  const Drain drain(subject, stream);
  const int64_t count = items;
  Call call{{from.buffer(), to.buffer()}, &count, sizeof count, items, dialect.row->group};
  const Status launched = call.run(subject, kernel, stream);
  if (!subject.synchronous()) {
    TENON_RETURN_IF_ERROR(launched);
    TENON_RETURN_IF_ERROR(subject.finish(stream));
  }
  std::vector<ep_fault> faults;
  if (subject.synchronous() && launched.code() == Code::fault) faults.push_back(call.fault);
  if (!subject.synchronous()) TENON_RETURN_IF_ERROR(take_faults(subject, stream, &faults));
  if (faults.empty() == faulty) {
    return broken("F01", "a kernel that {} bad data has {} faults", faulty ? "met" : "met no", faults.size());
  }
  if (!faulty) return {};
  const ep_fault& fault = faults[0];
  if (fault.tag == kTag && fault.code == 1 && fault.operand == 0 && fault.value == 5000 && fault.limit == 1000) {
    return {};
  }
  return broken("F01",
                "a kernel raised code 1, operand 0, value 5000, limit 1000; the fault has tag {:#x}, code {}, operand "
                "{}, value {}, limit {}",
                fault.tag, fault.code, fault.operand, fault.value, fault.limit);
}

// A text with an error in its third line.
Status refuse_wrong_text(Subject& subject, const Dialect& dialect) {
  Text text(dialect.row->dialect, std::string(dialect.row->wrong));
  text.entry("f", 0, dialect.row->group);
  const auto made = text.compile(subject);
  if (made.status().code() != Code::invalid_argument) {
    return broken("Z04", "module_create answered '{}' to a text with an error, not 'invalid argument'",
                  code_name(made.status().code()));
  }
  if (made.status().message().find('3') == std::string::npos) {
    return broken("Z04", "the error is in line 3, but the message does not say so: {}",
                  without_rule(made.status()).message());
  }
  if (text.diagnoses != 1 || text.output.empty()) {
    return broken("Z04", "diagnose was called {} times for a text with an error", text.diagnoses);
  }
  return {};
}

}  // namespace

Status modules_described(Subject& subject) {
  if (subject.ops.module_create == nullptr) return skipped("the device has no module_create.");
  for (uint32_t index = 0; index < 16; ++index) {
    auto first = with_header<ep_dialect_info>(EP_STRUCT_DIALECT_INFO);
    auto second = first;
    const Status status = subject.call("dialect_info", subject.ops.dialect_info, subject.device, index, &first);
    const Status again = subject.call("dialect_info", subject.ops.dialect_info, subject.device, index, &second);
    if (status.code() != again.code()) return broken("Z01", "it describes dialect number {} only sometimes", index);
    if (status.code() == Code::not_found)
      return index == 0 ? skipped("it names no dialect: {}", status.message()) : Status();
    TENON_RETURN_IF_ERROR(status);
    const auto name = [](const ep_dialect_info& info) {
      return std::string_view(info.compiler.data, info.compiler.size);
    };
    const bool alike = name(first) == name(second);
    first.compiler = second.compiler = {};
    if (!alike || std::memcmp(&first, &second, sizeof first) != 0) {
      return broken("Z01", "it describes dialect number {} in another way each time", index);
    }
    if (first.dialect < EP_DIALECT_C || first.dialect > EP_DIALECT_GLSL || first.greatest_buffers < 16 ||
        first.parameter_bytes < 1024) {
      return broken("Z01", "dialect number {} is {}, with {} buffers and {} bytes of parameters", index, first.dialect,
                    first.greatest_buffers, first.parameter_bytes);
    }
  }
  return broken("Z01", "it describes more than 16 dialects");
}

Status modules_results(Subject& subject) {
  return in_each_dialect(subject, [&](const Dialect& dialect) -> Status {
    TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
    Modules modules;
    TENON_RETURN_IF_ERROR(modules.compile(subject, dialect));
    for (const size_t items : {1, 2, 255, 257, 20000}) {
      TENON_RETURN_IF_ERROR(compute_all(subject, dialect, modules, stream, items));
    }
    return {};
  });
}

Status modules_arguments(Subject& subject) {
  return in_each_dialect(subject, [&](const Dialect& dialect) -> Status {
    if (!dialect.has("rooms")) return skipped("it has no integers of 64 bits, or no barriers.");
    TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
    Modules modules;
    TENON_RETURN_IF_ERROR(modules.compile(subject, dialect, "rooms"));
    TENON_ASSIGN_OR_RETURN(ep_kernel * kernel, get(subject, modules.of("rooms"), "rooms"));
    constexpr size_t items = 20000;
    Room workspace, scratch;
    TENON_RETURN_IF_ERROR(workspace.make(subject, stream, random_bytes(items * 8, 5)));
    TENON_RETURN_IF_ERROR(scratch.make(subject, stream, std::vector<uint8_t>(64, 0)));
    Bytes to;
    TENON_RETURN_IF_ERROR(to.make(subject, stream, nullptr, items * 8));
    const Drain drain(subject, stream);
    Numbers numbers;
    numbers.count = items;
    int64_t sum = 0;
    for (size_t j = 0; j < kNumbers; ++j) sum += numbers.all[j] = static_cast<int64_t>(j * j) - 50;
    std::vector<int64_t> wanted(items);
    for (size_t i = 0; i < items; ++i) wanted[i] = sum * static_cast<int64_t>(i + 1);
    Call call{{to.buffer()}, &numbers, sizeof numbers, items, dialect.row->group};
    call.workspace = workspace.buffer();
    call.scratch = scratch.buffer();
    TENON_RETURN_IF_ERROR(call.run(subject, kernel, stream));
    TENON_ASSIGN_OR_RETURN(const auto got, to.fetch(subject, stream, "an output"));
    const Status right = expect(got, wanted, "sums over parameters, workspace, scratch and shared memory");
    return right.ok() ? right : broken("Z08", "{}", without_rule(right).message());
  });
}

Status modules_faults(Subject& subject) {
  return in_each_dialect(subject, [&](const Dialect& dialect) -> Status {
    if (!dialect.has("faults")) return skipped("it has no integers of 64 bits.");
    TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
    Modules modules;
    TENON_RETURN_IF_ERROR(modules.compile(subject, dialect, "faults"));
    TENON_ASSIGN_OR_RETURN(ep_kernel * kernel, get(subject, modules.of("faults"), "faults"));
    for (const bool faulty : {false, true, false}) {
      TENON_RETURN_IF_ERROR(raise(subject, dialect, kernel, stream, faulty));
    }
    return {};
  });
}

Status modules_refusals(Subject& subject) {
  return in_each_dialect(subject, [&](const Dialect& dialect) -> Status {
    TENON_RETURN_IF_ERROR(refuse_wrong_text(subject, dialect));
    const auto changed = [&](Code code, std::string_view what, const auto& change) -> Status {
      KernelsText text(dialect, {0});
      change(text);
      return check_refused(subject, text, code, "P02", what);
    };
    TENON_RETURN_IF_ERROR(changed(Code::unsupported, "dialect 99", [](Text& text) { text.desc.dialect = 99; }));
    TENON_RETURN_IF_ERROR(changed(Code::unsupported, "an entry with an unknown flag",
                                  [](Text& text) { text.entries[0].flags = UINT64_C(1) << 40; }));
    TENON_RETURN_IF_ERROR(changed(Code::unsupported, "an entry of 2^30 buffers",
                                  [](Text& text) { text.entries[0].buffer_count = 1u << 30; }));
    KernelsText whole(dialect, {0});
    TENON_ASSIGN_OR_RETURN(const Module module, whole.compile(subject));
    Poisoned<ep_kernel*> kernel("out_kernel");
    auto info = with_header<ep_kernel_info>(EP_STRUCT_KERNEL_INFO);
    const auto absent = [&](ep_error** error) {
      return subject.ops.kernel_get(module.get(), borrowed("absent"), &kernel.value, &info, error);
    };
    const Status found = refuses(subject, "kernel_get", {Code::not_found}, absent, kernel);
    return found.ok() ? found : broken("Z05", "{}", without_rule(found).message());
  });
}

}  // namespace tenon::conformance
