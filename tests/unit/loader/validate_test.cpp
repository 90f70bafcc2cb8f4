// One violator for each rule that the validation layer enforces. The layer names the rule, and the program continues.
#include "fixture.h"
#include "loader/host/cancellation.h"
#include "loader/host/error.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"
#include "validate_provider.h"

#include <fstream>
#include <mutex>
#include <regex>
#include <set>
#include <thread>

namespace tenon::loader {
namespace {

constexpr uint64_t block = 4096;

// The host's side: a device of the toy behind the layer, and the objects made from it.
constexpr ep_stream_desc kComputeStream{
    sizeof(ep_stream_desc), EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COMPUTE, 0, 0};

class Host {
 public:
  explicit Host(int index) : device(open_device(fmt::format("toy:{}", index)).value()), ops(device->ops) {}

  template <class Function, class... Args>
  Status call(Function function, Args... args) {
    ep_error* error = nullptr;
    const ep_status status = function(args..., &error);
    return take_error(status, error, {});
  }
  ep_memory* memory(uint32_t pool = 0) {
    ep_memory* made = nullptr;
    EXPECT_TRUE(call(ops.memory_allocate, device->handle, pool, block, &made).ok());
    return made;
  }
  ep_stream* stream() {
    ep_stream* made = nullptr;
    EXPECT_TRUE(call(ops.stream_create, device->handle, &kComputeStream, &made).ok());
    return made;
  }
  ep_stream* timed_stream() {
    ep_stream_desc desc = kComputeStream;
    desc.flags = EP_STREAM_FLAG_TIMED;
    ep_stream* made = nullptr;
    EXPECT_TRUE(call(ops.stream_create, device->handle, &desc, &made).ok());
    return made;
  }
  Status elapsed(ep_event* begin, ep_event* end) {
    uint64_t ns = 0;
    return call(ops.event_elapsed, begin, end, &ns);
  }
  ep_event* event() {
    ep_event* made = nullptr;
    EXPECT_TRUE(call(ops.event_create, device->handle, &made).ok());
    return made;
  }
  ep_event* recorded(ep_stream* on) {
    ep_event* made = event();
    EXPECT_TRUE(call(ops.event_record, made, on).ok());
    return made;
  }
  Status try_create(const ep_primitive_desc& desc, ep_primitive** made) {
    ep_primitive_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
    return call(ops.primitive_create, device->handle, &desc, made, &info);
  }
  ep_primitive* primitive(const ep_primitive_desc& desc) {
    ep_primitive* made = nullptr;
    EXPECT_TRUE(try_create(desc, &made).ok());
    return made;
  }
  Status support(const ep_primitive_desc& desc) {
    ep_support_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_SUPPORT_INFO;
    return call(ops.primitive_support, device->handle, &desc, &info);
  }
  Status launch(ep_primitive* made, ep_stream* on, ep_buffer dst, ep_buffer src, ep_buffer workspace = {},
                const ep_shape* shapes = nullptr) {
    const ep_buffer operands[] = {dst, src};
    ep_launch request{};
    request.operands = operands;
    request.operand_count = 2;
    request.shapes = shapes;
    request.workspace = workspace;
    request.tag = 7;
    ep_fault fault{};
    return call(ops.primitive_launch, made, on, &request, &fault);
  }

  // Copies from memory of `peer`, after asking whether that is possible.
  Status peer_copy(const Host& peer, ep_buffer dst, ep_buffer src, uint64_t size) {
    EXPECT_TRUE(call(ops.peer_open, device->handle, peer.device->handle).ok());
    return call(ops.peer_copy, stream(), dst, peer.device->handle, src, size);
  }

  OpenDevice* device;
  ep_device_ops ops;
};

ep_primitive_desc relu(int64_t length = 8) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_unary;
  desc.operand_count = 2;
  desc.attributes.unary.op = EP_UNARY_relu;
  for (int i = 0; i < 2; ++i) {
    ep_operand_desc& operand = desc.operands[i];
    operand.role = i == 0 ? EP_ROLE_DST : EP_ROLE_SRC;
    operand.dtype = EP_DTYPE_f32;
    operand.rank = 1;
    operand.dims[0] = length;
    operand.strides[0] = 1;
  }
  return desc;
}

// relu whose operand `index` has a layout of the toy's own.
ep_primitive_desc relu_in_layout(uint32_t index, int64_t token) {
  ep_primitive_desc desc = relu();
  desc.operands[index].flags = EP_OPERAND_FLAG_OPAQUE;
  desc.operands[index].strides[0] = token;
  return desc;
}

ep_memory* image(Host& host, int64_t token = 4) {
  ep_memory* made = nullptr;
  const ep_operand_desc layout = relu_in_layout(0, token).operands[0];
  EXPECT_TRUE(host.call(host.ops.layout_allocate, host.device->handle, &layout, &made).ok());
  return made;
}

Status describe(Host& host, const ep_operand_desc& operand) {
  ep_layout_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_LAYOUT_INFO;
  return host.call(host.ops.layout_info, host.device->handle, &operand, &info);
}

// Writes a value in layout 3 at the beginning of `memory`; its plain source is after it.
Status write_value(Host& host, ep_memory* memory, ep_stream* on) {
  return host.launch(host.primitive(relu_in_layout(0, 3)), on, {memory, 0}, {memory, 1024});
}

// A graph of two nodes: relu of an input and then of the result, over 8 elements each. A test changes it.
struct Table {
  Table() {
    values[0] = {EP_GRAPH_VALUE_INPUT, 32, EP_DTYPE_f32, 0};
    values[1] = {0, 32, EP_DTYPE_f32, 0};
    values[2] = {EP_GRAPH_VALUE_OUTPUT, 32, EP_DTYPE_f32, 0};
    values[3] = {0, 32, EP_DTYPE_f32, 0};  // part of the table only if a test says so
    for (uint32_t i = 0; i < 2; ++i) {
      nodes[i].primitive = relu();
      nodes[i].operands[0] = {i + 1, 0, 0};
      nodes[i].operands[1] = {i, 0, 0};
    }
    desc.struct_size = sizeof desc;
    desc.struct_type = EP_STRUCT_GRAPH_DESC;
    desc.values = values;
    desc.constants = constants;
    desc.nodes = nodes;
    desc.value_count = 3;
    desc.node_count = 2;
  }
  Table(const Table&) = delete;

  ep_graph_value values[4]{};
  ep_buffer constants[4]{};
  ep_graph_node nodes[2]{};
  ep_graph_desc desc{};
};

Status capability(Host& host, const Table& table) {
  ep_graph_answer answers[2]{};
  return host.call(host.ops.graph_capability, host.device->handle, &table.desc, static_cast<ep_graph_answer*>(answers));
}

Status compile(Host& host, const Table& table, ep_graph** made) {
  ep_graph_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_GRAPH_INFO;
  return host.call(host.ops.graph_compile, host.device->handle, &table.desc, made, &info);
}

// A text with the entry f, of one buffer and 8 bytes of parameters. A test changes it.
struct Text {
  Text() {
    entries[0] = {{"f", 1}, 0, 1, 8, {1, 1, 1}, 0};
    entries[1] = {{"g", 1}, 0, 1, 8, {1, 1, 1}, 0};  // counted only where a test says so, as is the next
    constants[0] = {{"n", 1}, {EP_DTYPE_i64, 0, {}}};
    desc.struct_size = sizeof desc;
    desc.struct_type = EP_STRUCT_MODULE_DESC;
    desc.dialect = EP_DIALECT_C;
    desc.entry_count = 1;
    desc.entries = entries;
    desc.constants = constants;
    desc.name = {"toy", 3};
    desc.text = {"text", 4};
  }
  Text(const Text&) = delete;

  ep_module_entry entries[2]{};
  ep_module_constant constants[1]{};
  ep_module_desc desc{};
};

Status create_module(Host& host, const Text& text, ep_module** made) {
  ep_module_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_MODULE_INFO;
  return host.call(host.ops.module_create, host.device->handle, &text.desc, made, &info);
}

// The layer's message for a text that `bend` has changed.
Status bent_text(void (*bend)(Text&)) {
  Host host(0);
  Text text;
  bend(text);
  ep_module* made = nullptr;
  return create_module(host, text, &made);
}

Status get_kernel(Host& host, ep_module* module, const char* entry, ep_kernel** made) {
  ep_kernel_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_KERNEL_INFO;
  return host.call(host.ops.kernel_get, module, ep_string{entry, std::strlen(entry)}, made, &info);
}

// A module of a Text, whose entry has `flags`, and its kernel.
struct Compiled {
  explicit Compiled(Host& host, uint64_t flags = 0) {
    Text text;
    text.entries[0].flags = flags;
    EXPECT_TRUE(create_module(host, text, &module).ok());
    EXPECT_TRUE(get_kernel(host, module, "f", &kernel).ok());
  }
  ep_module* module = nullptr;
  ep_kernel* kernel = nullptr;
};

// A launch of that kernel. A test changes it.
struct KernelLaunch {
  explicit KernelLaunch(ep_buffer on) : buffer(on) {
    request.buffers = &buffer;
    request.buffer_count = 1;
    request.parameters = &parameter;
    request.parameter_bytes = sizeof parameter;
    request.groups[0] = request.groups[1] = request.groups[2] = 1;
    request.tag = 7;
  }
  KernelLaunch(const KernelLaunch&) = delete;
  Status run(Host& host, ep_kernel* kernel, ep_stream* on) {
    ep_fault fault{};
    return host.call(host.ops.kernel_launch, kernel, on, static_cast<const ep_kernel_launch*>(&request), &fault);
  }

  ep_buffer buffer;
  int64_t parameter = 0;
  ep_kernel_launch request{};
};

// The layer's message for a launch that `bend` has changed.
Status bent_launch(void (*bend)(KernelLaunch&), uint64_t flags = 0) {
  Host host(0);
  KernelLaunch launch({host.memory(), 0});
  bend(launch);
  return launch.run(host, Compiled(host, flags).kernel, host.stream());
}

// The layer's message for a table that `bend` has changed.
Status bent(void (*bend)(Table&)) {
  Host host(0);
  Table table;
  bend(table);
  return capability(host, table);
}

Status launch_graph(Host& host, ep_graph* graph, ep_stream* on, std::vector<ep_buffer> operands,
                    ep_buffer workspace = {}) {
  ep_graph_launch request{};
  request.operands = operands.data();
  request.operand_count = static_cast<uint32_t>(operands.size());
  request.workspace = workspace;
  request.tag = 7;
  ep_fault fault{};
  return host.call(host.ops.graph_launch, graph, on, &request, &fault);
}

// Launches the graph of a Table on the operands that `place` returns.
Status launched(std::vector<ep_buffer> (*place)(ep_memory*), int index = 0) {
  Host host(index);
  ep_graph* graph = nullptr;
  EXPECT_TRUE(compile(host, Table(), &graph).ok());
  return launch_graph(host, graph, host.stream(), place(host.memory()));
}

// Imports of the toy, which takes file descriptors.
ep_import_desc import_desc(int32_t type, uint64_t size, int32_t semaphore) {
  ep_import_desc desc{};
  desc.struct_size = sizeof desc;
  desc.struct_type = EP_STRUCT_IMPORT_DESC;
  desc.handle_type = type;
  desc.size = size;
  desc.semaphore = semaphore;
  return desc;
}

Status import_memory(Host& host, ep_memory** made, int32_t type = EP_HANDLE_OPAQUE_FD, uint64_t size = block) {
  const ep_import_desc desc = import_desc(type, size, 0);
  return host.call(host.ops.memory_import, host.device->handle, &desc, made);
}

Status import_semaphore(Host& host, ep_semaphore** made, int32_t counts, int32_t type = EP_HANDLE_OPAQUE_FD) {
  const ep_import_desc desc = import_desc(type, 0, counts);
  return host.call(host.ops.semaphore_import, host.device->handle, &desc, made);
}

// Signals a semaphore of kind `counts` with each of `values`. Returns the last status.
Status signalled(int32_t counts, std::initializer_list<uint64_t> values) {
  Host host(0);
  ep_stream* stream = host.stream();
  ep_semaphore* semaphore = nullptr;
  EXPECT_TRUE(import_semaphore(host, &semaphore, counts).ok());
  Status last;
  for (const uint64_t value : values) last = host.call(host.ops.stream_signal_semaphore, stream, semaphore, value);
  return last;
}

// Command lists recorded on device 0.
Status begin_list(Host& host, ep_stream* on, std::vector<ep_binding> bindings = {}) {
  ep_command_list_desc desc{};
  desc.struct_size = sizeof desc;
  desc.struct_type = EP_STRUCT_COMMAND_LIST_DESC;
  desc.bindings = bindings.data();
  desc.binding_count = static_cast<uint32_t>(bindings.size());
  return host.call(host.ops.command_list_begin, on, &desc);
}

Status end_list(Host& host, ep_stream* on, ep_command_list** made) {
  ep_command_list_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_COMMAND_LIST_INFO;
  return host.call(host.ops.command_list_end, on, made, &info);
}

Status replay(Host& host, ep_command_list* list, ep_stream* on, std::vector<ep_buffer> buffers = {}) {
  ep_command_list_replay_desc desc{};
  desc.bindings = buffers.data();
  desc.binding_count = static_cast<uint32_t>(buffers.size());
  desc.tag = 9;
  return host.call(host.ops.command_list_replay, list, on, &desc);
}

// A list of two launches: relu from the first binding to the second, and from there to fixed memory.
struct RecordedList {
  explicit RecordedList(Host& host)
      : stream(host.stream()), memory(host.memory()), other(host.memory()), primitive(host.primitive(relu())) {
    EXPECT_TRUE(begin_list(host, stream, {{{memory, 0}, 32}, {{memory, 64}, 32}}).ok());
    EXPECT_TRUE(host.launch(primitive, stream, {memory, 64}, {memory, 0}).ok());
    EXPECT_TRUE(host.launch(primitive, stream, {other, 0}, {memory, 64}).ok());
    EXPECT_TRUE(end_list(host, stream, &list).ok());
  }
  ep_stream* stream;
  ep_memory *memory, *other;
  ep_primitive* primitive;
  ep_command_list* list = nullptr;
};

// The layer's message for a replay of it with `buffers`, in the recorded memory.
Status replayed(std::vector<uint64_t> offsets) {
  Host host(0);
  const RecordedList recorded(host);
  std::vector<ep_buffer> buffers;
  for (const uint64_t offset : offsets) buffers.push_back({recorded.memory, offset});
  return replay(host, recorded.list, recorded.stream, buffers);
}

// A violation of a rule, and the status that the call returns: INVALID_ARGUMENT blames the host, INTERNAL blames the
// provider; a function without a status has ok.
struct Violator {
  const char* rule;
  const char* name;
  Code answer;
  std::function<Status()> run;
};

void change(void (*how)(ep_device_ops*)) { toy().change = how; }

const std::vector<Violator>& host_violators() {
  static const std::vector<Violator> all = {
      {"S10", "the time of an event that is not known to have fired", Code::invalid_argument,
       [] {
         Host host(0);
         ep_stream* stream = host.timed_stream();
         ep_event* seen = host.recorded(stream);
         EXPECT_TRUE(host.call(host.ops.event_query, seen).ok());
         return host.elapsed(seen, host.recorded(stream));
       }},
      {"S10", "the time of an event on a stream without times", Code::invalid_argument,
       [] {
         Host host(0);
         ep_event* event = host.recorded(host.stream());
         EXPECT_TRUE(host.call(host.ops.event_query, event).ok());
         return host.elapsed(event, event);
       }},
      {"S10", "the time of an event that was never recorded", Code::invalid_argument,
       [] {
         Host host(0);
         return host.elapsed(host.event(), host.event());
       }},
      {"K04", "a recording on a stream with work in flight", Code::invalid_argument,
       [] {
         Host host(0);
         ep_stream* stream = host.stream();
         static_cast<void>(host.recorded(stream));
         return begin_list(host, stream);
       }},
      {"K04", "the end of a recording that did not begin", Code::invalid_argument,
       [] {
         Host host(0);
         ep_command_list* list = nullptr;
         return end_list(host, host.stream(), &list);
       }},
      {"K04", "a stream destroyed while it records", Code::ok,
       [] {
         Host host(0);
         ep_stream* stream = host.stream();
         EXPECT_TRUE(begin_list(host, stream).ok());
         host.ops.stream_destroy(host.device->handle, stream);
         return Status();
       }},
      {"K05", "a list replayed again before its last replay was seen", Code::invalid_argument,
       [] {
         Host host(0);
         const RecordedList recorded(host);
         const std::vector<ep_buffer> buffers = {{recorded.memory, 0}, {recorded.memory, 64}};
         EXPECT_TRUE(replay(host, recorded.list, recorded.stream, buffers).ok());
         return replay(host, recorded.list, host.stream(), buffers);
       }},
      {"M06", "a list destroyed before its last replay was seen", Code::ok,
       [] {
         Host host(0);
         const RecordedList recorded(host);
         EXPECT_TRUE(replay(host, recorded.list, recorded.stream, {{recorded.memory, 0}, {recorded.memory, 64}}).ok());
         host.ops.command_list_destroy(host.device->handle, recorded.list);
         return Status();
       }},
      {"K06", "a replay with one buffer for two bindings", Code::invalid_argument, [] { return replayed({0}); }},
      {"K06", "a replay whose buffers overlap", Code::invalid_argument,
       [] {
         return replayed({0, 16});
       }},
      {"K06", "a replay whose buffer is not aligned as the recorded one", Code::invalid_argument,
       [] {
         return replayed({0, 66});
       }},
      {"K06", "a replay whose buffer overlaps a fixed operand", Code::invalid_argument,
       [] {
         Host host(0);
         const RecordedList recorded(host);
         return replay(host, recorded.list, recorded.stream, {{recorded.memory, 0}, {recorded.other, 16}});
       }},
      {"M05", "a replay whose buffer ends behind its block", Code::invalid_argument,
       [] {
         return replayed({0, block - 16});
       }},
      {"K06", "a binding in another pool", Code::invalid_argument,
       [] {
         Host host(0);
         return begin_list(host, host.stream(), {{{host.memory(1), 0}, 32}});
       }},
      {"K06", "two bindings that overlap", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return begin_list(host, host.stream(), {{{memory, 0}, 32}, {{memory, 16}, 32}});
       }},
      {"K06", "an operand that begins in a binding and ends behind it", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         EXPECT_TRUE(begin_list(host, stream, {{{memory, 0}, 64}}).ok());
         return host.launch(host.primitive(relu()), stream, {memory, 512}, {memory, 48});
       }},
      {"K06", "the same of a copy", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         EXPECT_TRUE(begin_list(host, stream, {{{memory, 0}, 64}}).ok());
         return host.call(host.ops.copy, stream, ep_buffer{memory, 32}, ep_buffer{memory, 512}, uint64_t{64});
       }},
      {"K07", "memory of a list freed", Code::ok,
       [] {
         Host host(0);
         const RecordedList recorded(host);
         host.ops.memory_free(host.device->handle, recorded.memory);
         host.ops.memory_free(host.device->handle, recorded.other);
         return Status();
       }},
      {"K07", "a primitive of a list destroyed", Code::ok,
       [] {
         Host host(0);
         const RecordedList recorded(host);
         host.ops.primitive_destroy(host.device->handle, recorded.primitive);
         return Status();
       }},
      {"Z02", "a text in a dialect that is not there", Code::invalid_argument,
       [] { return bent_text([](Text& text) { text.desc.dialect = 9; }); }},
      {"Z02", "a text without an entry", Code::invalid_argument,
       [] { return bent_text([](Text& text) { text.desc.entry_count = 0; }); }},
      {"Z02", "a text without a letter", Code::invalid_argument,
       [] { return bent_text([](Text& text) { text.desc.text.size = 0; }); }},
      {"Z02", "an entry that is not a C identifier", Code::invalid_argument,
       [] { return bent_text([](Text& text) {
              text.entries[0].name = {"*/", 2};
            }); }},
      {"Z02", "two entries of one name", Code::invalid_argument,
       [] {
         return bent_text([](Text& text) {
           text.desc.entry_count = 2;
           text.entries[1].name = text.entries[0].name;
         });
       }},
      {"Z02", "an entry with an unknown flag", Code::invalid_argument,
       [] { return bent_text([](Text& text) { text.entries[0].flags = 1u << 20; }); }},
      {"Z02", "an entry in C with a group of two", Code::invalid_argument,
       [] { return bent_text([](Text& text) { text.entries[0].group[0] = 2; }); }},
      {"Z02", "an entry with an empty group", Code::invalid_argument,
       [] {
         return bent_text([](Text& text) {
           text.desc.dialect = EP_DIALECT_CUDA_C;
           text.entries[0].group[2] = 0;
         });
       }},
      {"Z02", "two entries in GLSL", Code::invalid_argument,
       [] {
         return bent_text([](Text& text) {
           text.desc.dialect = EP_DIALECT_GLSL;
           text.desc.entry_count = 2;
         });
       }},
      {"Z02", "a constant that is called as an entry is", Code::invalid_argument,
       [] {
         return bent_text([](Text& text) {
           text.desc.constant_count = 1;
           text.constants[0].name = text.entries[0].name;
         });
       }},
      {"Z02", "a constant without a name", Code::invalid_argument,
       [] {
         return bent_text([](Text& text) {
           text.desc.constant_count = 1;
           text.constants[0].name = {};
         });
       }},
      {"Z03", "a launch of a kernel without its buffer", Code::invalid_argument,
       [] { return bent_launch([](KernelLaunch& launch) { launch.request.buffer_count = 0; }); }},
      {"Z03", "a launch of a kernel without its parameters", Code::invalid_argument,
       [] { return bent_launch([](KernelLaunch& launch) { launch.request.parameters = nullptr; }); }},
      {"Z03", "a launch of a kernel with shorter parameters", Code::invalid_argument,
       [] { return bent_launch([](KernelLaunch& launch) { launch.request.parameter_bytes = 4; }); }},
      {"Z03", "a launch of no group", Code::invalid_argument,
       [] { return bent_launch([](KernelLaunch& launch) { launch.request.groups[1] = 0; }); }},
      {"Z03", "a launch without the workspace of its entry", Code::invalid_argument,
       [] { return bent_launch([](KernelLaunch&) {}, EP_ENTRY_FLAG_WORKSPACE); }},
      {"Z03", "a launch with scratch for an entry that has none", Code::invalid_argument,
       [] { return bent_launch([](KernelLaunch& launch) { launch.request.scratch = launch.buffer; }); }},
      {"Z03", "workspace at an odd place", Code::invalid_argument,
       [] {
         return bent_launch(
             [](KernelLaunch& launch) {
               launch.request.workspace = {launch.buffer.memory, 128};
             },
             EP_ENTRY_FLAG_WORKSPACE);
       }},
      {"M05", "a buffer of a kernel behind the end of its block", Code::invalid_argument,
       [] { return bent_launch([](KernelLaunch& launch) { launch.buffer.offset = block; }); }},
      {"M04", "a kernel of a module that was destroyed", Code::invalid_argument,
       [] {
         Host host(0);
         const Compiled compiled(host);
         host.ops.module_destroy(host.device->handle, compiled.module);
         return KernelLaunch({host.memory(), 0}).run(host, compiled.kernel, host.stream());
       }},
      {"M06", "a module destroyed whose kernel is in flight", Code::ok,
       [] {
         Host host(0);
         const Compiled compiled(host);
         EXPECT_TRUE(KernelLaunch({host.memory(), 0}).run(host, compiled.kernel, host.stream()).ok());
         host.ops.module_destroy(host.device->handle, compiled.module);
         return Status();
       }},
      {"K07", "a module of a list destroyed", Code::ok,
       [] {
         Host host(0);
         const Compiled compiled(host);
         ep_stream* stream = host.stream();
         ep_command_list* list = nullptr;
         EXPECT_TRUE(begin_list(host, stream).ok());
         EXPECT_TRUE(KernelLaunch({host.memory(), 0}).run(host, compiled.kernel, stream).ok());
         EXPECT_TRUE(end_list(host, stream, &list).ok());
         host.ops.module_destroy(host.device->handle, compiled.module);
         return Status();
       }},
      {"A01", "an allocation of 0 bytes", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* made = nullptr;
         return host.call(host.ops.memory_allocate, host.device->handle, 0u, uint64_t{0}, &made);
       }},
      {"A01", "a pool that is not there", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* made = nullptr;
         return host.call(host.ops.memory_allocate, host.device->handle, 9u, uint64_t{8}, &made);
       }},
      {"A01", "no place for the new handle", Code::invalid_argument,
       [] {
         Host host(0);
         return host.call(host.ops.stream_create, host.device->handle, &kComputeStream,
                          static_cast<ep_stream**>(nullptr));
       }},
      {"T01", "an answer of another struct type", Code::invalid_argument,
       [] {
         Host host(0);
         ep_support_info info{};
         const ep_primitive_desc desc = relu();
         return host.call(host.ops.primitive_support, host.device->handle, &desc, &info);
       }},
      {"M02", "mapping a block that is not host-visible", Code::invalid_argument,
       [] {
         Host host(0);
         void* address = nullptr;
         return host.call(host.ops.memory_map, host.device->handle, host.memory(1), &address);
       }},
      {"M04", "a block freed twice", Code::ok,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         host.ops.memory_free(host.device->handle, memory);
         host.ops.memory_free(host.device->handle, memory);
         return Status();
       }},
      {"M04", "a block used after it was freed", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         host.ops.memory_free(host.device->handle, memory);
         const char byte = 0;
         return host.call(host.ops.upload, host.stream(), ep_buffer{memory, 0}, static_cast<const void*>(&byte),
                          uint64_t{1});
       }},
      {"M04", "a block flushed after it was freed", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         host.ops.memory_free(host.device->handle, memory);
         return host.call(host.ops.memory_flush, host.device->handle, memory, uint64_t{0}, uint64_t{64});
       }},
      {"M04", "an event of another device", Code::invalid_argument,
       [] {
         Host host(0), other(1);
         return host.call(host.ops.event_record, host.event(), other.stream());
       }},
      {"M04", "a handle out of nowhere", Code::invalid_argument,
       [] {
         Host host(0);
         int something = 0;
         return host.call(host.ops.stream_synchronize, reinterpret_cast<ep_stream*>(&something));
       }},
      {"M05", "an upload past the end", Code::invalid_argument,
       [] {
         Host host(0);
         const std::vector<char> bytes(block);
         return host.call(host.ops.upload, host.stream(), ep_buffer{host.memory(), 1},
                          static_cast<const void*>(bytes.data()), block);
       }},
      {"M05", "an operand past the end", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu()), host.stream(), {memory, block - 16}, {memory, 0});
       }},
      {"M05", "an operand between two elements", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu()), host.stream(), {memory, 64}, {memory, 2});
       }},
      {"M05", "half an atom flushed", Code::invalid_argument,
       [] {
         Host host(0);
         return host.call(host.ops.memory_flush, host.device->handle, host.memory(), uint64_t{8}, uint64_t{8});
       }},
      {"M06", "a block freed in flight", Code::ok,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         const int calls = toy().calls;
         EXPECT_TRUE(host.launch(host.primitive(relu()), host.stream(), {memory, 0}, {memory, 512}).ok());
         host.ops.memory_free(host.device->handle, memory);
         EXPECT_EQ(toy().calls, calls + 5) << "the layer synchronises the stream, then frees";
         return Status();
       }},
      {"M06", "a primitive destroyed before its event was seen", Code::ok,
       [] {
         Host host(0);
         ep_primitive* primitive = host.primitive(relu());
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         ep_event* event = host.event();
         EXPECT_TRUE(host.call(host.ops.event_record, event, stream).ok());
         EXPECT_TRUE(host.launch(primitive, stream, {memory, 0}, {memory, 512}).ok());
         EXPECT_TRUE(host.call(host.ops.event_query, event).ok());
         host.ops.primitive_destroy(host.device->handle, primitive);
         return Status();
       }},
      {"M06", "a stream destroyed in flight", Code::ok,
       [] {
         Host host(0);
         ep_stream* stream = host.stream();
         EXPECT_TRUE(host.call(host.ops.event_record, host.event(), stream).ok());
         host.ops.stream_destroy(host.device->handle, stream);
         return Status();
       }},
      {"M06", "a block freed while a peer reads it", Code::ok,
       [] {
         Host host(0), peer(1);
         ep_memory* source = peer.memory();
         EXPECT_TRUE(host.peer_copy(peer, {host.memory(), 0}, {source, 0}, 8).ok());
         const int calls = toy().calls;
         peer.ops.memory_free(peer.device->handle, source);
         EXPECT_EQ(toy().calls, calls + 2) << "the layer synchronises the stream of the other device, then frees";
         return Status();
       }},
      {"M10", "a peer copy nobody asked for", Code::invalid_argument,
       [] {
         Host host(0), peer(1);
         return host.call(host.ops.peer_copy, host.stream(), ep_buffer{host.memory(), 0}, peer.device->handle,
                          ep_buffer{peer.memory(), 0}, uint64_t{8});
       }},
      {"M10", "a device that is its own peer", Code::invalid_argument,
       [] {
         Host host(0);
         return host.call(host.ops.peer_open, host.device->handle, host.device->handle);
       }},
      {"M10", "a peer of another provider", Code::invalid_argument,
       [] {
         register_provider("stranger", toy_query);
         Host host(0);
         const OpenDevice* stranger = open_device("stranger:1").value();
         return host.call(host.ops.peer_open, host.device->handle, stranger->handle);
       }},
      {"M04", "a peer copy from one's own memory", Code::invalid_argument,
       [] {
         Host host(0), peer(1);
         return host.peer_copy(peer, {host.memory(), 0}, {host.memory(), 0}, 8);
       }},
      {"M05", "a peer copy past the end of its source", Code::invalid_argument,
       [] {
         Host host(0), peer(1);
         return host.peer_copy(peer, {host.memory(), 0}, {peer.memory(), block - 4}, 8);
       }},
      {"D01", "a peer that was closed", Code::invalid_argument,
       [] {
         Host host(0), peer(1);
         ep_device* handle = peer.device->handle;
         close_device(peer.device);
         return host.call(host.ops.peer_open, host.device->handle, handle);
       }},
      {"S02", "a wait for an event never recorded", Code::invalid_argument,
       [] {
         Host host(0);
         return host.call(host.ops.stream_wait_event, host.stream(), host.event());
       }},
      {"S02", "a question about an event never recorded", Code::invalid_argument,
       [] {
         Host host(0);
         return host.call(host.ops.event_query, host.event());
       }},
      {"S02", "a wait on the host for an event never recorded", Code::invalid_argument,
       [] {
         Host host(0);
         return host.call(host.ops.event_host_wait, host.event(), uint64_t{0});
       }},
      {"C01", "two threads on one stream", Code::invalid_argument,
       [] {
         Host host(0);
         ep_stream* stream = host.stream();
         ep_memory* memory = host.memory();
         Status second;
         toy().on_launch = [&] {
           std::thread([&] {
             second = host.call(host.ops.copy, stream, ep_buffer{memory, 0}, ep_buffer{memory, 512}, uint64_t{8});
           }).join();
         };
         EXPECT_TRUE(host.launch(host.primitive(relu()), stream, {memory, 0}, {memory, 512}).ok());
         return second;
       }},
      {"D01", "a device closed with a stream alive", Code::ok,
       [] {
         Host host(0);
         host.stream();
         close_device(host.device);
         return Status();
       }},
      {"D01", "a device used after it was closed", Code::invalid_argument,
       [] {
         Host host(0);
         ep_device* handle = host.device->handle;
         close_device(host.device);
         ep_stream* stream = nullptr;
         return host.call(host.ops.stream_create, handle, &kComputeStream, &stream);
       }},
      {"P04", "a descriptor with a dim of 0", Code::invalid_argument, [] { return Host(0).support(relu(0)); }},
      {"P05", "an output over its input, one element on", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu()), host.stream(), {memory, 4}, {memory, 0});
       }},
      {"P05", "a copy onto itself", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.call(host.ops.copy, host.stream(), ep_buffer{memory, 0}, ep_buffer{memory, 4}, uint64_t{8});
       }},
      {"M11", "a copy within a block that holds one tensor", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory(1);
         return host.call(host.ops.copy, host.stream(), ep_buffer{memory, 0}, ep_buffer{memory, 256}, uint64_t{8});
       }},
      {"M11", "an output beside its input in a block that holds one tensor", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory(1);
         return host.launch(host.primitive(relu()), host.stream(), {memory, 512}, {memory, 0});
       }},
      {"M12", "an upload of 3 bytes to a pool that moves 4", Code::invalid_argument,
       [] {
         Host host(0);
         const void* src = "abc";
         return host.call(host.ops.upload, host.stream(), ep_buffer{host.memory(1), 0}, src, uint64_t{3});
       }},
      {"M12", "a download from offset 2 of a pool that moves 4", Code::invalid_argument,
       [] {
         Host host(0);
         uint64_t into = 0;
         return host.call(host.ops.download, host.stream(), static_cast<void*>(&into), ep_buffer{host.memory(1), 2},
                          uint64_t{4});
       }},
      {"M12", "a copy to offset 2 of a pool that moves 4", Code::invalid_argument,
       [] {
         Host host(0);
         return host.call(host.ops.copy, host.stream(), ep_buffer{host.memory(1), 2}, ep_buffer{host.memory(1), 0},
                          uint64_t{4});
       }},
      {"A01", "a stream without a description", Code::invalid_argument,
       [] {
         Host host(0);
         ep_stream* stream = nullptr;
         return host.call(host.ops.stream_create, host.device->handle, static_cast<const ep_stream_desc*>(nullptr),
                          &stream);
       }},
      {"T01", "a description of a stream without its header", Code::invalid_argument,
       [] {
         Host host(0);
         const ep_stream_desc desc{};
         ep_stream* stream = nullptr;
         return host.call(host.ops.stream_create, host.device->handle, &desc, &stream);
       }},
      {"P08", "a launch without the workspace asked for", Code::invalid_argument,
       [] {
         toy().info.workspace_bytes = 100;
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu()), host.stream(), {memory, 0}, {memory, 512});
       }},
      {"P08", "a launch without the shapes that are open", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu(EP_ANY)), host.stream(), {memory, 0}, {memory, 512});
       }},
      {"P08", "a launch with invalid shapes", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         const ep_shape shapes[2] = {};
         return host.launch(host.primitive(relu(EP_ANY)), host.stream(), {memory, 0}, {memory, 512}, {}, shapes);
       }},
      {"G03", "a node that reads what a later one writes", Code::invalid_argument,
       [] { return bent([](Table& table) { std::swap(table.nodes[0], table.nodes[1]); }); }},
      {"G03", "a value that two nodes write", Code::invalid_argument,
       [] { return bent([](Table& table) { table.nodes[1].operands[0].value = 1; }); }},
      {"G03", "a node that writes an input", Code::invalid_argument,
       [] { return bent([](Table& table) { table.nodes[1].operands[0].value = 0; }); }},
      {"G03", "an operand that is not a value of the table", Code::invalid_argument,
       [] { return bent([](Table& table) { table.nodes[1].operands[1].value = 9; }); }},
      {"G03", "an operand past the end of its value", Code::invalid_argument,
       [] { return bent([](Table& table) { table.nodes[1].operands[1].offset = 4; }); }},
      {"G03", "an output that does not fill its value", Code::invalid_argument,
       [] { return bent([](Table& table) { table.values[1].bytes = 36; }); }},
      {"G03", "an operand of another dtype than its value", Code::invalid_argument,
       [] { return bent([](Table& table) { table.values[0].dtype = EP_DTYPE_i32; }); }},
      {"G03", "a value that no node uses", Code::invalid_argument,
       [] { return bent([](Table& table) { table.desc.value_count = 4; }); }},
      {"G03", "a constant without memory", Code::invalid_argument,
       [] { return bent([](Table& table) { table.values[0].flags = EP_GRAPH_VALUE_CONSTANT; }); }},
      {"G03", "a value with two flags", Code::invalid_argument,
       [] { return bent([](Table& table) { table.values[2].flags |= EP_GRAPH_VALUE_INPUT; }); }},
      {"G03", "a dim that is open", Code::invalid_argument,
       [] { return bent([](Table& table) { table.nodes[0].primitive = relu(EP_ANY); }); }},
      {"G03", "a scalar that is not baked", Code::invalid_argument,
       [] {
         return bent([](Table& table) {
           ep_operand_desc& source = table.nodes[0].primitive.operands[1];
           source = {EP_ROLE_SRC, EP_DTYPE_f32, 0, 0, EP_OPERAND_FLAG_SCALAR, {}, {}};
           table.nodes[0].operands[1].value = EP_GRAPH_NO_VALUE;
         });
       }},
      {"G03", "a table without nodes", Code::invalid_argument,
       [] { return bent([](Table& table) { table.desc.node_count = 0; }); }},
      {"T01", "a table of another struct type", Code::invalid_argument,
       [] { return bent([](Table& table) { table.desc.struct_type = EP_STRUCT_GRAPH_INFO; }); }},
      {"G04", "a constant freed before its graph", Code::ok,
       [] {
         Host host(0);
         Table table;
         ep_memory* memory = host.memory();
         table.values[0].flags = EP_GRAPH_VALUE_CONSTANT;
         table.constants[0] = {memory, 0};
         ep_graph* graph = nullptr;
         EXPECT_TRUE(compile(host, table, &graph).ok());
         host.ops.memory_free(host.device->handle, memory);
         host.ops.graph_destroy(host.device->handle, graph);
         return Status();
       }},
      {"M06", "a graph destroyed in flight", Code::ok,
       [] {
         Host host(0);
         ep_graph* graph = nullptr;
         EXPECT_TRUE(compile(host, Table(), &graph).ok());
         ep_memory* memory = host.memory();
         EXPECT_TRUE(launch_graph(host, graph, host.stream(), {{memory, 0}, {memory, 512}}).ok());
         host.ops.graph_destroy(host.device->handle, graph);
         return Status();
       }},
      {"G05", "a launch without its output", Code::invalid_argument,
       [] { return launched([](ep_memory* memory) {
              return std::vector<ep_buffer>{{memory, 0}};
            }); }},
      {"G05", "an output of a graph over its input", Code::invalid_argument,
       [] { return launched([](ep_memory* memory) {
              return std::vector<ep_buffer>{{memory, 0}, {memory, 16}};
            }); }},
      {"G05", "an input between two elements", Code::invalid_argument,
       [] { return launched([](ep_memory* memory) {
              return std::vector<ep_buffer>{{memory, 2}, {memory, 512}};
            }); }},
      {"M05", "an output of a graph past the end", Code::invalid_argument,
       [] {
         return launched([](ep_memory* memory) { return std::vector<ep_buffer>{{memory, 0}, {memory, block - 16}}; });
       }},
      {"G05", "a graph without the workspace asked for", Code::invalid_argument,
       [] {
         toy().info.workspace_bytes = 100;
         return launched([](ep_memory* memory) { return std::vector<ep_buffer>{{memory, 0}, {memory, 512}}; });
       }},
      {"A01", "an import of 0 bytes", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* made = nullptr;
         return import_memory(host, &made, EP_HANDLE_OPAQUE_FD, 0);
       }},
      {"A01", "an import without a description", Code::invalid_argument,
       [] {
         Host host(0);
         ep_stream* made = nullptr;
         return host.call(host.ops.stream_import, host.device->handle, static_cast<const ep_import_desc*>(nullptr),
                          &made);
       }},
      {"T01", "a description of another struct type", Code::invalid_argument,
       [] {
         Host host(0);
         ep_import_desc desc = import_desc(EP_HANDLE_OPAQUE_FD, block, 0);
         desc.struct_type = EP_STRUCT_ADOPT_DESC;
         ep_memory* made = nullptr;
         return host.call(host.ops.memory_import, host.device->handle, &desc, &made);
       }},
      {"M05", "a copy past the end of imported memory", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* made = nullptr;
         EXPECT_TRUE(import_memory(host, &made).ok());
         return host.call(host.ops.copy, host.stream(), ep_buffer{made, block - 8}, ep_buffer{host.memory(), 0},
                          uint64_t{16});
       }},
      {"I03", "an event that counts as a timeline", Code::invalid_argument,
       [] {
         Host host(0);
         ep_semaphore* made = nullptr;
         return import_semaphore(host, &made, EP_SEMAPHORE_TIMELINE, EP_HANDLE_CL_EVENT);
       }},
      {"I03", "a semaphore that counts as nothing", Code::invalid_argument,
       [] {
         Host host(0);
         ep_semaphore* made = nullptr;
         return import_semaphore(host, &made, 0);
       }},
      {"I03", "a timeline that does not grow", Code::invalid_argument,
       [] {
         return signalled(EP_SEMAPHORE_TIMELINE, {4, 4});
       }},
      {"I03", "a binary semaphore with a value", Code::invalid_argument,
       [] {
         return signalled(EP_SEMAPHORE_BINARY, {0, 1});
       }},
      {"M06", "a semaphore destroyed in flight", Code::ok,
       [] {
         Host host(0);
         ep_semaphore* semaphore = nullptr;
         EXPECT_TRUE(import_semaphore(host, &semaphore, EP_SEMAPHORE_TIMELINE).ok());
         EXPECT_TRUE(host.call(host.ops.stream_wait_semaphore, host.stream(), semaphore, uint64_t{3}).ok());
         host.ops.semaphore_destroy(host.device->handle, semaphore);
         return Status();
       }},
      {"Y04", "a question about an operand with strides", Code::invalid_argument,
       [] {
         Host host(0);
         return describe(host, relu().operands[0]);
       }},
      {"Y04", "a launch with a layout that the device does not know", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu_in_layout(0, 9)), host.stream(), {memory, 0}, {memory, 1024});
       }},
      {"Y04", "an opaque value that begins between two multiples of the pool's alignment", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu_in_layout(0, 3)), host.stream(), {memory, 64}, {memory, 1024});
       }},
      {"Y04", "a value of an image's layout in plain memory", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu_in_layout(0, 4)), host.stream(), {memory, 0}, {memory, 1024});
       }},
      {"Y05", "a launch that reads a value which nobody wrote", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu_in_layout(1, 3)), host.stream(), {memory, 1024}, {memory, 0});
       }},
      {"Y05", "a launch that reads a value under another token", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         EXPECT_TRUE(write_value(host, memory, stream).ok());
         return host.launch(host.primitive(relu_in_layout(1, 5)), stream, {memory, 1024}, {memory, 0});
       }},
      {"Y05", "a launch that reads a value after a copy over it", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         EXPECT_TRUE(write_value(host, memory, stream).ok());
         EXPECT_TRUE(host.call(host.ops.copy, stream, ep_buffer{memory, 256}, ep_buffer{memory, 1024}, 8).ok());
         return host.launch(host.primitive(relu_in_layout(1, 3)), stream, {memory, 1024}, {memory, 0});
       }},
      {"Y06", "a plain block in the pool of images", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* made = nullptr;
         return host.call(host.ops.memory_allocate, host.device->handle, 2, block, &made);
       }},
      {"Y06", "an image of a layout that is not for images", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* made = nullptr;
         const ep_operand_desc layout = relu_in_layout(0, 3).operands[0];
         return host.call(host.ops.layout_allocate, host.device->handle, &layout, &made);
       }},
      {"Y06", "an upload to an image", Code::invalid_argument,
       [] {
         Host host(0);
         return host.call(host.ops.upload, host.stream(), ep_buffer{image(host), 0}, "12345678", 8);
       }},
      {"Y06", "a download of an opaque value", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         EXPECT_TRUE(write_value(host, memory, stream).ok());
         char bytes[8];
         return host.call(host.ops.download, stream, static_cast<void*>(bytes), ep_buffer{memory, 0}, 8);
       }},
      {"Y06", "a plain operand that is an opaque value", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         EXPECT_TRUE(write_value(host, memory, stream).ok());
         return host.launch(host.primitive(relu()), stream, {memory, 1024}, {memory, 0});
       }},
      {"Y06", "a map of an image", Code::invalid_argument,
       [] {
         Host host(0);
         void* address = nullptr;
         return host.call(host.ops.memory_map, host.device->handle, image(host), &address);
       }},
      {"Y06", "a node of a graph with an opaque operand", Code::invalid_argument,
       [] { return bent([](Table& table) { table.nodes[0].primitive = relu_in_layout(0, 3); }); }},
      {"P05", "an opaque operand over the other", Code::invalid_argument,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         EXPECT_TRUE(write_value(host, memory, stream).ok());
         ep_primitive_desc desc = relu_in_layout(0, 3);
         desc.operands[1] = desc.operands[0];
         desc.operands[1].role = EP_ROLE_SRC;
         return host.launch(host.primitive(desc), stream, {memory, 0}, {memory, 0});
       }},
      {"P04", "an opaque operand with strides in addition to its token", Code::invalid_argument,
       [] {
         ep_primitive_desc desc = relu_in_layout(1, 3);
         desc.operands[1].strides[1] = 1;
         return Host(0).support(desc);
       }},
      {"M05", "a workspace not aligned to 256", Code::invalid_argument,
       [] {
         toy().info.workspace_bytes = 100;
         Host host(0);
         ep_memory* memory = host.memory();
         return host.launch(host.primitive(relu()), host.stream(), {memory, 0}, {memory, 512}, {memory, 1024 + 64});
       }},
  };
  return all;
}

Status allocate(Host host) {
  ep_memory* made = nullptr;
  return host.call(host.ops.memory_allocate, host.device->handle, 0u, block, &made);
}

Status create(Host host) {
  ep_primitive* made = nullptr;
  return host.try_create(relu(), &made);
}

Status launch_in_place(Host host) {
  ep_memory* memory = host.memory();
  return host.launch(host.primitive(relu()), host.stream(), {memory, 0}, {memory, 0});
}

Status take_fault_of(uint64_t tag) {
  Host host(0);
  ep_stream* stream = host.stream();
  ep_memory* memory = host.memory();
  EXPECT_TRUE(host.launch(host.primitive(relu()), stream, {memory, 0}, {memory, 0}).ok());
  toy().fault.code = EP_FAULT_INDEX_OUT_OF_RANGE;
  toy().fault.tag = tag;
  ep_fault fault{};
  return host.call(host.ops.stream_take_fault, stream, &fault);
}

Status fault_of_node(uint32_t node, int index) {
  toy().fault = {7, EP_FAULT_INDEX_OUT_OF_RANGE, 1, 9, 3, EP_FAULT_FLAG_NODE(node)};
  Host host(index);
  ep_graph* graph = nullptr;
  EXPECT_TRUE(compile(host, Table(), &graph).ok());
  ep_memory* memory = host.memory();
  ep_stream* stream = host.stream();
  if (index == 1) toy().launch_answer = EP_STATUS_FAULT;
  const Status answer = launch_graph(host, graph, stream, {{memory, 0}, {memory, 512}});
  if (index == 1) return answer;
  ep_fault fault{};
  return host.call(host.ops.stream_take_fault, stream, &fault);
}

// The layer's message for a dialect that `bend` has changed.
void (*bend_dialect)(ep_dialect_info*) = nullptr;

Status bent_dialect(void (*bend)(ep_dialect_info*)) {
  bend_dialect = bend;
  change([](ep_device_ops* ops) {
    static decltype(ops->dialect_info) sound = nullptr;
    sound = ops->dialect_info;
    ops->dialect_info = [](ep_device* device, uint32_t index, ep_dialect_info* out, ep_error** error) {
      const ep_status status = sound(device, index, out, error);
      bend_dialect(out);
      return status;
    };
  });
  Host host(0);
  ep_dialect_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DIALECT_INFO;
  return host.call(host.ops.dialect_info, host.device->handle, 0u, &info);
}

// The layer's message for a fault of a kernel that a launch returns.
Status fault_of_kernel(int index, uint64_t flags) {
  Host host(index);
  const Compiled compiled(host, flags);
  toy().launch_answer = EP_STATUS_FAULT;
  toy().fault = {7, EP_FAULT_INDEX_OUT_OF_RANGE, 0, 9, 3, 0};
  return KernelLaunch({host.memory(), 0}).run(host, compiled.kernel, host.stream());
}

const std::vector<Violator>& provider_violators() {
  static const std::vector<Violator> all = {
      {"Z01", "a dialect that is not there", Code::internal,
       [] { return bent_dialect([](ep_dialect_info* info) { info->dialect = 9; }); }},
      {"Z01", "a dialect of no compiler", Code::internal,
       [] { return bent_dialect([](ep_dialect_info* info) { info->compiler = {}; }); }},
      {"Z01", "a dialect of three buffers", Code::internal,
       [] { return bent_dialect([](ep_dialect_info* info) { info->greatest_buffers = 3; }); }},
      {"Z01", "a dialect of 128 bytes of parameters", Code::internal,
       [] { return bent_dialect([](ep_dialect_info* info) { info->parameter_bytes = 128; }); }},
      {"Z01", "a dialect without groups", Code::internal,
       [] { return bent_dialect([](ep_dialect_info* info) { info->groups[0] = 0; }); }},
      {"Z04", "two reports about one text", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->module_create = [](ep_device*, const ep_module_desc* desc, ep_module** out, ep_module_info*,
                                   ep_error**) {
             desc->diagnose(desc->context, {"one", 3});
             desc->diagnose(desc->context, {"two", 3});
             static int module = 0;
             return *out = reinterpret_cast<ep_module*>(&module), EP_STATUS_OK;
           };
           ops->module_destroy = [](ep_device*, ep_module*) {};
         });
         Host host(0);
         Text text;
         text.desc.diagnose = [](void*, ep_string) {};
         ep_module* made = nullptr;
         return create_module(host, text, &made);
       }},
      {"Z05", "a kernel of an entry that the text lacks", Code::internal,
       [] {
         Host host(0);
         const Compiled compiled(host);
         ep_kernel* made = nullptr;
         return get_kernel(host, compiled.module, "g", &made);
       }},
      {"Z05", "no kernel of an entry that the text has", Code::internal,
       [] {
         Host host(0);
         Text text;
         text.entries[0].name = {"h", 1};
         ep_module* module = nullptr;
         ep_kernel* made = nullptr;
         EXPECT_TRUE(create_module(host, text, &module).ok());
         return get_kernel(host, module, "h", &made);
       }},
      {"Z06", "a fault of a kernel whose entry raises none", Code::internal, [] { return fault_of_kernel(1, 0); }},
      {"F01", "a fault of a kernel from an asynchronous launch", Code::internal,
       [] { return fault_of_kernel(0, EP_ENTRY_FLAG_FAULTS); }},
      {"E04", "a text that nobody wanted to cancel", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->module_create = [](ep_device*, const ep_module_desc*, ep_module**, ep_module_info*, ep_error** error) {
             return toy_fails(error, EP_STATUS_CANCELLED);
           };
         });
         return bent_text([](Text&) {});
       }},
      {"Y03", "a wish for a layout of an operand that is not there", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_support = [](ep_device*, const ep_primitive_desc*, ep_support_info* out, ep_error**) {
             out->implementation = {"toy", 3};
             out->layouts[9] = 3;
             return EP_STATUS_OK;
           };
         });
         return Host(0).support(relu());
       }},
      {"R01", "a layout in a pool that holds no images", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->layout_info = [](ep_device*, const ep_operand_desc*, ep_layout_info* out, ep_error**) {
             out->name = {"toy", 3};
             out->bytes = 512;
             out->pool = 1;
             return EP_STATUS_OK;
           };
         });
         Host host(0);
         return describe(host, relu_in_layout(0, 3).operands[0]);
       }},
      {"K01", "an upload on a stream that records", Code::internal,
       [] {
         Host host(0);
         ep_stream* stream = host.stream();
         EXPECT_TRUE(begin_list(host, stream).ok());
         const char byte = 0;
         return host.call(host.ops.upload, stream, ep_buffer{host.memory(), 0}, static_cast<const void*>(&byte),
                          uint64_t{1});
       }},
      {"K01", "a second recording on a stream that records", Code::internal,
       [] {
         Host host(0);
         ep_stream* stream = host.stream();
         EXPECT_TRUE(begin_list(host, stream).ok());
         return begin_list(host, stream);
       }},
      {"K03", "a list although a recorded launch failed", Code::internal,
       [] {
         Host host(0);
         ep_memory* memory = host.memory();
         ep_stream* stream = host.stream();
         ep_command_list* list = nullptr;
         EXPECT_TRUE(begin_list(host, stream).ok());
         toy().launch_answer = EP_STATUS_UNSUPPORTED;
         EXPECT_FALSE(host.launch(host.primitive(relu()), stream, {memory, 64}, {memory, 0}).ok());
         return end_list(host, stream, &list);
       }},
      {"K08", "a fault of a replay that names no recorded launch", Code::internal,
       [] {
         Host host(0);
         const RecordedList recorded(host);
         EXPECT_TRUE(replay(host, recorded.list, recorded.stream, {{recorded.memory, 0}, {recorded.memory, 64}}).ok());
         toy().fault = {9, EP_FAULT_INDEX_OUT_OF_RANGE, 1, 9, 3, EP_FAULT_FLAG_NODE(2)};
         ep_fault fault{};
         return host.call(host.ops.stream_take_fault, recorded.stream, &fault);
       }},
      {"F01", "a fault with the tag of a recorded launch", Code::internal,
       [] {
         Host host(0);
         const RecordedList recorded(host);
         EXPECT_TRUE(replay(host, recorded.list, recorded.stream, {{recorded.memory, 0}, {recorded.memory, 64}}).ok());
         toy().fault = {7, EP_FAULT_INDEX_OUT_OF_RANGE, 1, 9, 3, 0};
         ep_fault fault{};
         return host.call(host.ops.stream_take_fault, recorded.stream, &fault);
       }},
      {"G07", "a fault that names a node that is not there", Code::internal, [] { return fault_of_node(2, 0); }},
      {"G07", "the same on a synchronous device", Code::internal, [] { return fault_of_node(2, 1); }},
      {"R01", "an answer for one node of two", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->graph_capability = [](ep_device*, const ep_graph_desc*, ep_graph_answer* out, ep_error**) {
             return *out = {1, 0, {}}, EP_STATUS_OK;
           };
         });
         return bent([](Table&) {});
       }},
      {"T01", "an answer for a node that is not there", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->graph_capability = [](ep_device*, const ep_graph_desc*, ep_graph_answer* out, ep_error**) {
             for (int i = 0; i < 3; ++i) out[i] = {1, 0, {}};
             return EP_STATUS_OK;
           };
         });
         return bent([](Table&) {});
       }},
      {"P02", "it takes a node of an unknown kind", Code::internal,
       [] { return bent([](Table& table) { table.nodes[1].primitive.kind = 99; }); }},
      {"I02", "it takes a handle of a type that it does not state", Code::internal,
       [] {
         Host host(0);
         ep_memory* made = nullptr;
         return import_memory(host, &made, EP_HANDLE_CL_MEM);
       }},
      {"I02", "the same of a semaphore", Code::internal,
       [] {
         Host host(0);
         ep_semaphore* made = nullptr;
         return import_semaphore(host, &made, EP_SEMAPHORE_EVENT, EP_HANDLE_CL_EVENT);
       }},
      {"E01", "it fails and writes the handle", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->memory_allocate = [](ep_device*, uint32_t, uint64_t, ep_memory** out, ep_error** error) {
             *out = nullptr;
             return toy_fails(error, EP_STATUS_OUT_OF_DEVICE_MEMORY);
           };
         });
         return allocate(Host(0));
       }},
      {"E01", "it refuses and writes the answer", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_support = [](ep_device*, const ep_primitive_desc*, ep_support_info* out, ep_error** error) {
             out->flags = 1;
             return toy_fails(error, EP_STATUS_UNSUPPORTED);
           };
         });
         return Host(0).support(relu());
       }},
      {"R01", "an alignment above the pool's", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_support = [](ep_device*, const ep_primitive_desc*, ep_support_info* out, ep_error**) {
             out->implementation = {"toy", 3};
             out->alignment[0] = 8192;
             return EP_STATUS_OK;
           };
         });
         return Host(0).support(relu());
       }},
      {"E02", "an error of its own making", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->stream_create = [](ep_device*, const ep_stream_desc*, ep_stream**, ep_error** error) -> ep_status {
             static int own = 0;
             *error = reinterpret_cast<ep_error*>(&own);
             return EP_STATUS_INTERNAL;
           };
         });
         Host host(0);
         ep_stream* stream = nullptr;
         return host.call(host.ops.stream_create, host.device->handle, &kComputeStream, &stream);
       }},
      {"E02", "an error beside OK", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->stream_synchronize = [](ep_stream*, ep_error** error) -> ep_status {
             return toy_fails(error, EP_STATUS_INTERNAL), EP_STATUS_OK;
           };
         });
         Host host(0);
         return host.call(host.ops.stream_synchronize, host.stream());
       }},
      {"E02", "a failure without an error", Code::internal,
       [] {
         toy().on_launch = nullptr;
         change([](ep_device_ops* ops) {
           ops->stream_synchronize = [](ep_stream*, ep_error**) -> ep_status { return EP_STATUS_INTERNAL; };
         });
         Host host(0);
         return host.call(host.ops.stream_synchronize, host.stream());
       }},
      {"T01", "it writes past the end of the answer", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_support = [](ep_device*, const ep_primitive_desc*, ep_support_info* out,
                                       ep_error**) -> ep_status {
             out->implementation = {"toy", 3};
             reinterpret_cast<volatile char*>(out)[sizeof *out] = 1;
             return EP_STATUS_OK;
           };
         });
         return Host(0).support(relu());
       }},
      {"R01", "OK and no handle", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->memory_allocate = [](ep_device*, uint32_t, uint64_t, ep_memory** out, ep_error**) -> ep_status {
             return *out = nullptr, EP_STATUS_OK;
           };
         });
         return allocate(Host(0));
       }},
      {"R01", "OK and no primitive", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_create = [](ep_device*, const ep_primitive_desc*, ep_primitive** out, ep_primitive_info* info,
                                      ep_error**) -> ep_status {
             info->implementation = {"toy", 3};
             return *out = nullptr, EP_STATUS_OK;
           };
         });
         return create(Host(0));
       }},
      {"R01", "a status nobody knows", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->stream_synchronize = [](ep_stream*, ep_error**) -> ep_status { return 77; };
         });
         Host host(0);
         return host.call(host.ops.stream_synchronize, host.stream());
       }},
      {"R01", "an operand to pack that does not exist", Code::internal,
       [] {
         toy().info.pack_operand = 9;
         return create(Host(0));
       }},
      {"R01", "an alignment of 24", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_support = [](ep_device*, const ep_primitive_desc*, ep_support_info* out,
                                       ep_error**) -> ep_status {
             out->implementation = {"toy", 3};
             out->alignment[1] = 24;
             return EP_STATUS_OK;
           };
         });
         return Host(0).support(relu());
       }},
      {"W01", "a penalty above the bytes of all operands", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_support = [](ep_device*, const ep_primitive_desc*, ep_support_info* out,
                                       ep_error**) -> ep_status {
             out->implementation = {"toy", 3};
             out->penalty_bytes = UINT64_C(1) << 40;
             return EP_STATUS_OK;
           };
         });
         return Host(0).support(relu());
       }},
      {"M02", "a mapping that moves", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->memory_map = [](ep_device*, ep_memory*, void** out, ep_error**) -> ep_status {
             alignas(256) static char room[2][256];
             static int next = 0;
             *out = room[next++ % 2];
             return EP_STATUS_OK;
           };
         });
         Host host(0);
         ep_memory* memory = host.memory();
         void* address = nullptr;
         EXPECT_TRUE(host.call(host.ops.memory_map, host.device->handle, memory, &address).ok());
         return host.call(host.ops.memory_map, host.device->handle, memory, &address);
       }},
      {"M03", "a block that is not aligned", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->memory_map = [](ep_device*, ep_memory*, void** out, ep_error**) -> ep_status {
             alignas(256) static char room[512];
             *out = room + 16;
             return EP_STATUS_OK;
           };
         });
         Host host(0);
         void* address = nullptr;
         return host.call(host.ops.memory_map, host.device->handle, host.memory(), &address);
       }},
      {"D02", "a device that comes back by itself", Code::internal,
       [] {
         toy().launch_answer = EP_STATUS_DEVICE_LOST;
         EXPECT_EQ(launch_in_place(Host(0)).code(), Code::device_lost);
         toy().launch_answer = EP_STATUS_OK;
         return launch_in_place(Host(0));
       }},
      {"S02", "a recorded event that it calls unrecorded", Code::internal,
       [] {
         Host host(0);
         ep_event* event = host.recorded(host.stream());
         toy().event_answer = EP_STATUS_INVALID_ARGUMENT;
         return host.call(host.ops.event_query, event);
       }},
      {"S02", "a wait for a recorded event that it refuses", Code::internal,
       [] {
         Host host(0);
         ep_event* event = host.recorded(host.stream());
         toy().event_answer = EP_STATUS_INVALID_ARGUMENT;
         return host.call(host.ops.stream_wait_event, host.stream(), event);
       }},
      {"S10", "the time of an event that has come, which it says has not", Code::internal,
       [] {
         Host host(0);
         ep_stream* stream = host.timed_stream();
         ep_event* event = host.recorded(stream);
         EXPECT_TRUE(host.call(host.ops.event_query, event).ok());
         toy().event_answer = EP_STATUS_BUSY;
         return host.elapsed(event, event);
       }},
      {"S10", "the time of an event on a timed stream, which it refuses", Code::internal,
       [] {
         Host host(0);
         ep_event* event = host.recorded(host.timed_stream());
         EXPECT_TRUE(host.call(host.ops.event_query, event).ok());
         toy().event_answer = EP_STATUS_INVALID_ARGUMENT;
         return host.elapsed(event, event);
       }},
      {"E04", "a create that it stops though nobody asked", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_create = [](ep_device*, const ep_primitive_desc*, ep_primitive**, ep_primitive_info*,
                                      ep_error** error) { return toy_fails(error, EP_STATUS_CANCELLED); };
         });
         ep_primitive* made = nullptr;
         return Host(0).try_create(relu(), &made);
       }},
      {"E04", "an allocation that is cancelled", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->memory_allocate = [](ep_device*, uint32_t, uint64_t, ep_memory**, ep_error** error) {
             return toy_fails(error, EP_STATUS_CANCELLED);
           };
         });
         return allocate(Host(0));
       }},
      {"S04", "an event that fires after a later one", Code::internal,
       [] {
         Host host(0);
         ep_stream* stream = host.stream();
         ep_event* first = host.recorded(stream);
         EXPECT_TRUE(host.call(host.ops.event_query, host.recorded(stream)).ok());
         toy().event_answer = EP_STATUS_BUSY;
         return host.call(host.ops.event_query, first);
       }},
      {"S04", "an event that does not fire though its stream was waited for", Code::internal,
       [] {
         Host host(0);
         ep_stream* stream = host.stream();
         ep_event* event = host.recorded(stream);
         EXPECT_TRUE(host.call(host.ops.stream_synchronize, stream).ok());
         toy().event_answer = EP_STATUS_TIMEOUT;
         return host.call(host.ops.event_host_wait, event, uint64_t{5});
       }},
      {"S05", "work that overtakes the event it waits for", Code::internal,
       [] {
         Host host(0);
         ep_stream* second = host.stream();
         ep_event* first = host.recorded(host.stream());
         EXPECT_TRUE(host.call(host.ops.stream_wait_event, second, first).ok());
         EXPECT_TRUE(host.call(host.ops.event_query, host.recorded(second)).ok());
         toy().event_answer = EP_STATUS_BUSY;
         return host.call(host.ops.event_query, first);
       }},
      {"P02", "it takes what nobody knows", Code::internal,
       [] {
         change([](ep_device_ops* ops) {
           ops->primitive_support = [](ep_device*, const ep_primitive_desc*, ep_support_info* out,
                                       ep_error**) -> ep_status {
             out->implementation = {"toy", 3};
             return EP_STATUS_OK;
           };
         });
         ep_primitive_desc desc = relu();
         desc.attributes.unary.op = 9999;
         return Host(0).support(desc);
       }},
      {"F01", "a fault of no launch", Code::internal, [] { return take_fault_of(12); }},
      {"F01", "a fault that says nothing", Code::internal,
       [] {
         toy().launch_answer = EP_STATUS_FAULT;
         return launch_in_place(Host(1));
       }},
      {"F01", "a launch that faults at once where work is asynchronous", Code::internal,
       [] {
         toy().launch_answer = EP_STATUS_FAULT;
         toy().fault.code = EP_FAULT_INDEX_OUT_OF_RANGE;
         return launch_in_place(Host(0));
       }},
      {"H01", "memory released that was not allocated", Code::ok,
       [] {
         Host host(0);
         int own = 0;
         toy().host->release(toy().host, &own, sizeof own);
         return Status();
       }},
      {"H01", "memory released as another size", Code::ok,
       [] {
         Host host(0);
         toy().host->release(toy().host, toy().host->allocate(toy().host, 64, 8), 32);
         return Status();
       }},
      {"H01", "less memory than none reported", Code::ok,
       [] {
         Host host(0);
         toy().host->device_memory_report(toy().host, host.device->handle, -1);
         return Status();
       }},
      {"H02", "an alignment of 24", Code::ok,
       [] {
         Host host(0);
         static_cast<void>(toy().host->allocate(toy().host, 64, 24));
         return Status();
       }},
      {"H02", "a level beyond the last", Code::ok,
       [] {
         Host host(0);
         static_cast<void>(toy().host->log_enabled(toy().host, EP_LOG_DEBUG + 1, {"toy", 3}));
         return Status();
       }},
      {"H02", "a call after shutdown", Code::ok,
       [] {
         Host host(0);
         shutdown_all();
         static_cast<void>(toy().host->thread_limit(toy().host));
         return Status();
       }},
      {"H02", "an error without a sentence", Code::ok,
       [] {
         Host host(0);
         release_error(toy().host->error_make(toy().host, EP_STATUS_INTERNAL, {nullptr, 0}, {nullptr, 0}));
         return Status();
       }},
  };
  return all;
}

class Validate : public LoaderTest {
 protected:
  Validate() {
    set("TENON_VALIDATE", "1");
    begin();
    set_log_sink([this](LogLevel, std::string_view topic, std::string_view message) {
      std::lock_guard lock(mutex_);
      if (topic == "validate") lines_.emplace_back(message);
    });
  }
  ~Validate() override {
    restart();
    set_log_sink({});
    reset_toy();
  }

  void begin() {
    restart();
    reset_toy();
    register_provider("toy", toy_query);
    std::lock_guard lock(mutex_);
    lines_.clear();
  }
  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }

  void expect_found(const std::vector<Violator>& violators, const std::string& side) {
    for (const Violator& violator : violators) {
      SCOPED_TRACE(violator.name);
      begin();
      const Status answer = violator.run();
      const std::vector<std::string> found = lines();
      ASSERT_FALSE(found.empty());
      EXPECT_TRUE(found.front().starts_with(fmt::format("{}, broken by the {}: ", violator.rule, side)))
          << found.front();
      const bool device = found.front().find("toy") != std::string::npos;
      EXPECT_TRUE(device || found.front().find("an unknown device") != std::string::npos) << found.front();
      EXPECT_EQ(answer.code(), violator.answer) << answer.message();
      EXPECT_TRUE(answer.ok() || answer.message().starts_with(violator.rule)) << answer.message();
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(Validate, TheHostIsToldWhichRuleItBroke) { expect_found(host_violators(), "host"); }

TEST_F(Validate, TheProviderIsToldWhichRuleItBroke) { expect_found(provider_violators(), "provider"); }

// The rows of ep_api/README.md that name the layer are exactly the rows with a violator above.
TEST_F(Validate, EveryRuleItEnforcesHasAViolator) {
  std::set<std::string> claimed, shown;
  std::ifstream readme(TENON_RULES_README);
  const std::regex row(R"(^\| ([A-Z]\d\d) \|.*\|([^|]*validation layer[^|]*)\|$)");
  for (std::string line; std::getline(readme, line);) {
    std::smatch match;
    if (std::regex_match(line, match, row)) claimed.insert(match[1]);
  }
  for (const auto* list : {&host_violators(), &provider_violators()}) {
    for (const Violator& violator : *list) shown.insert(violator.rule);
  }
  EXPECT_EQ(claimed, shown);
}

TEST_F(Validate, AProgramThatKeepsTheRulesIsNotDisturbed) {
  {
    Host host(0);
    ep_memory* memory = host.memory();
    ep_stream *first = host.stream(), *second = host.stream();
    ep_event* event = host.event();
    ep_primitive* primitive = host.primitive(relu());
    for (const int32_t level : {EP_LOG_ERROR, EP_LOG_DEBUG}) {
      static_cast<void>(toy().host->log_enabled(toy().host, level, {"toy", 3}));
    }
    EXPECT_TRUE(host.launch(primitive, first, {memory, 0}, {memory, 0}).ok()) << "relu may run in place";
    EXPECT_TRUE(host.call(host.ops.event_record, event, first).ok());
    EXPECT_TRUE(host.call(host.ops.stream_wait_event, second, event).ok());
    EXPECT_TRUE(host.launch(primitive, second, {memory, 64}, {memory, 0}).ok());
    EXPECT_TRUE(host.call(host.ops.stream_synchronize, second).ok()) << "it came after the first stream's work";
    host.ops.primitive_destroy(host.device->handle, primitive);
    host.ops.memory_free(host.device->handle, memory);
    host.ops.memory_free(host.device->handle, nullptr);
    host.ops.event_destroy(host.device->handle, event);
    host.ops.stream_destroy(host.device->handle, first);
    host.ops.stream_destroy(host.device->handle, second);
    close_device(host.device);
  }
  EXPECT_EQ(lines(), std::vector<std::string>());
}

TEST_F(Validate, AProgramInLayoutsThatKeepsTheRulesIsNotDisturbed) {
  {
    Host host(0);
    ep_memory *memory = host.memory(), *made = image(host);
    ep_stream* stream = host.stream();
    ep_primitive *to = host.primitive(relu_in_layout(0, 3)), *from = host.primitive(relu_in_layout(1, 3));
    ep_primitive *draw = host.primitive(relu_in_layout(0, 4)), *look = host.primitive(relu_in_layout(1, 4));
    EXPECT_TRUE(describe(host, relu_in_layout(0, 3).operands[0]).ok());
    EXPECT_TRUE(host.launch(to, stream, {memory, 0}, {memory, 1024}).ok());
    EXPECT_TRUE(host.launch(from, stream, {memory, 2048}, {memory, 0}).ok());
    EXPECT_TRUE(host.launch(draw, stream, {made, 0}, {memory, 1024}).ok());
    EXPECT_TRUE(host.launch(look, stream, {memory, 2048}, {made, 0}).ok());
    EXPECT_TRUE(host.launch(host.primitive(relu()), stream, {memory, 0}, {memory, 1024}).ok()) << "the block again";
    char bytes[32];
    EXPECT_TRUE(host.call(host.ops.download, stream, static_cast<void*>(bytes), ep_buffer{memory, 0}, 32).ok());
  }
  EXPECT_EQ(lines(), std::vector<std::string>());
}

TEST_F(Validate, AGraphThatKeepsTheRulesIsNotDisturbed) {
  {
    toy().info.workspace_bytes = 100;
    Host host(0);
    Table table;
    ep_memory *memory = host.memory(), *constant = host.memory();
    ep_stream* stream = host.stream();
    table.values[0].flags = EP_GRAPH_VALUE_CONSTANT;
    table.constants[0] = {constant, 64};
    ep_graph* graph = nullptr;
    EXPECT_TRUE(capability(host, table).ok());
    EXPECT_TRUE(compile(host, table, &graph).ok());
    EXPECT_TRUE(launch_graph(host, graph, stream, {{memory, 0}}, {memory, 1024}).ok());
    toy().fault = {7, EP_FAULT_INDEX_OUT_OF_RANGE, 1, 9, 3, EP_FAULT_FLAG_NODE(1)};
    ep_fault fault{};
    EXPECT_TRUE(host.call(host.ops.stream_take_fault, stream, &fault).ok());
    EXPECT_TRUE(host.call(host.ops.stream_synchronize, stream).ok());
    host.ops.graph_destroy(host.device->handle, graph);
    host.ops.graph_destroy(host.device->handle, nullptr);
    host.ops.memory_free(host.device->handle, constant);
    host.ops.memory_free(host.device->handle, memory);
    host.ops.stream_destroy(host.device->handle, stream);
    close_device(host.device);
  }
  EXPECT_EQ(lines(), std::vector<std::string>());
}

TEST_F(Validate, ACommandListThatKeepsTheRulesIsNotDisturbed) {
  {
    Host host(0);
    RecordedList recorded(host);
    ep_stream* stream = host.stream();
    host.ops.stream_destroy(host.device->handle, recorded.stream);
    for (const uint64_t offset : {64, 128, 64}) {
      EXPECT_TRUE(replay(host, recorded.list, stream, {{recorded.memory, 0}, {recorded.memory, offset}}).ok());
      toy().fault = {9, EP_FAULT_INDEX_OUT_OF_RANGE, 1, 9, 3, EP_FAULT_FLAG_NODE(1)};
      ep_fault fault{};
      EXPECT_TRUE(host.call(host.ops.stream_take_fault, stream, &fault).ok());
      EXPECT_TRUE(host.call(host.ops.stream_synchronize, stream).ok());
    }
    host.ops.command_list_destroy(host.device->handle, recorded.list);
    host.ops.command_list_destroy(host.device->handle, nullptr);
    host.ops.primitive_destroy(host.device->handle, recorded.primitive);
    host.ops.memory_free(host.device->handle, recorded.memory);
    host.ops.memory_free(host.device->handle, recorded.other);
    host.ops.stream_destroy(host.device->handle, stream);
    close_device(host.device);
  }
  EXPECT_EQ(lines(), std::vector<std::string>());
}

// If the host wants a create to stop, it may return CANCELLED. The next call starts without that wish.
TEST_F(Validate, ACreateMayBeCancelledIfTheHostAsksForIt) {
  change([](ep_device_ops* ops) {
    ops->primitive_create = [](ep_device*, const ep_primitive_desc*, ep_primitive**, ep_primitive_info*,
                               ep_error** error) {
      static_cast<void>(toy().host->cancel_requested(toy().host));
      return toy_fails(error, EP_STATUS_CANCELLED);
    };
  });
  Host host(0);
  ep_primitive* made = nullptr;
  {
    const StoppableCall stops([] { return true; });
    EXPECT_EQ(host.try_create(relu(), &made).code(), Code::cancelled);
  }
  EXPECT_EQ(lines(), std::vector<std::string>());
  const StoppableCall goes_on([] { return false; });
  EXPECT_EQ(host.try_create(relu(), &made).code(), Code::internal);
  EXPECT_EQ(lines().size(), 1u);
}

TEST_F(Validate, TimesOfEventsThatWereSeenAreNotDisturbed) {
  {
    Host host(0);
    ep_stream* stream = host.timed_stream();
    ep_event *first = host.recorded(stream), *last = host.recorded(stream);
    EXPECT_TRUE(host.call(host.ops.event_query, last).ok());
    EXPECT_TRUE(host.elapsed(first, last).ok());
  }
  EXPECT_EQ(lines(), std::vector<std::string>());
}

// An event that is recorded again, or that a stream waits for later, is not known to have fired.
TEST_F(Validate, AnEventMayBeBusyUntilSomethingAfterItWasSeen) {
  {
    Host host(0);
    ep_stream *first = host.stream(), *second = host.stream();
    ep_event *event = host.recorded(first), *other = host.recorded(second);
    EXPECT_TRUE(host.call(host.ops.event_query, event).ok());
    EXPECT_TRUE(host.call(host.ops.event_record, event, first).ok());
    toy().event_answer = EP_STATUS_BUSY;
    EXPECT_EQ(host.call(host.ops.event_query, event).code(), Code::busy) << "its former point was seen, not this one";
    toy().event_answer = EP_STATUS_OK;
    EXPECT_TRUE(host.call(host.ops.event_query, other).ok());
    EXPECT_TRUE(host.call(host.ops.stream_wait_event, second, event).ok());
    toy().event_answer = EP_STATUS_BUSY;
    EXPECT_EQ(host.call(host.ops.event_query, event).code(), Code::busy) << "the wait came after what was seen";
  }
  EXPECT_EQ(lines(), std::vector<std::string>());
}

// One of the two operands is constant. The provider may ask to pack only that one, by its number from 1.
TEST_F(Validate, AConstantOperandMayBeWantedPackedAndNoOther) {
  ep_primitive_desc desc = relu();
  desc.operands[1].flags |= EP_OPERAND_FLAG_CONSTANT;
  toy().info.pack_bytes = 64;
  for (const uint32_t wanted : {1u, 2u, 3u}) {
    toy().info.pack_operand = wanted;
    ep_primitive* made = nullptr;
    EXPECT_EQ(Host(0).try_create(desc, &made).ok(), wanted == 2) << wanted;
  }
}

TEST_F(Validate, OffItIsNotThere) {
  set("TENON_VALIDATE", "0");
  begin();
  void (*close)(ep_device*) = nullptr;
  static void (*own)(ep_device*) = [](ep_device*) {};
  change([](ep_device_ops* ops) { ops->device_close = own; });
  close = Host(0).ops.device_close;
  EXPECT_EQ(close, own) << "the tables are the provider's own";
}

}  // namespace
}  // namespace tenon::loader
