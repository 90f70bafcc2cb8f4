// ep_api.h: the contract between a Tenon host and a device provider (a plug-in). Version 0.2.
//
// A provider is one shared library, libtenon_<name>.so, that exports one symbol, ep_plugin_query_v0, and carries one
// note (EP_PLUGIN_NOTE). It links nothing of the host: every service it needs comes through ep_host. The host reads
// the note, loads the library, calls the query, and from then on calls only through the tables it was given.
//
//   plug-in -> device -> { memory, stream, event, semaphore, primitive, graph, command list, module -> kernel }
//
// The host fills `ep_host` and `*_desc`, and the plug-in reads them. The plug-in fills `ep_*_ops` and `*_info`, and the
// host reads them. Handles (ep_memory, ep_stream, ...) are opaque to the host.
//
// Rules that hold for every function unless its comment says otherwise:
//   * Errors. It returns an ep_status. On any status but EP_STATUS_OK out-parameters are untouched, nothing was
//     submitted, and `*error` (if `error` is not NULL) holds what host->error_make returned. destroy/free/close return
//     nothing and accept NULL. No exception, abort, exit, signal handler or print crosses this border.
//   * Ownership. The side that allocates also frees. Strings are {data, size} UTF-8, not terminated. An argument is
//     borrowed for the call; a returned string lives as long as the object that returned it. The provider keeps nothing
//     of the host's alive: the host keeps memory, primitives, events and host pointers until it has seen an event
//     recorded after their last use.
//   * Threads. Thread-safe: device_count, device_info, memory_allocate, memory_free, memory_map, memory_import_host,
//     memory_import, stream_import, semaphore_import, semaphore_destroy, peer_open, primitive_support,
//     primitive_create, primitive_workspace, graph_capability, graph_compile, layout_info, layout_allocate,
//     dialect_info, module_create, kernel_get, event_query, event_host_wait, event_elapsed, stream_synchronize. Also
//     thread-safe: launches, copies and records on distinct streams, even launches of one primitive, graph or kernel,
//     and waits and signals of one semaphore. Otherwise one thread at a time uses a handle; so nothing overlaps
//     event_record or event_destroy of the same event. There is no current device and no thread-local stream.
//   * Asynchrony. Functions that take a stream enqueue and return, except on a device with
//     EP_DEVICE_FLAG_SYNCHRONOUS, which completes every call before it returns.
//   * A struct that begins with struct_size and struct_type may grow at its end. The side that fills it writes at most
//     struct_size bytes. Members that it does not know stay zero, and zero means the old behaviour. Value structs
//     (ep_string, ep_buffer, ep_shape, ep_scalar, ep_fault, ep_operand_desc, ep_epilogue, ep_memory_pool_info, the
//     attribute structs, ep_primitive_desc, ep_graph_value, ep_graph_node, ...) have no header and never grow.
//   * Anything unknown (a kind, a dtype, a role, a flag bit, an extension) is EP_STATUS_UNSUPPORTED with a reason,
//     never a guess.
//
// While the version is 0.x, host and plug-in must have the same minor. README.md has the numbered rules.
#ifndef TENON_EP_API_EP_API_H_
#define TENON_EP_API_EP_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version this file describes, and the one to build for. A program that defines EP_ABI_TARGET_MINOR sees the
// contract as it was at that minor: additions of minor N are inside `#if EP_ABI_TARGET_MINOR >= N`, here and in the
// tables.
#define EP_ABI_MAJOR 0
#define EP_ABI_LATEST_MINOR 2
#ifndef EP_ABI_TARGET_MINOR
#define EP_ABI_TARGET_MINOR EP_ABI_LATEST_MINOR
#endif
#define EP_ABI_MINOR EP_ABI_TARGET_MINOR

// Minors from here on are not releases. They are frozen so that tests can prove, before 1.0, that minors work together
// (abi/README.md).
#define EP_ABI_TRIAL_MINOR 0x7000

// True if a host and a plug-in of one major with these minors work together. They then speak the smaller minor.
// From 1.0 on they always do; while the major is 0, only if the minors are equal or both are trial minors.
#define EP_ABI_MINORS_AGREE(a, b) \
  (EP_ABI_MAJOR > 0 || (a) == (b) || ((a) >= EP_ABI_TRIAL_MINOR && (b) >= EP_ABI_TRIAL_MINOR))

// ---------------------------------------------------------------------------------------------------------------------
// Codes. Each says what the caller may do about it.
// ---------------------------------------------------------------------------------------------------------------------

typedef int32_t ep_status;
#define EP_STATUS_OK 0
#define EP_STATUS_UNSUPPORTED 1           // the device cannot do it: the host takes the next rung of its ladder
#define EP_STATUS_FAULT 2                 // a kernel met bad data (an index out of range): see ep_fault
#define EP_STATUS_INVALID_ARGUMENT 3      // the caller broke a rule: fix the call
#define EP_STATUS_NOT_FOUND 4             // no such thing (a device index, a configuration key, no further fault)
#define EP_STATUS_OUT_OF_HOST_MEMORY 5    // free host memory and retry
#define EP_STATUS_OUT_OF_DEVICE_MEMORY 6  // free device memory and retry
#define EP_STATUS_DEVICE_LOST 7           // sticky: destroy everything of the device and open it again
#define EP_STATUS_TIMEOUT 8               // the time has passed before the awaited work was done
#define EP_STATUS_CANCELLED 9             // stopped on request (cancel_requested, or the peer of a copy is lost)
#define EP_STATUS_BUSY 10                 // not now: retry later
#define EP_STATUS_VERSION 11              // host and plug-in do not speak the same version
#define EP_STATUS_INTERNAL 12             // a defect of the provider or its vendor's library: report it

// In a descriptor: a dim or stride that each launch gives. Not valid anywhere else.
#define EP_ANY ((int64_t)-1)

#define EP_MAX_RANK 8
#define EP_MAX_OPERANDS 16  // of one primitive, outputs and epilogue operands included
#define EP_MAX_EPILOGUES 4
#define EP_MAX_SCALARS 8
#define EP_MAX_POOLS 8

// Element types, EP_DTYPE_f32 and so on, from dtypes.def; kinds of primitive, EP_PRIMITIVE_matmul, from primitives.def;
// scalar functions, EP_UNARY_relu, EP_BINARY_add, EP_TERNARY_where, EP_REDUCE_sum, from scalar_ops.def. All are
// int32_t.
#ifdef __cplusplus
#define EP_CONSTANT_(name, value) inline constexpr int32_t name = value;
#else
#define EP_CONSTANT_(name, value) enum { name = value };
#endif
#define EP_DTYPE(name, id, bits, type_class) EP_CONSTANT_(EP_DTYPE_##name, id)
#include "dtypes.def"
#undef EP_DTYPE
#define EP_PRIMITIVE(name, id, attributes, alias) EP_CONSTANT_(EP_PRIMITIVE_##name, id)
#include "primitives.def"
#undef EP_PRIMITIVE
#define EP_UNARY(name, id, domain, result, expression) EP_CONSTANT_(EP_UNARY_##name, id)
#define EP_BINARY(name, id, domain, result, check, expression) EP_CONSTANT_(EP_BINARY_##name, id)
#define EP_TERNARY(name, id, domain, result, expression) EP_CONSTANT_(EP_TERNARY_##name, id)
#define EP_REDUCE(name, id, domain, init, map, combine, finish) EP_CONSTANT_(EP_REDUCE_##name, id)
#include "scalar_ops.def"
#undef EP_UNARY
#undef EP_BINARY
#undef EP_TERNARY
#undef EP_REDUCE
#undef EP_CONSTANT_

// ---------------------------------------------------------------------------------------------------------------------
// Opaque handles and value structs.
// ---------------------------------------------------------------------------------------------------------------------

typedef struct ep_error ep_error;  // made by host->error_make, owned by the caller of the failed function
typedef struct ep_host ep_host;
typedef struct ep_plugin ep_plugin;
typedef struct ep_device ep_device;
typedef struct ep_memory ep_memory;
typedef struct ep_stream ep_stream;
typedef struct ep_event ep_event;
typedef struct ep_primitive ep_primitive;
typedef struct ep_semaphore ep_semaphore;  // belongs to another API (Interop)

typedef struct ep_string {
  const char* data;
  uint64_t size;
} ep_string;

// An address in device memory. It is never a bare pointer, since not every device has pointers. `offset` is in bytes, a
// multiple of the element size. {NULL, 0} means "no memory": an absent workspace, or an operand that is a scalar.
typedef struct ep_buffer {
  ep_memory* memory;
  uint64_t offset;
} ep_buffer;

// Dims and strides (in elements) of one operand at launch, `rank` of each, borrowed for the call. If the
// descriptor of the primitive holds EP_ANY anywhere, the launch gives the shape of every operand; static dims are
// repeated and equal the descriptor's.
typedef struct ep_shape {
  const int64_t* dims;
  const int64_t* strides;
  int32_t rank;
  int32_t reserved;
} ep_shape;

// One number. The value stands in `f64` for floating dtypes, `i64` for signed integers, `u64` for unsigned ones and
// bool.
typedef struct ep_scalar {
  int32_t dtype;
  int32_t reserved;
  union {
    double f64;
    int64_t i64;
    uint64_t u64;
  } value;
} ep_scalar;

#define EP_FAULT_INDEX_OUT_OF_RANGE 1
#define EP_FAULT_DIVISION_BY_ZERO 2
#define EP_FAULT_INTEGER_OVERFLOW 3
#define EP_FAULT_BAD_MATRIX 4  // singular, not positive definite, or not finite: see ep_linear_algebra_attributes

// Bad data that a kernel met. The kernel dropped its write for that element (or wrote 0), and later work ran. A launch
// that met bad data has at least one fault and may have one for each bad element; the host reports the first.
typedef struct ep_fault {
  uint64_t tag;     // of the launch
  int32_t code;     // EP_FAULT_*
  int32_t operand;  // index of the operand that held the bad value: the indices, or the divisor of a division
  int64_t value;    // the bad value
  int64_t limit;    // the limit that the value exceeded (the length of the axis); 0: no limit
  uint64_t flags;   // lower half: EP_FAULT_FLAG_*; upper half: EP_FAULT_NODE, for a graph or a command list
} ep_fault;
// The fault buffer was full, and faults after this one were lost. This one is complete and names its own launch and
// operand.
#define EP_FAULT_FLAG_OVERFLOW UINT64_C(1)

// ---------------------------------------------------------------------------------------------------------------------
// Struct types: the second word of every struct that may grow.
// ---------------------------------------------------------------------------------------------------------------------

#define EP_STRUCT_HOST 1
#define EP_STRUCT_PLUGIN_OPS 2
#define EP_STRUCT_DEVICE_INFO 3
#define EP_STRUCT_DEVICE_OPS 4
#define EP_STRUCT_SUPPORT_INFO 5
#define EP_STRUCT_PRIMITIVE_INFO 6
#define EP_STRUCT_STREAM_DESC 7

// ---------------------------------------------------------------------------------------------------------------------
// The host's services. Valid from the query until plugin_ops.shutdown returns. All are thread-safe; none may be NULL.
// ---------------------------------------------------------------------------------------------------------------------

#define EP_LOG_ERROR 1
#define EP_LOG_WARNING 2
#define EP_LOG_INFO 3
#define EP_LOG_DEBUG 4

struct ep_host {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_HOST
  const void* next;
  uint32_t abi_major;
  uint32_t abi_minor;
  void* context;  // for the host's use

  // Makes an error from `status`, a full sentence and a remedy (which may be empty). Never fails: when out of memory,
  // it returns a static error. The caller stores the result in an `error` out-parameter and nowhere else.
  ep_error* (*error_make)(const ep_host* host, ep_status status, ep_string sentence, ep_string remedy);

  // Returns 1 if the host would keep a message of `level` on `topic` ("load", "dispatch", "memory", ...). Call `log`
  // only then.
  int32_t (*log_enabled)(const ep_host* host, int32_t level, ep_string topic);
  void (*log)(const ep_host* host, int32_t level, ep_string topic, ep_string message);

  // Host memory for the provider's own objects. The host counts it, to report leaks. `alignment` is a power of two.
  // Returns NULL when out of memory. `release` takes a pointer from `allocate`, with the same size, or NULL.
  void* (*allocate)(const ep_host* host, uint64_t size, uint64_t alignment);
  void (*release)(const ep_host* host, void* pointer, uint64_t size);

  // The setting `key` of this provider (in the config file: `[provider.<name>] key = "value"`), as text that lives
  // until shutdown. EP_STATUS_NOT_FOUND: not set. A provider reads no other configuration, in particular no environment
  // variables.
  ep_status (*config_get)(const ep_host* host, ep_string key, ep_string* out_value);

  // The number of threads the program may use: affinity, cgroup quota and TENON_THREADS taken into account.
  int32_t (*thread_limit)(const ep_host* host);

  // The path this provider was loaded from; lives until shutdown. Empty for one that the application registered.
  ep_string (*plugin_path)(const ep_host* host);

  // The provider's own device memory (a vendor library's workspace, code) grew by `delta` bytes on `device`.
  void (*device_memory_report)(const ep_host* host, ep_device* device, int64_t delta);

  // Blobs: bytes that took long to make (pipelines, cubins, plans), which the host keeps on the user's disk for later
  // runs. Each provider has its own blobs. The key (1 to 4096 bytes) names everything that a blob depends on: the
  // device's fingerprint, versions, its sources. The host may forget a blob at any time. It returns exactly the bytes
  // that were put in, or NOT_FOUND.
  //
  // Calls `take(context, data, size)` with the blob of `key`, once, before it returns. Errors: NOT_FOUND.
  ep_status (*blob_get)(const ep_host* host, ep_string key,
                        void (*take)(void* context, const void* data, uint64_t size), void* context);
  // Keeps a copy of `size` > 0 bytes under `key`, replacing an earlier blob. The host may silently decline.
  void (*blob_put)(const ep_host* host, ep_string key, const void* data, uint64_t size);

  // Returns 1 if the host wants the call in progress on this thread to stop, else 0. A provider asks on the thread that
  // the host called, wherever it can stop, inside
  //   - primitive_create, graph_compile and module_create, between the steps of a compilation, or every few
  //     milliseconds while its own threads compile;
  //   - primitive_launch, primitive_pack, graph_launch, kernel_launch, copy, upload and download of a synchronous
  //     device (optional), about every 20 milliseconds, and never in shorter calls.
  // After a 1 the provider stops and answers CANCELLED, or finishes if that takes no longer; every later answer within
  // this call is 1 too. It undoes partial results or keeps them for later; a launch leaves its outputs undefined. The
  // next call with the same arguments must work. No other function stops for it.
  int32_t (*cancel_requested)(const ep_host* host);
};

// ---------------------------------------------------------------------------------------------------------------------
// Devices describe themselves.
// ---------------------------------------------------------------------------------------------------------------------

#define EP_DEVICE_CLASS_CPU 1
#define EP_DEVICE_CLASS_DISCRETE 2
#define EP_DEVICE_CLASS_INTEGRATED 3
#define EP_DEVICE_CLASS_SOFTWARE 4     // a GPU interface emulated on the CPU: listed, never chosen by default
#define EP_DEVICE_CLASS_ACCELERATOR 5  // made for some programs (an NPU, a DSP): listed, never chosen by default

// Every call completes before it returns. The device has one stateless stream (stream_create may return the same handle
// each time) that accepts concurrent launches from any thread, and needs no events: the five event slots may be NULL.
// Workspace and scratch belong to the launching thread.
#define EP_DEVICE_FLAG_SYNCHRONOUS UINT64_C(1)

#define EP_POOL_FLAG_DEVICE_LOCAL UINT64_C(1)
#define EP_POOL_FLAG_HOST_VISIBLE UINT64_C(2)  // memory_map works
#define EP_POOL_FLAG_COHERENT UINT64_C(4)      // does not need memory_flush and memory_invalidate
#define EP_POOL_FLAG_HOST_CACHED UINT64_C(8)   // reading it from the host is fast
#define EP_POOL_FLAG_STAGING UINT64_C(16)      // for transfers; operands of primitives lie elsewhere
// A block holds one tensor and its views: the host allocates a block for each tensor. A launch or copy that writes a
// block has no other operand in that block, except the exact alias that primitives.def names. This flag is for devices
// that track hazards per resource, or that cannot bind a buffer for reading and for writing at once.
#define EP_POOL_FLAG_EXCLUSIVE UINT64_C(32)
// Holds only opaque values, each in a block that layout_allocate made for it (an image). Pool 0 never has this flag.
// The host allocates, maps and copies nothing else here; copy_granularity and minimum_alignment mean nothing.
#define EP_POOL_FLAG_IMAGE UINT64_C(64)

// Accuracy. There are three tiers of bounds; accuracy.def has the numbers and their sources.
//
//   full      what scalar_ops.def computes, with the function bounds of our own providers
//   portable  the weaker of the demands of OpenCL's full profile and of Vulkan
//   relaxed   narrower formats inside: functions with 11 significant bits, products with 8
//
// A device states for each floating element type the highest tier that all its primitives keep, and whether it flushes
// denormals (ep_device_info). A primitive is held to the lowest tier of its floating operands. Where the device may
// flush, any denormal argument may count as a zero, and any result that may be denormal within the bounds may be a
// zero; the sign of both zeros is free. On all tiers NaN, infinities and integers are as on tier full. Kinds that only
// move elements (fill, copy within a dtype, gather, concat, split, pad) keep every bit, and so do transfers.

// Pool 0 is where operands live by default.
typedef struct ep_memory_pool_info {
  uint64_t flags;                // EP_POOL_FLAG_*
  uint64_t size;                 // bytes in all; 0 unknown
  uint64_t minimum_alignment;    // alignment of a block's start and, if not COHERENT, of flushed ranges; a power of two
  uint64_t preferred_block;      // preferred bytes per memory_allocate; 0 no preference
  uint64_t largest_allocation;   // bytes; 0 unlimited
  uint64_t maximum_allocations;  // how many blocks may exist; 0 unlimited
  uint64_t copy_granularity;     // offsets and sizes of copy, upload and download are multiples of it: a power of two,
                                 // at most 64 and at most minimum_alignment; 0 or 1: any byte
} ep_memory_pool_info;

typedef struct ep_device_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_DEVICE_INFO
  const void* next;
  ep_string name;             // for people: "AMD EPYC 9B14", "NVIDIA H200"
  ep_string fingerprint;      // changes whenever compiled code becomes invalid: model, driver, library versions
  ep_string unusable_reason;  // empty: usable. Else one sentence; device_open would fail
  ep_string remedy;           // what to do about it, may be empty
  int32_t device_class;       // EP_DEVICE_CLASS_*
  uint32_t pool_count;
  uint64_t flags;    // EP_DEVICE_FLAG_*
  uint64_t dtypes;   // bit 1 << dtype for each element type that memory and copies support
  uint8_t uuid[16];  // all zero: none. Equal UUIDs are one physical device
  int64_t pci[4];    // domain, bus, device, function; all -1: none
  uint32_t threads;  // hardware threads it computes with; 0 unknown
  uint32_t reserved;
  ep_memory_pool_info pools[EP_MAX_POOLS];
  // Interop: which types of handles the device takes, as bits 1 << EP_HANDLE_*. Where a mask is 0, the slot may be
  // NULL.
  uint64_t memory_handles;     // memory_import
  uint64_t stream_handles;     // stream_import
  uint64_t semaphore_handles;  // semaphore_import
  uint64_t device_handles;     // device_adopt
  int32_t native_memory;       // EP_HANDLE_*: the type that memory_native_handle gives; 0: unknown
  int32_t native_reserved;
  // Accuracy of the device: bit 1 << dtype for each floating element type that keeps only the bounds of a lower tier.
  // No bit: tier full. A dtype has a bit in at most one of the two masks.
  uint64_t portable_dtypes;
  uint64_t relaxed_dtypes;
  // Bit 1 << dtype for each floating element type whose denormals may count as 0, as argument or as result. No bit:
  // denormals are kept.
  uint64_t flushed_dtypes;
} ep_device_info;

// ---------------------------------------------------------------------------------------------------------------------
// Primitives: what is to be computed.
// ---------------------------------------------------------------------------------------------------------------------

// Roles of operands. The comment above the attributes of a kind says which roles the kind takes.
#define EP_ROLE_DST 1
#define EP_ROLE_SRC 2
#define EP_ROLE_SRC_B 3
#define EP_ROLE_SRC_C 4
#define EP_ROLE_WEIGHT 5
#define EP_ROLE_BIAS 6
#define EP_ROLE_SCALE 7
#define EP_ROLE_SHIFT 8
#define EP_ROLE_MEAN 9
#define EP_ROLE_VARIANCE 10
#define EP_ROLE_INV_STD 11
#define EP_ROLE_INDICES 12
#define EP_ROLE_DST_INDICES 13
#define EP_ROLE_GRADIENT 14    // an input: the gradient of the result of the forward kind
#define EP_ROLE_DST_COUNT 15   // an output: the number of results, where it depends on the values
#define EP_ROLE_EPILOGUE_0 16  // + i, the tensor operand of epilogue i
#define EP_ROLE_SRC_SCALE 20   // this and the next five: see "Quantisation"
#define EP_ROLE_SRC_ZERO_POINT 21
#define EP_ROLE_WEIGHT_SCALE 22  // of WEIGHT, or of a matmul's SRC_B
#define EP_ROLE_WEIGHT_ZERO_POINT 23
#define EP_ROLE_DST_SCALE 24  // this and the next are inputs
#define EP_ROLE_DST_ZERO_POINT 25
#define EP_ROLE_SCALE_GRADIENT 26  // this and the next are outputs: the gradients of SCALE and SHIFT
#define EP_ROLE_SHIFT_GRADIENT 27
#define EP_ROLE_DST_INVERSE 28  // this and the next are outputs of `unique`
#define EP_ROLE_DST_COUNTS 29
#define EP_ROLE_LENGTHS 30
#define EP_ROLE_LOG_SUM 31           // an output: the logarithm of the sum of exponentials
#define EP_ROLE_SRC_0 32             // + i, of concat
#define EP_ROLE_DST_0 64             // + i, of split
#define EP_ROLE_RECURRENT_WEIGHT 80  // this and the next six belong to `recurrent`
#define EP_ROLE_RECURRENT_BIAS 81
#define EP_ROLE_PEEPHOLE 82
#define EP_ROLE_HIDDEN 83
#define EP_ROLE_CELL 84
#define EP_ROLE_DST_HIDDEN 85
#define EP_ROLE_DST_CELL 86
#define EP_ROLE_DST_R 100  // this and the next four belong to `linear_algebra`
#define EP_ROLE_DST_VECTORS 101
#define EP_ROLE_DST_VECTORS_H 102
#define EP_ROLE_DST_PIVOTS 103
#define EP_ROLE_DST_LOG 104

// The operand has no memory: its value is launch scalar number i, i = 0 for SRC, 1 for SRC_B, 2 for SRC_C.
#define EP_OPERAND_FLAG_SCALAR UINT64_C(1)
// The operand never changes (a weight). primitive_create may ask the host to pack it.
#define EP_OPERAND_FLAG_CONSTANT UINT64_C(2)
// The operand lies in a layout of the device's own: strides[0] is the token, > 0, that names the layout, and the other
// strides and `alignment` are 0. See "Opaque operands". Neither SCALAR nor CONSTANT, rank >= 1.
#define EP_OPERAND_FLAG_OPAQUE UINT64_C(4)

// One operand. rank 1 to 8 (0 only with EP_OPERAND_FLAG_SCALAR), no dim 0, strides in elements, >= 0, 0 on inputs only
// (broadcast). Unused dims and strides are 0. `alignment` is what the host promises of the byte address: 0 (a multiple
// of the element) or a power of two. With EP_ANY: a stride that is 0 (broadcast) or 1 (unit) keeps its value; the
// others, and dims, may be EP_ANY.
typedef struct ep_operand_desc {
  int32_t role;
  int32_t dtype;
  int32_t rank;
  int32_t alignment;
  uint64_t flags;
  int64_t dims[EP_MAX_RANK];
  int64_t strides[EP_MAX_RANK];
} ep_operand_desc;

// Quantisation. A quantised operand holds numbers q that stand for real numbers: real(q) = (q - zero point) * scale.
// DST, SRC and WEIGHT (of a matmul: SRC_B) of `quantise`, `dequantise`, `matmul`, `convolution` may be quantised, and
// all operands of `binary`. An operand is quantised if the descriptor has its scale, its zero point or both, as
// operands with the roles above. Without a scale the scale is 1, without a zero point the zero point is 0.
//   * Types. A quantised operand is an i2, u2, i4, u4, i8, u8, i16, u16, i32, or one of the f8, f6 and f4 types that
//     have a sign. Its scale is an f32, f16 or bf16, and is converted to f32 first. Its zero point has the operand's
//     dtype, and exists only for integers.
//   * Dims. Scale and zero point have the rank of their operand, and the attributes say along which axes they differ
//     (ep_quantisation). Along such an axis they have the operand's dim, or one element for each block of elements;
//     along the others 1.
//   * Reading a number: q - zero point is exact; its product with the scale is rounded to f32. NaN and infinities of
//     the f8 types stay what they are.
//   * Writing a number x to integers: round(x / scale) + zero point, saturated to the dtype. The quotient is rounded to
//     f32, round() gives the nearest integer (ties to even), the sum is exact. A quotient that is NaN gives the least
//     number of the dtype. A scale that is 0, negative or not finite follows from the same arithmetic.
//   * Writing a number x to an f8, f6 or f4 type: x / scale in f32, rounded to the nearest number of the dtype (ties to
//     even). Values beyond the greatest finite number, infinities included, become that number with the sign of x. NaN
//     stays NaN, where the type has one.
// The formulas are those of ONNX (QuantizeLinear and DequantizeLinear 23 with `saturate`, QLinearMatMul, QLinearConv,
// MatMulInteger, ConvInteger); scales and blocks by axis are those of oneDNN's masks and groups.
//
// How the scale and zero point of one operand map to its elements. All zero: one scale for the whole tensor.
typedef struct ep_quantisation {
  uint32_t axes;       // bit mask of the operand's axes along which scale and zero point differ
  int32_t block_axis;  // the axis of block[0], if that is not 0; block_axis + 1 is the axis of block[1]
  int32_t block[2];    // the number of consecutive elements that share a scale. The axis is in `axes`; the last block
                       // may be shorter. 0: no blocks, each index of the axis has its own scale
} ep_quantisation;

// DST[...] = the quantised number for SRC[...], same dims. DST is quantised, SRC is an f16, bf16 or f32.
typedef struct ep_quantise_attributes {
  ep_quantisation dst;
} ep_quantise_attributes;

// DST[...] = real(SRC[...]), rounded to DST's dtype, same dims. SRC is quantised, DST is an f16, bf16 or f32.
typedef struct ep_dequantise_attributes {
  ep_quantisation src;
} ep_dequantise_attributes;

// fill: DST[...] = scalar 0.
// copy: DST[...] = cast(SRC[...]), same dims, any strides. Float to integer truncates toward zero and saturates, NaN
//       gives 0; to bool is x != 0; float to narrower float rounds to nearest even; integers wrap.
typedef struct ep_no_attributes {
  int64_t reserved;
} ep_no_attributes;

// DST[.., m, n] = sum over k of SRC[.., m, k] * SRC_B[.., k, n] (+ BIAS[.., m, n]); all of one rank >= 2; batch dims
// and BIAS broadcast by stride 0; a transpose is a stride order. Then the epilogues, in order.
//
// If an operand is quantised, the product is computed with the real numbers that it stands for. Then
//   * SRC and SRC_B may differ in dtype. If only one of them is quantised, the other is an f16, bf16 or f32.
//   * The sum, BIAS and the epilogues are computed on real numbers, as for f32 and within its bounds. Exact sums of
//     integers that are scaled once are fine too; an accumulator of integers never overflows. The result is written to
//     DST as `quantise` does, or, if DST is not quantised, as an f16, bf16 or f32. BIAS and the operands of epilogues
//     have DST's dtype, f32 where DST is quantised.
//   * If SRC and SRC_B are integers, quantised or not, and have no scale, DST may be an i32 that is not quantised. The
//     sum is then exact and wraps, and there is no BIAS and no epilogue.
// All attributes are zero if nothing is quantised.
typedef struct ep_matmul_attributes {
  ep_quantisation src;
  ep_quantisation weight;  // of SRC_B
  ep_quantisation dst;
} ep_matmul_attributes;

// DST[...] = op(SRC[...]); op is an EP_UNARY_* id; its parameters a, b are launch scalars 0, 1. DST is bool for rows of
// result BOOL.
typedef struct ep_unary_attributes {
  int32_t op;
  int32_t reserved;
} ep_unary_attributes;

// DST[...] = op(SRC[...], SRC_B[...]); op is an EP_BINARY_* id. Inputs have DST's dims (stride 0 where they broadcast)
// and one dtype; either may be a scalar. Or all are quantised integers of one scale each (of SRC_B: WEIGHT_SCALE).
typedef struct ep_binary_attributes {
  int32_t op;
  int32_t reserved;
} ep_binary_attributes;

// DST[...] = op(SRC[...], SRC_B[...], SRC_C[...]); op is an EP_TERNARY_* id. As binary; for `where`, SRC is bool.
typedef struct ep_ternary_attributes {
  int32_t op;
  int32_t reserved;
} ep_ternary_attributes;

// DST = SRC reduced over the axes of bit mask `axes`; DST has SRC's rank, with 1 at those axes, and SRC's dtype.
// f16 and bf16 accumulate in f32.
typedef struct ep_reduce_attributes {
  int32_t op;  // EP_REDUCE_*
  uint32_t axes;
} ep_reduce_attributes;

// DST (i64, dims of SRC with 1 at `axis`) = position of the greatest (op max) or least (op min) element along `axis`;
// NaN counts as the greatest (and as the least); of equal elements the first counts, or the last if `last` is 1.
typedef struct ep_arg_reduce_attributes {
  int32_t op;  // EP_REDUCE_max or EP_REDUCE_min
  int32_t axis;
  int32_t last;
  int32_t reserved;
} ep_arg_reduce_attributes;

// DST = exp(SRC - max) / sum(exp(SRC - max)) along `axis`; its logarithm where `log` is 1. A row of -inf gives NaN.
typedef struct ep_softmax_attributes {
  int32_t axis;
  int32_t log;
} ep_softmax_attributes;

// SRC [n, c, d...], WEIGHT [o, c/groups, k...], optional BIAS [o], DST [n, o, e...]; spatial_rank 1 to 3.
// DST[n,o,e] = sum over c,k of SRC[n, c, e*stride - pad_low + k*dilation] * WEIGHT[o,c,k] (cross-correlation, zeros
// outside). transposed = 1: the gradient of that with respect to SRC, WEIGHT [c, o/groups, k...]: e = (d-1)*stride -
// pad_low - pad_high + dilation*(k-1) + 1 + output padding, which DST's dims tell. Then the epilogues.
// Quantised operands are as in matmul, WEIGHT in place of SRC_B; the zeros outside are the real number 0.
typedef struct ep_convolution_attributes {
  int32_t spatial_rank;
  int32_t transposed;
  int64_t groups;
  int64_t stride[3];
  int64_t dilation[3];
  int64_t pad_low[3];
  int64_t pad_high[3];
  ep_quantisation src;
  ep_quantisation weight;
  ep_quantisation dst;
} ep_convolution_attributes;

#define EP_POOLING_MAX 1
#define EP_POOLING_AVERAGE 2              // divided by the number of elements inside SRC
#define EP_POOLING_AVERAGE_INCLUDE_PAD 3  // divided by the number of elements inside SRC and its padding
#define EP_POOLING_LP 4                   // (sum over the elements inside SRC of |x|^p)^(1/p)

// SRC [n, c, d...], DST [n, c, e...], optional DST_INDICES i64 (max only): position of the maximum in its [d...] plane,
// row-major. Windows as in convolution; max ignores padding; NaN wins a maximum. Ceil mode shows only in DST's dims.
typedef struct ep_pooling_attributes {
  int32_t op;
  int32_t spatial_rank;
  int64_t kernel[3];
  int64_t stride[3];
  int64_t dilation[3];
  int64_t pad_low[3];
  int64_t pad_high[3];
  double p;  // EP_POOLING_LP: > 0; others: 0
} ep_pooling_attributes;

// pooling_backward has the attributes of pooling. DST [n, c, d...] is the gradient with respect to the pooling's SRC,
// GRADIENT [n, c, e...] the gradient with respect to its result, both of one floating dtype.
//   * Max: INDICES (i64, dims of GRADIENT) is the DST_INDICES of the pooling. Each element of GRADIENT is added to the
//     element of its [d...] plane that its index names. An index outside [0, product of d...) is
//     EP_FAULT_INDEX_OUT_OF_RANGE, and its element is ignored. A provider need not look at the windows.
//   * Average: each element of GRADIENT, divided as the pooling divides, is added to all elements of its window.
// Elements in no window are 0. f16 and bf16 accumulate in f32. EP_POOLING_LP has no backward kind.

// Over the dims from `axis` on: DST = (SRC - mean) / sqrt(variance + eps) * SCALE + SHIFT, biased variance, eps =
// launch scalar 0. Optional SCALE, SHIFT of the normalised dims; optional outputs MEAN and INV_STD, dims of SRC with 1
// from `axis` on, f64 where SRC is f64, else f32.
typedef struct ep_layer_norm_attributes {
  int32_t axis;
  int32_t reserved;
} ep_layer_norm_attributes;

// DST = (SRC - MEAN) / sqrt(VARIANCE + eps) * SCALE + SHIFT per index of `axis`; the four have rank 1; eps = launch
// scalar 0.
typedef struct ep_batch_norm_attributes {
  int32_t axis;
  int32_t reserved;
} ep_batch_norm_attributes;

#define EP_GATHER_SLICES 1    // DST dims: SRC's with `axis` replaced by all dims of INDICES; whole slices are taken
#define EP_GATHER_ELEMENTS 2  // DST dims: INDICES'; DST[i..] = SRC[i.. with INDICES[i..] at `axis`]

// The last axis of INDICES holds c >= 1 coordinates, of the c axes of SRC after the first b axes, which are the same in
// SRC, INDICES and DST; here `axis` is b. DST dims: INDICES' but the last, then SRC's from b + c on. So
// DST[i.., j.., k..] = SRC[i.., INDICES[i.., j.., 0], .., INDICES[i.., j.., c - 1], k..].
#define EP_GATHER_COORDINATES 3

// INDICES is i32 or i64; a negative index counts from the end; one outside [-n, n) is EP_FAULT_INDEX_OUT_OF_RANGE.
typedef struct ep_gather_attributes {
  int32_t axis;
  int32_t mode;
} ep_gather_attributes;

// DST = SRC_0, SRC_1, ... one after the other along `axis`; other dims equal. Where there are more parts than
// roles, the host chains several concats.
typedef struct ep_concat_attributes {
  int32_t axis;
  int32_t reserved;
} ep_concat_attributes;

// DST_0, DST_1, ... = consecutive parts of SRC along `axis`, each as long as its dims say.
typedef struct ep_split_attributes {
  int32_t axis;
  int32_t reserved;
} ep_split_attributes;

#define EP_PAD_CONSTANT 1  // with launch scalar 0
#define EP_PAD_REFLECT 2   // without repeating the edge; low, high < dim
#define EP_PAD_EDGE 3      // the edge repeated

// DST dims = SRC dims + low + high, all >= 0.
typedef struct ep_pad_attributes {
  int32_t mode;
  int32_t reserved;
  int64_t low[EP_MAX_RANK];
  int64_t high[EP_MAX_RANK];
} ep_pad_attributes;

// The gradient of a convolution that is not transposed with respect to its WEIGHT. SRC [n, c, d...] is the
// convolution's input, GRADIENT [n, o, e...] the gradient with respect to its result, DST [o, c/groups, k...]:
// DST[o,c,k] = sum over n,e of SRC[n, c, e*stride - pad_low + k*dilation] * GRADIENT[n,o,e] (zeros outside), where c
// counts within the group of o. All of one floating dtype; f16 and bf16 accumulate in f32. For a transposed convolution
// SRC is the gradient and GRADIENT is the input. (The gradient with respect to SRC is the transposed convolution.)
typedef struct ep_convolution_weight_attributes {
  int32_t spatial_rank;
  int32_t reserved;
  int64_t groups;
  int64_t stride[3];
  int64_t dilation[3];
  int64_t pad_low[3];
  int64_t pad_high[3];
} ep_convolution_weight_attributes;

// The gradients of layer_norm with respect to SRC, SCALE and SHIFT. With x = (SRC - MEAN) * INV_STD, g = GRADIENT *
// SCALE (GRADIENT, where there is no SCALE) and mean() over the dims from `axis` on: DST = INV_STD * (g - mean(g) - x *
// mean(g * x)). SCALE_GRADIENT = sum of GRADIENT * x and SHIFT_GRADIENT = sum of GRADIENT, over the dims before `axis`;
// both have the normalised dims and any floating dtype. SRC, DST and GRADIENT have one dtype and the same dims; MEAN
// and INV_STD are the outputs of layer_norm. Sums are those of f32, for f64 of f64.
typedef struct ep_layer_norm_backward_attributes {
  int32_t axis;
  int32_t reserved;
} ep_layer_norm_backward_attributes;

// batch_norm with the mean and variance of SRC over all dims but `axis`: DST = (SRC - MEAN) * INV_STD * SCALE + SHIFT.
// MEAN and INV_STD = 1 / sqrt(variance + eps) (biased variance, eps = launch scalar 0) are outputs, f64 where SRC is
// f64, else f32. SCALE and SHIFT are both present or both absent. All four have rank 1.
typedef struct ep_batch_norm_training_attributes {
  int32_t axis;
  int32_t reserved;
} ep_batch_norm_training_attributes;

// The gradients of batch_norm_training with respect to SRC, SCALE and SHIFT: as layer_norm_backward, but that mean()
// and the sums are over all dims except `axis`. SCALE is optional; SCALE, MEAN, INV_STD, SCALE_GRADIENT and
// SHIFT_GRADIENT have rank 1.
typedef struct ep_batch_norm_backward_attributes {
  int32_t axis;
  int32_t reserved;
} ep_batch_norm_backward_attributes;

#define EP_SCATTER_ASSIGN 1  // the last update in row-major order wins
#define EP_SCATTER_ADD 2
#define EP_SCATTER_MUL 3
#define EP_SCATTER_MIN 4  // NaN wins, as in EP_BINARY_minimum
#define EP_SCATTER_MAX 5  // NaN wins

// DST starts as SRC. Then each element of SRC_B updates the element of DST that a gather with the same axis, mode and
// INDICES would read at its position:
//   * EP_GATHER_SLICES: SRC_B has SRC's dims with `axis` replaced by all dims of INDICES.
//   * EP_GATHER_ELEMENTS: SRC_B has the dims of INDICES, which along the other axes are at most SRC's. SRC_B[i..] goes
//     to DST[i.. with INDICES[i..] at `axis`].
//   * EP_GATHER_COORDINATES: SRC_B has the dims that gather would give DST.
// SRC, SRC_B and DST have one dtype; only EP_SCATTER_ASSIGN takes bool. INDICES as in gather; the update of a bad index
// is ignored. Updates of one element may be summed or multiplied in any order; f16 and bf16 accumulate in f32.
typedef struct ep_scatter_attributes {
  int32_t axis;
  int32_t mode;  // EP_GATHER_*
  int32_t op;    // EP_SCATTER_*
  int32_t reserved;
} ep_scatter_attributes;

#define EP_RANDOM_UNIFORM 1  // in [0, 1)
#define EP_RANDOM_NORMAL 2   // mean 0, variance 1; not of f64
#define EP_RANDOM_BITS 3     // the words themselves, of i32, u32, i64 and u64

// DST = random numbers, a function of seed and offset: launch scalars 0 and 1 (u64), or, where there is a SRC (i64
// [2]), its elements 0 and 1, taken as u64. The numbers come from Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel
// random numbers: as easy as 1, 2, 3", 2011). Block b is the four words of counter {low and high half of offset + b, 0,
// 0} under the key {low half of seed, high half}. Let i count the elements of DST in row-major order.
//   * Element i reads word i % 4 of block i / 4; of f64: words 2 * (i % 2) and the one after it of block i / 2. So n
//     elements use up ceil(n / 4) blocks (f64: ceil(n / 2)).
//   * uniform, of word w: f32 (w >> 8) * 2^-24, f16 (w >> 21) * 2^-11, bf16 (w >> 24) * 2^-8; f64, of words w and v:
//     ((w * 2^32 + v) >> 11) * 2^-53. All of these are exact.
//   * normal, of f32, by Box and Muller: elements 2j and 2j + 1 read words w and v. In f32, each operation rounded to
//     nearest, in this order, none contracted:
//       k = (w >> 8) + 1 = m * 2^(e + 24) with 0.75 <= m < 1.5      u = m * 2^e is in (0, 1]
//       s = (m - 1) / (m + 1); q = s * s
//       l = e * 0.693147182f + (2 * s) * (1 + q * (1/3 + q * (1/5 + q * (1/7 + q * (1/9)))))           log(u)
//       r = sqrt(-2 * l)
//       a = ((float)((v >> 8) & 0x3fffff) * 2^-22 - 0.5f) * 1.57079637f; b = a * a         in [-pi/4, pi/4)
//       sine = a * (1 + b * (-1/6 + b * (1/120 + b * (-1/5040 + b * (1/362880)))))
//       cosine = 1 + b * (-1/2 + b * (1/24 + b * (-1/720 + b * (1/40320))))
//     where each fraction is the f32 nearest to it. v >> 30 = 0, 1, 2, 3 turns {cosine, sine} to {cosine, sine},
//     {-sine, cosine}, {-cosine, -sine}, {sine, -cosine}; element 2j is the first times r, 2j + 1 the second. f16 and
//     bf16: the same, rounded once.
//   * bits: of 32 bits the word; of 64 bits, of words w and v read as for f64, w * 2^32 + v.
// So the same seed and offset give the same bits on every device. The exception is `normal` on a device that states
// less than tier full for f32: there sums, products, quotients and the root may be as inexact as the tier allows.
typedef struct ep_random_attributes {
  int32_t distribution;  // EP_RANDOM_*
  int32_t reserved;
} ep_random_attributes;

#define EP_SCAN_SUM 1
#define EP_SCAN_PROD 2
#define EP_SCAN_MAX 3          // NaN wins, as in EP_BINARY_maximum
#define EP_SCAN_MIN 4          // NaN wins
#define EP_SCAN_LOG_SUM_EXP 5  // log(sum of exp), without overflow; on floating-point types alone

// Along `axis`, element i of DST is the combination by `op` of the elements 0 to i of SRC; if `exclusive`, of the
// elements 0 to i - 1. An empty combination gives the neutral element: 0 (sum), 1 (product), the least value or -inf
// (MAX), the greatest value or inf (MIN), -inf (LOG_SUM_EXP). If `reverse`, the elements are i to n - 1, or i + 1 to n
// - 1. SRC and DST have one dtype and the same dims. On bool only MAX (any) and MIN (all) are defined. Integers wrap.
// Sums and products may be made in any order; f16 and bf16 accumulate in f32.
// Optional DST_INDICES (i64, dims of SRC), only for MAX and MIN that are not exclusive: the position along `axis` of
// the element of SRC that is the result. Among equal elements, or several NaN, the last one visited counts.
typedef struct ep_scan_attributes {
  int32_t axis;
  int32_t op;         // EP_SCAN_*
  int32_t exclusive;  // 0 or 1
  int32_t reverse;    // 0 or 1
} ep_scan_attributes;

// The order of elements, for the next three kinds: -0 equals 0; NaN is greater than every number, and NaN equals NaN;
// false is less than true. Elements keep their bits.
//
// The elements of SRC in order along `axis`: DST (dtype and dims of SRC) has the elements, DST_INDICES (i64, dims of
// SRC) their positions in SRC along `axis`; either may be absent. Equal elements keep the order of their positions,
// also if `descending`.
typedef struct ep_sort_attributes {
  int32_t axis;
  int32_t descending;  // 0 or 1
} ep_sort_attributes;

// The first k elements along `axis` of a sort, which is descending if `largest`. k, the length of DST and DST_INDICES
// along `axis`, is at most SRC's; other dims are SRC's. Either output may be absent, as in sort.
typedef struct ep_top_k_attributes {
  int32_t axis;
  int32_t largest;  // 0 or 1
} ep_top_k_attributes;

#define EP_UNIQUE_SORTED 1       // ascending; slices compare by their first different elements, in row-major order
#define EP_UNIQUE_FIRST 2        // in the order of their first positions in SRC
#define EP_UNIQUE_CONSECUTIVE 3  // in the order of SRC; each is compared only with the one before it

// The distinct elements of SRC among its n elements in row-major order (axis -1), or the distinct slices among its n
// slices along `axis`. Here NaN equals nothing, so each NaN, and each slice with a NaN, is distinct. The first of equal
// elements represents them. m, the number of distinct ones, is known only at run time: outputs are as long as if all
// were distinct, and the rest of DST, DST_INDICES and DST_COUNTS is 0.
//   * DST, of SRC's dtype: [n], or the dims of SRC: the m distinct ones.
//   * DST_COUNT, i64 [1]: m.
//   * DST_INDICES, optional, i64 [n]: the position in SRC of each of the m.
//   * DST_INVERSE, optional, i64 [n]: for each element or slice of SRC the position of its equal in DST.
//   * DST_COUNTS, optional, i64 [n]: how often each of the m occurs.
typedef struct ep_unique_attributes {
  int32_t axis;   // -1: elements
  int32_t order;  // EP_UNIQUE_*
} ep_unique_attributes;

// nonzero has no attributes. It gives the positions of the elements of SRC that are not 0 (NaN is not), in row-major
// order. DST (i64, [m, rank of SRC], m any number): row i is the index of the i-th of them. If there are more than m,
// DST has the first m; if there are fewer, the remaining rows are 0. DST_COUNT (i64 [1]): how many there are, even if
// more than m.

// DST, of any dtype, has SRC's dims with one more axis, of any length n, inserted at `axis`. It is launch scalar 1
// where the position along `axis` is the element of SRC (i32 or i64), else launch scalar 0. A negative element counts
// from the end; where it is outside [-n, n), all n are launch scalar 0.
typedef struct ep_one_hot_attributes {
  int32_t axis;
  int32_t reserved;
} ep_one_hot_attributes;

// Over the dims from `axis` on: DST = SRC / sqrt(mean(SRC * SRC) + eps) * SCALE, eps = launch scalar 0. Optional SCALE
// of the normalised dims; optional output INV_STD = 1 / sqrt(mean(SRC * SRC) + eps), dims of SRC with 1 from `axis` on,
// f64 where SRC is f64, else f32.
typedef struct ep_rms_norm_attributes {
  int32_t axis;
  int32_t reserved;
} ep_rms_norm_attributes;

// SRC [n, c, d...]; c is a multiple of `groups`, and a group is c / groups consecutive channels. DST = (SRC - mean) /
// sqrt(variance + eps) * SCALE + SHIFT, where the mean and biased variance of each n are over a group and all d, and
// eps = launch scalar 0. Optional SCALE and SHIFT [c]; optional outputs MEAN and INV_STD [n, groups], f64 where SRC is
// f64, else f32.
typedef struct ep_group_norm_attributes {
  int64_t groups;
} ep_group_norm_attributes;

// The positions of the queries among the keys. Query i has position i; aligned to the end, i + length - q, where q is
// the number of queries and length the number of keys (LENGTHS, or the dim).
#define EP_ATTENTION_START 1
#define EP_ATTENTION_END 2

// Scaled dot product attention. SRC holds the queries [b, h, q, w], SRC_B the keys [b, g, k, w], SRC_C the values [b,
// g, k, v], DST [b, h, q, v]; all of one floating dtype. h is a multiple of g: head i reads the keys and values of head
// i / (h / g). For each query:
//   * Score of a key: s = scale * (sum over w of SRC * SRC_B), scale = launch scalar 0. Where the softcap, launch
//     scalar 1, is above 0, s = softcap * tanh(s / softcap). Then s + BIAS, if BIAS is a float.
//   * BIAS is optional, [b, h, q, k] (stride 0 where it broadcasts), of SRC's dtype, or bool: false leaves the key out.
//   * A key at position j takes part in a query at position p if p - before <= j <= p + after; a `before` or `after` of
//     -1 means no bound. So causal attention has after = 0, a sliding window of n keys before = n - 1.
//   * LENGTHS is optional, i32 or i64 [b]: only keys below it take part. Below 0 it counts as 0, above k as k. Keys and
//     values from there on are not read. Any other key that takes no part may still affect DST if it is not finite.
//   * DST = sum of exp(s - m) * SRC_C / sum of exp(s - m), m the greatest score, over the keys that take part. A key of
//     score -inf takes no part. Where no key does, DST is 0.
// Optional output LOG_SUM [b, h, q, 1] = m + log(sum of exp(s - m)), -inf where no key takes part; f64 where SRC is
// f64, else f32. f16 and bf16 compute in f32.
typedef struct ep_attention_attributes {
  int32_t align;  // EP_ATTENTION_*
  int32_t reserved;
  int64_t before;
  int64_t after;
} ep_attention_attributes;

#define EP_ROTARY_HALVES 1       // pair i of a row is elements i and i + r
#define EP_ROTARY_INTERLEAVED 2  // pair i is elements 2i and 2i + 1

// Rotary position embedding (Su et al., "RoFormer", 2021). SRC and DST [b, h, s, w]; SRC_B (cosines) and SRC_C (sines)
// have r columns, 2r <= w. The first 2r elements of each row are r pairs (x, y); DST = (x * cos - y * sin, x * sin + y
// * cos), column i for pair i. The other elements are SRC's. SRC_B and SRC_C are of one floating dtype, f32 or SRC's:
//   * without INDICES [b, h, s, r] (stride 0 where they broadcast);
//   * with INDICES (i32 or i64, [b, s]) tables [m, r]: each position uses the row that INDICES gives. Negative and bad
//     indices are as in gather; the rows of DST of a bad index are 0.
typedef struct ep_rotary_attributes {
  int32_t mode;  // EP_ROTARY_*
  int32_t reserved;
} ep_rotary_attributes;

#define EP_RESIZE_NEAREST 1
#define EP_RESIZE_LINEAR 2
#define EP_RESIZE_CUBIC 3

#define EP_RESIZE_FLOOR 1  // how EP_RESIZE_NEAREST rounds a position to an element
#define EP_RESIZE_CEIL 2
#define EP_RESIZE_PREFER_FLOOR 3  // to the nearest; halves down
#define EP_RESIZE_PREFER_CEIL 4   // to the nearest; halves up

#define EP_RESIZE_FLAG_HALF 1             // positions count from the middle of an element: h below is 0.5, else 0
#define EP_RESIZE_FLAG_ANTIALIAS 2        // of linear and cubic
#define EP_RESIZE_FLAG_EXCLUDE_OUTSIDE 4  // of linear and cubic
#define EP_RESIZE_FLAG_EXTRAPOLATE 8

// DST = SRC sampled on another grid; same rank and dtype. Index i of DST along an axis lies at position
// x = (i + h) / scale + offset of SRC, in f64; where the scale is 0, at x = offset. Axes are taken one by one:
//   * nearest takes the element at x rounded by `round`, or the one at the edge if there is none.
//   * linear weighs the elements at floor(x) and after it by their distance t from x: w(t) = max(0, 1 - |t|).
//   * cubic weighs the two elements before x and the two after it. With a = `cubic`, w(t) = (a+2)|t|^3 - (a+3)|t|^2 + 1
//     up to |t| = 1, and a|t|^3 - 5a|t|^2 + 8a|t| - 4a from there up to 2.
//   * ANTIALIAS where 0 < scale < 1: each element weighs w(t * scale), so more elements have a weight; the weights are
//     divided by their sum.
//   * A position outside SRC stands for the element at the edge. With EXCLUDE_OUTSIDE such positions weigh nothing, and
//     the weights are divided by their sum.
// EXTRAPOLATE: where x is outside [0, length - 1] along any axis, DST is launch scalar 0. linear and cubic take
// floating dtypes, f16 and bf16 compute in f32.
typedef struct ep_resize_attributes {
  int32_t mode;   // EP_RESIZE_NEAREST, ...
  int32_t round;  // EP_RESIZE_FLOOR, ..., for nearest; else 0
  int32_t flags;  // EP_RESIZE_FLAG_*
  int32_t reserved;
  double cubic;  // for cubic; else 0
  double scale[EP_MAX_RANK];
  double offset[EP_MAX_RANK];
} ep_resize_attributes;

#define EP_CELL_TANH 1  // g = 1 gate
#define EP_CELL_RELU 2  // g = 1
#define EP_CELL_LSTM 3  // g = 4
#define EP_CELL_GRU 4   // g = 3

#define EP_RECURRENT_FLAG_REVERSE 1              // from the last step to the first
#define EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET 2  // of GRU
#define EP_RECURRENT_FLAG_COUPLED 4              // of LSTM: f = 1 - i
#define EP_RECURRENT_FLAG_TORCH 8                // gates are in PyTorch's order; else in ONNX's

// One layer of a recurrent network in one direction. SRC [t, n, k], WEIGHT [g * h, k], RECURRENT_WEIGHT [g * h, h],
// optional BIAS and RECURRENT_BIAS [g * h], optional HIDDEN [n, h], and CELL [n, h] of LSTM (the state before the first
// step; 0 where there is none), optional PEEPHOLE [3 * h] of LSTM (for i, o, f), optional LENGTHS [n], i32 or i64.
// DST [t, n, h] is the hidden state after each step; optional DST_HIDDEN [n, h], and DST_CELL [n, h] of LSTM, are the
// state after the last step. Gate q of a step is a_q = WEIGHT_q x + BIAS_q + RECURRENT_WEIGHT_q H + RECURRENT_BIAS_q,
// where _q is the q-th of g parts of h rows, s() is the logistic function, and C and H are the state before the step:
//   * TANH and RELU: H' = tanh(a) or max(a, 0).
//   * LSTM, gates i o f c (PyTorch: i f c o): i = s(a_i + P_i C), f = s(a_f + P_f C), C' = f C + i tanh(a_c),
//     o = s(a_o + P_o C'), H' = o tanh(C').
//   * GRU, gates z r h (PyTorch: r z h): z = s(a_z), r = s(a_r), H' = (1 - z) tanh(b) + z H with b = WEIGHT_h x +
//     BIAS_h + RECURRENT_WEIGHT_h (r H) + RECURRENT_BIAS_h, or, with LINEAR_BEFORE_RESET, b = WEIGHT_h x + BIAS_h +
//     r (RECURRENT_WEIGHT_h H + RECURRENT_BIAS_h).
// With `clip` > 0 each argument of s, tanh and max, but not of tanh(C'), is limited to [-clip, clip] first.
// An element of the batch has LENGTHS[n] steps (t where there are none): later steps leave the state unchanged and give
// 0 in DST, and REVERSE begins at its last step. A length outside [0, t] is EP_FAULT_INDEX_OUT_OF_RANGE; the nearest
// valid length is used. All but LENGTHS are of one floating dtype; f16 and bf16 compute in f32, the state too.
typedef struct ep_recurrent_attributes {
  int32_t cell;   // EP_CELL_*
  int32_t flags;  // EP_RECURRENT_FLAG_*
  double clip;    // 0: none
} ep_recurrent_attributes;

#define EP_FFT_COMPLEX 1       // SRC and DST [..., 2], same dims
#define EP_FFT_REAL_TO_HALF 2  // SRC real, n long along the axis; DST [..., 2], n / 2 + 1 long
#define EP_FFT_HALF_TO_REAL 3  // SRC [..., 2], n / 2 + 1 long along the axis; DST real, n long

// The discrete Fourier transform along `axis`, an axis of the real operand (if both are complex, of both): DST[k] =
// scalar 0 * sum over j of SRC[j] * exp(-2 pi i j k / n), where n is DST's length (REAL_TO_HALF: SRC's); `inverse` has
// +2 pi i. Complex numbers are pairs (real, imaginary) along a last axis of 2. HALF_TO_REAL treats the missing half of
// SRC as the conjugate of the given half, and the imaginary parts at 0 and n / 2 as 0. SRC and DST are of one floating
// dtype; f16 and bf16 compute in f32. REAL_TO_HALF is forward, HALF_TO_REAL inverse or forward.
typedef struct ep_fft_attributes {
  int32_t form;  // EP_FFT_*
  int32_t axis;
  int32_t inverse;
  int32_t reserved;
} ep_fft_attributes;

#define EP_LINEAR_SOLVE 1             // SRC [n, n], SRC_B [n, k]: DST [n, k] = X with SRC X = SRC_B
#define EP_LINEAR_TRIANGULAR_SOLVE 2  // the same, but reads only one triangle of SRC
#define EP_LINEAR_LEAST_SQUARES 3     // SRC [m, n], SRC_B [m, k]: DST [n, k], the smallest X with the least residual
#define EP_LINEAR_CHOLESKY 4          // SRC [n, n], of which one triangle is read: DST = L with SRC = L L^T, 0 above
#define EP_LINEAR_INVERSE 5           // SRC and DST [n, n]
#define EP_LINEAR_DETERMINANT 6       // SRC [n, n]: DST []
#define EP_LINEAR_LOG_DETERMINANT 7   // SRC [n, n]: DST [] the sign, or 0; DST_LOG [] the logarithm of its magnitude
#define EP_LINEAR_LU 8                // SRC [m, n]: DST [m, n] L below the diagonal, U from it on; DST_PIVOTS [k] i32
#define EP_LINEAR_QR 9                // SRC [m, n]: DST Q [m, k or m], DST_R [k or m, n]
#define EP_LINEAR_SVD 10              // SRC [m, n]: DST [k]; both or none of DST_VECTORS [m, k], DST_VECTORS_H [k, n]
#define EP_LINEAR_EIGEN 11  // SRC [n, n] symmetric, one triangle is read: DST [n]; optional DST_VECTORS [n, n]

#define EP_LINEAR_FLAG_UPPER 1  // the upper triangle is read; CHOLESKY gives U with SRC = U^T U, 0 below
#define EP_LINEAR_FLAG_UNIT 2   // of TRIANGULAR_SOLVE: the diagonal counts as 1

// Matrices are the last two axes. The dims before them, the batch, are the same in all operands. [] above is the batch
// itself, or [1] if there is no batch; k = min(m, n). All but the pivots are of one floating dtype; f16 and bf16
// compute in f32.
//   * LEAST_SQUARES treats singular values of at most max(m, n) * epsilon times the greatest as 0.
//   * LU swaps rows for the greatest element of each column in turn: row i, from 1 on, with row DST_PIVOTS[i].
//   * QR uses Householder reflections. The diagonal of R has the opposite sign of the element that the reflection
//     replaces (negative if that is 0); if no element is left below, the element is unchanged.
//   * Singular values come from the greatest to the least, eigenvalues from the least to the greatest. Each column of
//     DST_VECTORS (together with its row of DST_VECTORS_H) has the sign that makes its first element of more than half
//     the greatest magnitude positive.
// A matrix that is singular (SOLVE, TRIANGULAR_SOLVE, INVERSE) or not positive definite (CHOLESKY), and one with NaN or
// infinity (LEAST_SQUARES, SVD, EIGEN), is EP_FAULT_BAD_MATRIX: `value` is its number in the batch, row-major; its
// results are 0.
typedef struct ep_linear_algebra_attributes {
  int32_t op;     // EP_LINEAR_*
  int32_t flags;  // EP_LINEAR_FLAG_*
} ep_linear_algebra_attributes;

// The attributes of one kind, the rest zero. The member is named after the kind: attributes.softmax.axis.
typedef union ep_attributes {
  uint64_t words[20];
#define EP_PRIMITIVE(name, id, attributes, alias) attributes name;
#include "primitives.def"
#undef EP_PRIMITIVE
} ep_attributes;

// One scalar function applied to each element of a matmul's or convolution's result before it is stored.
typedef struct ep_epilogue {
  int32_t arity;  // 1: op is EP_UNARY_*; 2: op is EP_BINARY_*(result, operand)
  int32_t op;
  int32_t role;    // arity 2: EP_ROLE_EPILOGUE_0 + i, with DST's dims; 0: the operand is a launch scalar
  int32_t scalar;  // the first launch scalar it reads (for a and b, or for its operand); >= 4
} ep_epilogue;

// The accuracy that the program demands of a primitive. The host handles PORTABLE and FULL first: if the device states
// that tier for every floating operand, the descriptor has DEFAULT. So a provider sees them only if its device states
// less. If it can meet the demand for this primitive nevertheless, it sets EP_SUPPORT_FLAG_PRECISION. After
// UNSUPPORTED, or OK without the flag, the host looks elsewhere. So a provider that knows neither value may refuse it
// as unknown.
//
// RELAXED is a permission, not a demand. The device may then keep only tier relaxed for this primitive: in products of
// f32 it may round each factor to a format with at least 8 significant bits (bf16, TF32), if it adds the products in
// f32. It may treat denormal factors, products and sums as 0, and a factor beyond the range of the narrower format as
// infinite. Factors are the operands of a matmul, of a convolution and of its gradients, and the queries, keys, values,
// weights and states of attention and of recurrent cells. Operands and results keep their dtype. A device that uses the
// permission sets EP_SUPPORT_FLAG_RELAXED; a device without a narrower way ignores it. Without the flag the host
// creates the primitive with DEFAULT.
//
// DEFAULT: the tier that the device states; except on tier relaxed, f32 is f32: no TF32, no narrower accumulation.
#define EP_PRECISION_DEFAULT 0
#define EP_PRECISION_RELAXED 1   // tier relaxed is enough: the provider may use narrower formats inside
#define EP_PRECISION_PORTABLE 2  // tier portable at least
#define EP_PRECISION_FULL 3      // tier full, denormals kept

#define EP_PRIMITIVE_FLAG_DETERMINISTIC UINT64_C(1)  // same inputs, same bits

// The computation: one block without padding that is hashed and compared as bytes, up to the last operand used
// (offsetof(ep_primitive_desc, operands) + operand_count * sizeof(ep_operand_desc)). Unused fields are zero.
typedef struct ep_primitive_desc {
  int32_t kind;  // EP_PRIMITIVE_*
  uint32_t operand_count;
  uint64_t flags;            // EP_PRIMITIVE_FLAG_*
  int32_t precision;         // EP_PRECISION_*
  int32_t accumulate_dtype;  // 0: the rule of the kind
  uint32_t epilogue_count;
  uint32_t baked_scalars;  // bit i: scalars[i] is fixed here instead of given at launch (support may request this)
  ep_scalar scalars[EP_MAX_SCALARS];  // zero unless baked
  ep_epilogue epilogues[EP_MAX_EPILOGUES];
  ep_attributes attributes;
  uint64_t extensions[16];  // inline records {uint32_t type, uint32_t size in bytes, payload}; type 0 ends
  ep_operand_desc operands[EP_MAX_OPERANDS];  // outputs first, then inputs in the order of their roles
} ep_primitive_desc;

// All dims (strides) of all operands may be EP_ANY.
#define EP_SUPPORT_FLAG_ANY_DIMS UINT64_C(1)
#define EP_SUPPORT_FLAG_ANY_STRIDES UINT64_C(2)
// The primitive meets the descriptor's EP_PRECISION_PORTABLE or EP_PRECISION_FULL, although the device states less.
#define EP_SUPPORT_FLAG_PRECISION UINT64_C(4)
// The descriptor has EP_PRECISION_RELAXED, and the primitive uses narrower formats inside than the device states.
#define EP_SUPPORT_FLAG_RELAXED UINT64_C(8)

// The answer of primitive_support for a primitive that the device can run: the implementation and its terms.
typedef struct ep_support_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_SUPPORT_INFO
  const void* next;
  ep_string implementation;  // static text: "onednn", "simd", "plain"
  uint64_t flags;            // EP_SUPPORT_FLAG_*
  uint32_t baked_scalars;    // scalars the provider wants in the descriptor
  uint32_t reserved;
  // Required alignment per operand, in bytes: 0 or a power of two, at most the minimum_alignment of pool 0. The host
  // copies an operand that is aligned to less.
  int32_t alignment[EP_MAX_OPERANDS];
  // With EP_SUPPORT_FLAG_ANY_DIMS: the largest operand that a launch may have. 0: no limit. For a larger operand the
  // host creates the primitive with fixed dims.
  uint64_t greatest_dim;       // of any axis
  uint64_t greatest_elements;  // the product of an operand's dims
  uint64_t greatest_bytes;     // from an operand's first element to the end of its last
  // Preferred layout per operand: the token of one of the device's own layouts; 0: unchanged. Only a device with
  // layout_info sets these, and never for a scalar or constant operand. For an operand that is already opaque the value
  // is its token or 0.
  int64_t layouts[EP_MAX_OPERANDS];
  // The cost of the operands' stride order at each launch, in bytes: a penalty of n is the time that the device needs
  // to reorder the axes of an operand of n bytes. The best strides for this primitive have the penalty 0, so answers
  // for descriptors that differ only in strides can be compared. The host may ask about row-major and channels-last
  // operands, and weigh both penalties against the copies between them.
  //   * At most the bytes of all operands (the product of an operand's dims times its element), since a host that
  //     copies every operand pays no more. A greater answer counts as this sum.
  //   * Work that is done once, such as packing a CONSTANT operand, is not counted.
  //   * 0 if a dim or stride is EP_ANY or an operand is opaque. A device that always leaves it 0 prefers no order; the
  //     host then makes no copies to change orders.
  uint64_t penalty_bytes;
} ep_support_info;

// No launch needs workspace, whatever its shape, so the host need not call primitive_workspace each time.
#define EP_PRIMITIVE_INFO_FLAG_NO_WORKSPACE UINT32_C(1)

// The costs and needs of a created primitive.
typedef struct ep_primitive_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_PRIMITIVE_INFO
  const void* next;
  ep_string implementation;  // as in ep_support_info; lives as long as the primitive
  uint64_t host_bytes;       // host memory that the primitive holds; it bounds the host's cache
  uint64_t device_bytes;
  uint64_t workspace_bytes;  // needed by every launch; if dims are EP_ANY, ask primitive_workspace
  uint64_t scratch_bytes;    // persistent: one block per stream, zeroed once, left zero by every launch
  uint32_t flags;            // EP_PRIMITIVE_INFO_FLAG_*
  uint32_t pack_operand;     // 1 + index of the CONSTANT operand to pack; 0 none
  uint64_t pack_bytes;       // size of the packed operand
  // Identifies the packed format; 0: the packed bytes serve this primitive only. Two primitives of one device with the
  // same id have the same pack_bytes and can share packed bytes if their constant operands have the same dtype, dims
  // and values.
  uint64_t pack_layout;
} ep_primitive_info;

// One launch, borrowed for the call. This struct never grows; new features become new slots of ep_device_ops.
typedef struct ep_launch {
  const ep_buffer* operands;  // operand_count of them, in the descriptor's order
  const ep_shape* shapes;     // operand_count of them where the descriptor holds EP_ANY, else NULL
  const ep_scalar* scalars;   // scalar_count, indexed by slot; in the dtype of the operand they stand for or act on
  uint32_t operand_count;
  uint32_t scalar_count;
  ep_buffer workspace;  // 256-aligned, contents undefined, reused in stream order
  ep_buffer scratch;    // zero on entry; the launch must leave it zero
  uint64_t tag;         // names this launch in faults
} ep_launch;

#define EP_STREAM_COMPUTE 0
#define EP_STREAM_COPY 1  // only for copies, uploads and downloads; may use a copy engine

// Events recorded on the stream also store the device's time, for event_elapsed. This may make event_record slower. A
// device without event_elapsed ignores the flag.
#define EP_STREAM_FLAG_TIMED UINT64_C(1)

// The purpose of a new stream. Purpose and priority are hints: the provider treats a purpose that it does not know as
// EP_STREAM_COMPUTE. A flag that it does not know is UNSUPPORTED.
typedef struct ep_stream_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_STREAM_DESC
  const void* next;
  int32_t purpose;   // EP_STREAM_*
  int32_t priority;  // 0 normal, above 0 more urgent, below 0 less
  uint64_t flags;    // EP_STREAM_FLAG_*
} ep_stream_desc;

// ---------------------------------------------------------------------------------------------------------------------
// Whole graphs, for devices that run subgraphs rather than single ops. A device without these slots still runs every
// program.
//
// The host describes a program as a flat table: values, and nodes that read and write them. It asks the device which
// nodes it accepts (graph_capability). It divides the accepted nodes into islands, lets the device compile each island
// (graph_compile) and launches it as one piece of work (graph_launch). The other nodes run as primitives.
//
//   * Nodes. A node is one primitive: a descriptor, and for each operand a value and an offset in it. A device does not
//     accept a node with a kind, dtype, role, flag or extension that it does not know. Nodes are ordered: each reads
//     only inputs, constants and values that earlier nodes wrote, so launching them one by one gives the right result.
//     The device may run them in another order, in parallel or fused.
//   * Values. A value is a range of bytes that holds elements of one dtype. It is an input of the graph, an output, a
//     constant or, otherwise, an inner value. Exactly one node writes an inner value or an output. No node writes an
//     input or a constant. Nodes may read an output. The device decides where it stores an inner value, and if it
//     stores it at all.
//   * Layouts. A value has no dims of its own. Each operand states dims and strides over the value's bytes, as in a
//     launch: one node may write [2, 3, 4, 4], and others may read [96] or a slice. The operand that writes a value has
//     offset 0 and fills the value: its strides are those of a dense tensor in some order of axes. The operands of an
//     input, output or constant describe its layout in memory. A device may keep an inner value in its own layout, if
//     each reader still gets the elements that its dims and strides name. A device does not accept a node whose views
//     it cannot express.
//   * Sizes. Every dim and stride is a number. A device does not accept a node that contains EP_ANY; a later minor may
//     define such graphs.
//   * Scalars. All launch scalars of a node are baked: they are part of the program. A scalar operand uses no value of
//     the table.
//   * Aliasing. In a launch, an output overlaps no input, constant or other output. Inputs may overlap each other. No
//     node works in place.
//   * Precision. A node computes what its descriptor says, within the same error bounds as the primitive. Inner values
//     may have a wider dtype; a narrower one only under EP_PRECISION_RELAXED. The host compiles no node that demands
//     more precision than the device states, even if the device accepts it. If all nodes have
//     EP_PRIMITIVE_FLAG_DETERMINISTIC, a launch gives the same bits for the same inputs.
//   * Constants are passed by reference. Every write to a constant is complete before the host calls graph_compile, and
//     nobody writes or frees the constant before graph_destroy has returned. Meanwhile the device may read it at any
//     time, or copy it.
//   * Faults have the tag of the launch and name the node (EP_FAULT_NODE). `operand` is an operand of that node. After
//     bad data, all outputs of the launch are undefined, and the host poisons them. Work launched later runs.
//   * Caching. `values` and `nodes` are arrays without padding and pointers. Two tables with equal bytes and equal
//     contents of constants are the same program, so these bytes can be the key of a cache of compiled code.
//   * A compilation can be cancelled (cancel_requested), and so can a launch on a synchronous device.
// ---------------------------------------------------------------------------------------------------------------------

typedef struct ep_graph ep_graph;  // a compiled graph

#define EP_STRUCT_GRAPH_DESC 16
#define EP_STRUCT_GRAPH_INFO 17

#define EP_GRAPH_VALUE_INPUT UINT64_C(1)     // each launch gives its memory
#define EP_GRAPH_VALUE_OUTPUT UINT64_C(2)    // each launch gives the memory to write
#define EP_GRAPH_VALUE_CONSTANT UINT64_C(4)  // the table gives its memory

// A value. At most one flag is set; an inner value has none.
typedef struct ep_graph_value {
  uint64_t flags;  // EP_GRAPH_VALUE_*
  uint64_t bytes;  // from its first element to the end of its last, > 0
  int32_t dtype;   // also the dtype of every operand that reads or writes it
  int32_t reserved;
} ep_graph_value;

#define EP_GRAPH_NO_VALUE UINT32_MAX  // for a scalar operand

// The place of an operand: `offset` bytes into a value. The offset is a multiple of the element size.
typedef struct ep_graph_operand {
  uint32_t value;  // index into the table's values, or EP_GRAPH_NO_VALUE
  uint32_t reserved;
  uint64_t offset;
} ep_graph_operand;

// One node. Operands that the descriptor does not use are zero.
typedef struct ep_graph_node {
  ep_primitive_desc primitive;
  ep_graph_operand operands[EP_MAX_OPERANDS];
} ep_graph_node;

// The table of a graph, filled by the host and borrowed for the call. The memory of constants is borrowed until
// graph_destroy.
typedef struct ep_graph_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_GRAPH_DESC
  const void* next;
  const ep_graph_value* values;  // value_count of them; each is used by some node
  const ep_buffer* constants;    // value_count of them; {NULL, 0} for values that are not constants
  const ep_graph_node* nodes;    // node_count of them
  uint32_t value_count;
  uint32_t node_count;  // > 0
} ep_graph_desc;

// The device's answer for one node.
typedef struct ep_graph_answer {
  uint32_t island;  // 0: node not accepted. Nodes with the same other number may be compiled together
  uint32_t reserved;
  ep_string reason;  // for island 0, why not; may be empty. Lives as long as the device
} ep_graph_answer;

// The memory that a compiled graph uses.
typedef struct ep_graph_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_GRAPH_INFO
  const void* next;
  ep_string implementation;  // names the engine that runs it: "ane", "htp"; lives as long as the graph
  uint64_t host_bytes;       // memory that the graph keeps, including copies of constants
  uint64_t device_bytes;
  uint64_t workspace_bytes;  // needed by every launch
} ep_graph_info;

// One launch of a graph, borrowed for the call. This struct never grows.
typedef struct ep_graph_launch {
  const ep_buffer* operands;  // one for each value with INPUT or OUTPUT, in the order of the values
  uint32_t operand_count;
  uint32_t reserved;
  ep_buffer workspace;  // 256-aligned, contents undefined, reused in stream order
  uint64_t tag;         // names this launch in faults
} ep_graph_launch;

// The node that raised a fault: its index in the compiled table, stored in the upper half of ep_fault.flags. 0 in
// faults of primitives.
#define EP_FAULT_NODE(flags) ((uint32_t)((flags) >> 32))
#define EP_FAULT_FLAG_NODE(node) ((uint64_t)(node) << 32)

// ---------------------------------------------------------------------------------------------------------------------
// Interop: using memory, queues, semaphores and contexts of another API in the same process, without a copy. Devices
// may leave these slots NULL.
//
//   * Handles. A handle is a number of 64 bits with a type. A device states the types it accepts (ep_device_info). Any
//     other type is UNSUPPORTED, with a reason that lists the accepted types.
//   * Ownership. The caller keeps the handle, even if the import succeeds. The provider duplicates a file descriptor
//     and retains an object with a reference count (cl_mem, cl_command_queue, cl_event, cl_context); it releases them
//     when the imported object is destroyed. The caller keeps any other object (an address, a VkBuffer, a CUstream)
//     alive until the imported object is destroyed. An import that fails retains nothing.
//   * Order. An import waits for nothing and orders nothing. There are three ways to order work of the other API and
//     work of the device on the same memory: the host waits for the first before it submits the second; both are
//     submitted to one queue, imported as a stream; or the first signals a semaphore and the second waits for it. A
//     signal releases all writes before it, and a wait acquires them.
//   * Identity. The other API uses the same physical device, unless the memory is host memory. `uuid` names the device
//     that made the handle. A cl_mem or VkBuffer belongs to a context. The device accepts it only if this is the
//     device's own context; device_adopt can open a device in the application's context.
//   * Errors name the values. INVALID_ARGUMENT: an invalid handle (NULL, a negative or closed file descriptor), size 0
//     or (if the API can tell) more bytes than the handle has, the UUID or the context of another device, a queue that
//     is not in order. UNSUPPORTED: a type that the device does not accept, memory that does not begin at a multiple of
//     pool 0's minimum_alignment, memory that the device cannot use.
// ---------------------------------------------------------------------------------------------------------------------

#define EP_STRUCT_IMPORT_DESC 20
#define EP_STRUCT_ADOPT_DESC 21

// Types of handles, with the objects that they may name. All are below 64.
#define EP_HANDLE_HOST_POINTER 1   // memory: a host address, for memory_import_host; in no mask
#define EP_HANDLE_OPAQUE_FD 2      // memory, semaphore: a file descriptor exported by Vulkan, CUDA and the like
#define EP_HANDLE_DMA_BUF 3        // memory: a file descriptor of a Linux dma-buf
#define EP_HANDLE_CUDA_POINTER 8   // memory: a CUdeviceptr
#define EP_HANDLE_CUDA_STREAM 9    // stream: a CUstream of the device's primary context
#define EP_HANDLE_CUDA_EVENT 10    // semaphore: a CUevent of that context
#define EP_HANDLE_CL_CONTEXT 16    // device: a cl_context
#define EP_HANDLE_CL_MEM 17        // memory: a cl_mem, a buffer
#define EP_HANDLE_CL_QUEUE 18      // stream: a cl_command_queue
#define EP_HANDLE_CL_EVENT 19      // semaphore: a cl_event
#define EP_HANDLE_VK_DEVICE 24     // device: a VkDevice
#define EP_HANDLE_VK_BUFFER 25     // memory: a VkBuffer, bound, for storage, transfers both ways and device addresses
#define EP_HANDLE_VK_SEMAPHORE 26  // semaphore: a VkSemaphore

// The kinds of semaphore. EP_SEMAPHORE_EVENT is for the handle types EP_HANDLE_*_EVENT only, and these have no other
// kind.
#define EP_SEMAPHORE_BINARY 1    // a signal sets it, and one wait resets it. A wait is submitted after its signal
#define EP_SEMAPHORE_TIMELINE 2  // a number that only grows. A signal raises it; a wait may come before its signal
#define EP_SEMAPHORE_EVENT 3     // fires once and stays fired. Streams wait for it and never signal it

// The memory is a dedicated allocation for one buffer (VkMemoryDedicatedAllocateInfo).
#define EP_IMPORT_FLAG_DEDICATED UINT64_C(1)

// The object that memory_import, stream_import or semaphore_import imports. Unused fields are zero.
typedef struct ep_import_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_IMPORT_DESC
  const void* next;
  int32_t handle_type;  // EP_HANDLE_*
  int32_t semaphore;    // for semaphores: EP_SEMAPHORE_*
  uint64_t handle;      // a file descriptor is converted through int64_t, so that -1 sets all bits
  uint64_t size;        // for memory: bytes, > 0. For a file descriptor: the size of the exported allocation
  uint64_t flags;       // EP_IMPORT_FLAG_*
  uint8_t uuid[16];     // ep_device_info.uuid of the device that made the handle; all zero: not checked
} ep_import_desc;

#define EP_ADOPT_MAX_HANDLES 8

// The application's context, in which device_adopt opens a device. Unused fields are zero. By handle_type:
//   CL_CONTEXT: handles[0] is the cl_context, which contains the device. The provider retains it.
//   VK_DEVICE: handles[0] is the VkDevice, [1] its VkPhysicalDevice, [2] one of its queues, [3] the index of the
//     queue's family, which supports compute. The application created the VkDevice with every feature that the provider
//     needs or can use (its README lists them), because Vulkan cannot report them afterwards. The caller keeps the
//     VkDevice until device_close has returned. Every stream of the device submits to this queue. Work that the
//     application submitted earlier therefore runs before the stream's work; work that it submits later runs after it,
//     if the application adds a barrier.
typedef struct ep_adopt_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_ADOPT_DESC
  const void* next;
  int32_t handle_type;  // EP_HANDLE_*
  uint32_t handle_count;
  uint64_t handles[EP_ADOPT_MAX_HANDLES];
  // VK_DEVICE: the provider calls them around each use of the queue, on any thread; the application does the same.
  // Both are NULL if nobody else uses the queue while the device is open.
  void (*lock)(void* lock_context);
  void (*unlock)(void* lock_context);
  void* lock_context;
} ep_adopt_desc;

// ---------------------------------------------------------------------------------------------------------------------
// Opaque operands, for devices that compute in their own layouts (images, NC4HW4, tiled memory of an NPU). Other
// devices leave these slots NULL.
//
// The device gives each layout a token, a number > 0. A value in such a layout is opaque: only primitives of this
// device can read its bytes. The host never reads them; it passes the value's memory and its token.
//
//   * Wishes. primitive_support may name a preferred layout for each operand (ep_support_info.layouts). The host may
//     follow all of these wishes, some or none. If it follows none, the answer holds as given. If it follows all, the
//     primitive is supported too. If it follows some, it asks again, and the device may refuse. So a device wishes only
//     for a combination that it supports, and may refuse any other.
//   * Descriptors. An opaque operand has EP_OPERAND_FLAG_OPAQUE, the token in strides[0], and 0 in the other strides;
//     its dtype and dims are those of the value. One primitive may mix operands with strides and operands with
//     different tokens. All dims and strides of such a descriptor are numbers, never EP_ANY. The error bounds, and the
//     bits under EP_PRIMITIVE_FLAG_DETERMINISTIC, are the same as with strides.
//   * Tokens. Two values have the same layout exactly if token, dtype and dims are equal. So if one primitive wrote a
//     value, every primitive of the device that accepts this token for this dtype and these dims can read it. With
//     other dims or another dtype the same token may mean another layout, or none. A token is valid while its device is
//     open. It has no meaning for another device, even of the same plug-in, or in a later run. A token that the device
//     does not know is UNSUPPORTED, never a guess.
//   * Memory. layout_info gives the bytes and the pool. In pool 0, the host chooses an offset that is a multiple of
//     minimum_alignment. In a pool with EP_POOL_FLAG_IMAGE, layout_allocate makes a block for one value of this layout,
//     which begins at offset 0. The host may reuse such a block for later values of the same layout (token, dtype and
//     dims).
//   * Conversion. The kind copy converts a plain value to an opaque one (the token on DST) and back (the token on SRC),
//     without a change of dtype. For each token that the device has wished for, with the dtype and dims of that
//     operand, it supports both directions if the plain side is row-major. It may refuse other strides, another dtype,
//     and a copy from token to token. Converting a value and converting it back keeps its bits.
//   * No views. A launch reads or writes an opaque value as a whole, from its beginning. An opaque operand overlaps no
//     other operand; not even the exact alias of primitives.def is allowed. A launch that writes an opaque value writes
//     all bytes that later readers use, including padding. Nothing reads the value before the first such launch.
//   * No other access. The host does not use memory_map, copy, upload, download and peer_copy on an opaque value, and
//     the operands of whole graphs are plain: the host converts first. Opaque values and tokens do not outlive their
//     device.
//   * No result depends on a wish. If a device supports an op only in its own layout, the host computes that op
//     elsewhere.
// ---------------------------------------------------------------------------------------------------------------------

#define EP_STRUCT_LAYOUT_INFO 18

// The memory that an opaque value needs.
typedef struct ep_layout_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_LAYOUT_INFO
  const void* next;
  ep_string name;  // static text, for people: "nc4hw4", "image2d"
  uint64_t bytes;  // > 0
  uint32_t pool;   // 0, or one with EP_POOL_FLAG_IMAGE
  uint32_t reserved;
} ep_layout_info;

// ---------------------------------------------------------------------------------------------------------------------
// Command lists: work that is recorded once and replayed many times, cheaper than launching it again. The slots may be
// NULL.
//
//   * Recording. Between command_list_begin and command_list_end, primitive_launch, kernel_launch and copy on that
//     stream are recorded in order. They check their arguments as usual, but run nothing and raise no fault. If a
//     recorded call fails (UNSUPPORTED: it cannot be recorded), the list is lost, and command_list_end fails. Every
//     other call that takes the stream (uploads, downloads, packing, peer copies, graph launches, records and waits of
//     events and semaphores, flush, synchronise, take_fault, replays) returns BUSY and changes nothing; the recording
//     continues. Other streams, and events that the stream recorded before, work as usual. Only one thread records. The
//     host ends every recording before it destroys the stream.
//   * Fixed arguments. All arguments of a recorded call are fixed: scalars, shapes, sizes, the bytes of a kernel's
//     parameters, and addresses outside the bindings. Values that change between replays, such as an offset of random
//     numbers or a number of steps, are read from memory.
//   * Bindings. A binding is a range of memory of pool 0; the bindings of a list do not overlap. An operand (of a
//     launch or a copy, or workspace) that begins in a binding lies completely in it. Each replay gives a buffer of
//     pool 0 for each binding. An operand `d` bytes after the beginning of the binding is then `d` bytes after the
//     beginning of the buffer. New buffers keep the alignment that the recorded descriptors promise and the pool's
//     copy_granularity. A new buffer overlaps another one or a fixed operand only if no recorded call writes either of
//     the two. A device may refuse bindings (UNSUPPORTED); the host then records without bindings and copies changing
//     data into fixed memory.
//   * Order. A replay gives the same results as launching the recorded calls one after the other. The device may run
//     calls that do not depend on each other in parallel.
//   * One replay at a time. The host replays or destroys a list only after it has seen an event recorded after the last
//     replay, or has synchronised that replay's stream. (A Vulkan command buffer can be in flight only once.)
//   * Workspace of recorded launches is fixed or in a binding, like other memory, and nothing else uses it while a
//     replay is in flight. Scratch of recorded launches is one block that belongs to the list and is zero before the
//     first replay.
//   * Faults have the tag of the replay; the tags of recorded launches are ignored. EP_FAULT_NODE is the number of the
//     launch or copy in the recording, from 0. No list runs after the device is lost.
//   * Lifetimes. The host keeps recorded primitives, kernels and memory until command_list_destroy has returned. It
//     keeps memory of a binding only until the recording ends, and new buffers until their replay ends. The host may
//     destroy the recording stream before the list.
//   * Synchronous devices leave these slots NULL.
// ---------------------------------------------------------------------------------------------------------------------

typedef struct ep_command_list ep_command_list;

#define EP_STRUCT_COMMAND_LIST_DESC 24
#define EP_STRUCT_COMMAND_LIST_INFO 25

// Memory that each replay may replace by other memory.
typedef struct ep_binding {
  ep_buffer buffer;
  uint64_t size;  // in bytes, > 0
} ep_binding;

typedef struct ep_command_list_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COMMAND_LIST_DESC
  const void* next;
  const ep_binding* bindings;  // binding_count of them; NULL if there are none
  uint32_t binding_count;
  uint32_t reserved;
} ep_command_list_desc;

// The memory that a list uses.
typedef struct ep_command_list_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_COMMAND_LIST_INFO
  const void* next;
  uint64_t host_bytes;
  uint64_t device_bytes;
} ep_command_list_info;

// One replay, borrowed for the call. This struct never grows.
typedef struct ep_command_list_replay_desc {
  const ep_buffer* bindings;  // one for each binding, in the order of command_list_begin
  uint32_t binding_count;
  uint32_t reserved;
  uint64_t tag;  // names this replay in faults
} ep_command_list_replay_desc;

// ---------------------------------------------------------------------------------------------------------------------
// Kernel modules: the device compiles texts that the host's code generator writes. The slots may be NULL. MODULES.md
// has an example and lists what a text may use in each dialect.
//
//   * Dialects. A device states the dialects it compiles (dialect_info), with versions and limits. A text is complete
//     UTF-8 source in one dialect and begins with the host's prelude. The provider prepends the lines that the dialect
//     requires first (#version, #extension), the constants, and the declarations that the dialect's entry below names.
//   * Entries. A text has one or more entries. module_create gets the name of each entry (a C identifier), its number
//     of buffers and the bytes of its parameters.
//   * Geometry. A launch runs groups[0] * groups[1] * groups[2] groups of group[0] * group[1] * group[2] work-items.
//     The size of a group is fixed when the module is made. EP_DIALECT_C has no groups: group is {1, 1, 1}, and the
//     provider divides the groups[0] items of the launch among its threads, in ranges.
//   * Arguments. An entry takes `buffer_count` addresses of device memory, then its parameters: one C struct of
//     `parameter_bytes` bytes with naturally aligned members, which the text declares. A launch gives the buffers and
//     the bytes of the struct. If the struct is larger than the API accepts at a launch, the provider copies it into
//     its own memory.
//   * A constant is a name with a number. The provider defines it before the text (#define NAME value, as a literal of
//     the dialect). Constants are part of the compiled program.
//   * Features. A text uses only the features and types that dialect_info names, and stays within its limits.
//   * Workspace and scratch are additional buffers after the others, if the flags of the entry ask for them. Workspace
//     is 256-aligned with undefined contents. Scratch is zero on entry, and the kernel leaves it zero.
//   * Faults. An entry that may raise faults has EP_ENTRY_FLAG_FAULTS. The provider defines two macros:
//     `EP_FAULT_PARAMETER` declares a last parameter (empty in GLSL), and `ep_raise(code, operand, value, limit)`
//     raises a fault with integer arguments, after which the work-item continues. The fault has the tag of the launch,
//     as with primitives; `operand` is the number of a buffer.
//   * Numbers. Floats are computed as written: no contraction, no reassociation, no assumption about NaN or infinities.
//     Denormals are treated as in the device's primitives. Integers wrap.
//   * Binaries. A provider stores its compiled code with host->blob_put. The key contains the text, the constants, the
//     provider's version and the device's fingerprint. The host passes every text again in every run.
//   * A fatal error in the compiler must not end the process or hang a thread (rules X01, X02). A provider whose
//     compiler may do so runs it in a separate process.
// ---------------------------------------------------------------------------------------------------------------------

typedef struct ep_module ep_module;
typedef struct ep_kernel ep_kernel;

#define EP_STRUCT_DIALECT_INFO 26
#define EP_STRUCT_MODULE_DESC 27
#define EP_STRUCT_MODULE_INFO 28
#define EP_STRUCT_KERNEL_INFO 29

// C11 with the vector types of gcc and clang. An entry is
//   void name(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local)
// and computes the items begin to end - 1. `local` points to shared_bytes bytes, 64-aligned, with undefined contents,
// that no other thread uses during the call. Items write disjoint memory and run in any order, on any thread.
#define EP_DIALECT_C 1
// extern "C" __global__ void name(T0* b0, T1* b1, ..., Parameters p), with p by value.
#define EP_DIALECT_CUDA_C 2
// __kernel void name(__global T0* b0, __global T1* b1, ..., Parameters p), with p by value.
#define EP_DIALECT_OPENCL_C 3
// GLSL 4.60 with GL_EXT_buffer_reference2, GL_EXT_scalar_block_layout and GL_EXT_shader_explicit_arithmetic_types; the
// text defines one entry, the function `void name()`; the provider writes main and the size of a group. The entry reads
// addresses from `ep_buffers[i]` (uint64_t) and parameters from `ep_parameters`. The provider declares both. The text
// declares the struct Parameters, followed by a line `EP_PARAMETERS`.
#define EP_DIALECT_GLSL 4

#define EP_DIALECT_FEATURE_F16 UINT64_C(1)  // f16 arithmetic, loads and stores
#define EP_DIALECT_FEATURE_F64 UINT64_C(2)
#define EP_DIALECT_FEATURE_I64 UINT64_C(4)
#define EP_DIALECT_FEATURE_STORE_8 UINT64_C(8)  // work-items may store adjacent bytes
#define EP_DIALECT_FEATURE_STORE_16 UINT64_C(16)
#define EP_DIALECT_FEATURE_SUBGROUPS UINT64_C(32)  // shuffles and votes within a subgroup
#define EP_DIALECT_FEATURE_BARRIERS UINT64_C(64)   // shared memory and barriers within a group

typedef struct ep_dialect_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_DIALECT_INFO
  const void* next;
  int32_t dialect;          // EP_DIALECT_*
  int32_t version;          // major * 1000 + minor * 10: CUDA 12.4 is 12040, OpenCL C 1.2 1020, GLSL 4.60 4600, C11 0
  ep_string compiler;       // name and version of the compiler, for people; lives as long as the device
  uint64_t features;        // EP_DIALECT_FEATURE_*
  uint32_t vector_bytes;    // preferred width of a vector; 0 no preference
  uint32_t subgroup_least;  // fewest work-items of a subgroup; 0: no subgroups
  uint32_t subgroup_greatest;
  uint32_t group_items;       // most work-items of a group (product of its dims)
  uint32_t group_dims[3];     // greatest group size on each axis
  uint32_t greatest_buffers;  // per entry, including workspace and scratch; at least 16
  uint64_t groups[3];         // greatest number of groups on each axis
  uint64_t shared_bytes;      // per group
  uint64_t parameter_bytes;   // per launch; at least 1024
} ep_dialect_info;

#define EP_ENTRY_FLAG_FAULTS UINT64_C(1)
#define EP_ENTRY_FLAG_WORKSPACE UINT64_C(2)
#define EP_ENTRY_FLAG_SCRATCH UINT64_C(4)

typedef struct ep_module_entry {
  ep_string name;
  uint64_t flags;         // EP_ENTRY_FLAG_*
  uint32_t buffer_count;  // without workspace and scratch
  uint32_t parameter_bytes;
  uint32_t group[3];      // work-items of a group on each axis, at least 1
  uint32_t shared_bytes;  // shared memory that the text declares
} ep_module_entry;

typedef struct ep_module_constant {
  ep_string name;
  ep_scalar value;
} ep_module_constant;

typedef struct ep_module_desc {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_MODULE_DESC
  const void* next;
  int32_t dialect;  // one that dialect_info lists
  uint32_t entry_count;
  const ep_module_entry* entries;  // exactly one for EP_DIALECT_GLSL
  const ep_module_constant* constants;
  uint32_t constant_count;
  uint32_t reserved;
  ep_string name;  // names the text in messages: "fused_layer_norm_7"
  ep_string text;
  // Called with the compiler's complete output (also the warnings of a successful compilation), if there is any; at
  // most once, before module_create returns.
  void (*diagnose)(void* context, ep_string output);
  void* context;
} ep_module_desc;

typedef struct ep_module_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_MODULE_INFO
  const void* next;
  uint64_t host_bytes;
  uint64_t device_bytes;
} ep_module_info;

// Properties of a compiled entry, which the host uses to choose tile sizes. 0: unknown.
typedef struct ep_kernel_info {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_KERNEL_INFO
  const void* next;
  uint32_t registers;       // per work-item
  uint32_t spilled_bytes;   // per work-item
  uint32_t groups_at_once;  // groups that one compute unit can run at once
  uint32_t reserved;
} ep_kernel_info;

// One launch of a kernel, borrowed for the call. This struct never grows.
typedef struct ep_kernel_launch {
  const ep_buffer* buffers;  // buffer_count of them; {NULL, 0} for a buffer that the kernel does not use
  const void* parameters;    // parameter_bytes of them
  uint64_t groups[3];        // each at least 1
  uint32_t buffer_count;
  uint32_t parameter_bytes;
  ep_buffer workspace;  // {NULL, 0} if the entry uses none; the same for scratch
  ep_buffer scratch;
  uint64_t tag;  // names this launch in faults
} ep_kernel_launch;

// ---------------------------------------------------------------------------------------------------------------------
// The functions of a device. device_open fills the table, so two devices of one plug-in may differ. "Optional" slots
// may be NULL.
// ---------------------------------------------------------------------------------------------------------------------

typedef struct ep_device_ops {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_DEVICE_OPS
  const void* next;

  // Closes the device. The host has synchronised the device and destroyed everything made from it. Does not wait.
  void (*device_close)(ep_device* device);

  // --- memory ---

  // Allocates `size` > 0 bytes in pool number `pool`, aligned to the pool's minimum_alignment, with undefined contents.
  // The host sub-allocates and caches, so calls are rare and large. Owner: caller. Errors: OUT_OF_DEVICE_MEMORY.
  ep_status (*memory_allocate)(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out_memory,
                               ep_error** error);
  // Frees `memory` immediately. No pending work uses it. NULL is allowed.
  void (*memory_free)(ep_device* device, ep_memory* memory);
  // Returns the host address of `memory`, valid until memory_free (there is no unmap). Optional; required for
  // HOST_VISIBLE pools.
  ep_status (*memory_map)(ep_device* device, ep_memory* memory, void** out_pointer, ep_error** error);
  // memory_flush makes host writes in a range visible to the device; memory_invalidate makes device writes visible to
  // the host. `offset` and `size` are multiples of the pool's minimum_alignment. Optional; required for HOST_VISIBLE
  // pools that are not COHERENT.
  ep_status (*memory_flush)(ep_device* device, ep_memory* memory, uint64_t offset, uint64_t size, ep_error** error);
  ep_status (*memory_invalidate)(ep_device* device, ep_memory* memory, uint64_t offset, uint64_t size,
                                 ep_error** error);
  // Makes a handle for host memory that the caller owns and keeps until memory_free. Optional: if NULL, the host
  // copies. Errors: UNSUPPORTED for an address or a size that the device cannot use (it may need whole pages).
  ep_status (*memory_import_host)(ep_device* device, void* pointer, uint64_t size, ep_memory** out_memory,
                                  ep_error** error);
  // Returns the native handle of `memory`, of the type ep_device_info.native_memory. It is borrowed and lives as long
  // as `memory`. Optional.
  ep_status (*memory_native_handle)(ep_device* device, ep_memory* memory, uint64_t* out_handle, ep_error** error);
  // Frees memory that the provider itself caches. Optional.
  void (*device_trim)(ep_device* device);

  // --- streams: in order, independent of each other ---

  // Creates a stream as described by `desc`. A device ignores a purpose or priority that it cannot offer.
  ep_status (*stream_create)(ep_device* device, const ep_stream_desc* desc, ep_stream** out_stream, ep_error** error);
  // Destroys `stream`, which the host has synchronised. NULL is allowed.
  void (*stream_destroy)(ep_device* device, ep_stream* stream);
  // Flushes `stream` and waits until all work submitted to it before the call is done. Errors: DEVICE_LOST.
  ep_status (*stream_synchronize)(ep_stream* stream, ep_error** error);
  // Submits work that the provider has only batched so far; does not wait. Optional: NULL means that submission is
  // immediate.
  ep_status (*stream_flush)(ep_stream* stream, ep_error** error);
  // Removes and returns the oldest fault. Faults are in launch order. Once the host has seen an event, all faults of
  // the work before it are available. Does not wait or flush: it returns a fault that is known at the time of the call.
  // Errors: NOT_FOUND if there is none. Optional: NULL means that the device is synchronous or its kernels cannot
  // fault.
  ep_status (*stream_take_fault)(ep_stream* stream, ep_fault* out_fault, ep_error** error);

  // --- transfers, in stream order ---
  // Sizes are in bytes, > 0. Host pointers stay valid until the host has seen an event recorded after the call. A
  // synchronous device may return CANCELLED after host->cancel_requested returned 1 during the call.

  // Copies within the device. The two ranges do not overlap.
  ep_status (*copy)(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error);
  ep_status (*upload)(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error);
  ep_status (*download)(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error);

  // --- transfers between two open devices of this plug-in: optional as a pair; NULL: copies pass through the host ---

  // Lets `device` copy from the memory of `peer` until either device is closed. The host calls it once for each ordered
  // pair, before the first copy; it may be slow. Errors: UNSUPPORTED with the reason, if the devices have no direct
  // path or a direct path is no faster than host memory.
  ep_status (*peer_open)(ep_device* device, ep_device* peer, ep_error** error);
  // Copies like `copy`, from memory of `peer` to memory of the stream's device. peer_open has returned OK for the pair.
  // Only `stream` orders the copy: every write to `src` is complete before the call, and nobody writes or frees `src`
  // until the host has seen an event recorded later on `stream`. Errors: CANCELLED if `peer` is lost; DEVICE_LOST if
  // the stream's device is lost.
  ep_status (*peer_copy)(ep_stream* stream, ep_buffer dst, ep_device* peer, ep_buffer src, uint64_t size,
                         ep_error** error);

  // --- events: optional as a group if the device is synchronous, else required ---

  // Creates an event, which can be recorded on any stream of the device. It may outlive the stream, which the host
  // synchronises before it destroys it. The event has then fired, and can still be queried, waited for, recorded on
  // another stream and destroyed.
  ep_status (*event_create)(ep_device* device, ep_event** out_event, ep_error** error);
  // Destroys `event`. Nothing waits for it. NULL is allowed.
  void (*event_destroy)(ep_device* device, ep_event* event);
  // Records `event` after all work already submitted to `stream`, replacing its earlier point. Does not flush. After a
  // successful wait or query, the writes of this work are visible, also to the host.
  ep_status (*event_record)(ep_event* event, ep_stream* stream, ep_error** error);
  // Returns OK if the work before the recorded point is done, else BUSY (and leaves `error` untouched). Flushes the
  // stream that recorded `event`, up to that point.
  // Errors: INVALID_ARGUMENT if never recorded; DEVICE_LOST.
  ep_status (*event_query)(ep_event* event, ep_error** error);
  // Like event_query, but waits at most `timeout_ns` (UINT64_MAX: no limit). Errors: TIMEOUT, INVALID_ARGUMENT,
  // DEVICE_LOST.
  ep_status (*event_host_wait)(ep_event* event, uint64_t timeout_ns, ep_error** error);
  // Makes work submitted to `stream` after this call wait for the current point of `event`. Both belong to one device.
  // Flushes the stream that recorded `event`, up to that point. Errors: INVALID_ARGUMENT if never recorded.
  ep_status (*stream_wait_event)(ep_stream* stream, ep_event* event, ep_error** error);

  // --- primitives ---

  // Returns OK if the device can run the primitive `desc`. Has no side effects, compiles nothing, takes under 20
  // microseconds, may be optimistic. Required; a device may refuse every descriptor.
  // Errors: UNSUPPORTED with a reason that names the values ("bf16 needs avx512_core_bf16").
  ep_status (*primitive_support)(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                                 ep_error** error);
  // Creates the primitive `desc`. May compile, may still return UNSUPPORTED. CANCELLED: host->cancel_requested returned
  // 1 during this call. Optional as a group with the next four.
  ep_status (*primitive_create)(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                                ep_primitive_info* out_info, ep_error** error);
  // Destroys `primitive`, which has no pending launch. NULL is allowed.
  void (*primitive_destroy)(ep_device* device, ep_primitive* primitive);
  // Returns the bytes of workspace that a launch with these shapes (operand_count of them) needs. NULL means that no
  // launch needs workspace. Errors: UNSUPPORTED with a reason, if the descriptor has EP_ANY and the primitive cannot
  // serve these shapes; the host then creates one with numbers instead.
  ep_status (*primitive_workspace)(ep_primitive* primitive, const ep_shape* shapes, uint32_t shape_count,
                                   uint64_t* out_bytes, ep_error** error);
  // Launches `primitive` on `stream`. Other threads may launch it on other streams at the same time, so setting its
  // arguments and enqueueing it must be one atomic step. On a synchronous device `out_fault` is not NULL, and is
  // written if the function returns EP_STATUS_FAULT. Errors: OUT_OF_*_MEMORY, DEVICE_LOST; on a synchronous device also
  // FAULT; UNSUPPORTED, if the descriptor has EP_ANY and the primitive cannot serve these shapes (as with
  // primitive_workspace); CANCELLED, after host->cancel_requested returned 1 during this call: the outputs and the
  // scratch are then undefined, and no thread of the provider reads or writes an operand after the return.
  ep_status (*primitive_launch)(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch,
                                ep_fault* out_fault, ep_error** error);
  // Packs the constant operand `src`, whose layout the descriptor gives, into pack_bytes opaque bytes at `dst`, in
  // stream order. `dst` is a multiple of pool 0's minimum_alignment, overlaps no operand, and replaces the operand in
  // every launch. The host packs once for all primitives with this pack_layout, with any of them, and may then free
  // `src` and destroy the primitive that packed. Bad data is packed unchanged, without a fault. Errors:
  // OUT_OF_*_MEMORY, DEVICE_LOST, CANCELLED as with primitive_launch. Optional; a device without it leaves pack_operand
  // 0.
  ep_status (*primitive_pack)(ep_primitive* primitive, ep_stream* stream, ep_buffer dst, ep_buffer src,
                              ep_error** error);

  // --- whole graphs: optional as a group; NULL means that the host runs every node as a primitive ---

  // Writes node_count answers: for each node of `graph`, if the device accepts it and with which nodes it can be
  // compiled together. Has no side effects, compiles nothing, may be optimistic. The host compiles islands of the
  // accepted nodes. It may divide the nodes of one island number into several graphs and leave nodes out. It never
  // joins two numbers, and no path leaves an island and enters it again. A node that the device does not know is not
  // accepted; this is not an error. Threads: any. Errors: OUT_OF_HOST_MEMORY, DEVICE_LOST.
  ep_status (*graph_capability)(ep_device* device, const ep_graph_desc* graph, ep_graph_answer* out_answers,
                                ep_error** error);
  // Compiles `graph`, whose nodes graph_capability accepted with one island number. May be slow. Owner: caller.
  // Threads: any. Errors: UNSUPPORTED with the reason: the host runs these nodes as primitives and does not ask again;
  // OUT_OF_*_MEMORY: the host frees its caches and tries once more, then the program fails; CANCELLED:
  // host->cancel_requested returned 1 during this call.
  ep_status (*graph_compile)(ep_device* device, const ep_graph_desc* graph, ep_graph** out_graph,
                             ep_graph_info* out_info, ep_error** error);
  // Destroys `graph`, which has no pending launch. The provider no longer reads its constants. NULL is allowed.
  void (*graph_destroy)(ep_device* device, ep_graph* graph);
  // Launches `graph` on `stream`, like primitive_launch. Other threads may launch it on other streams at the same time;
  // a device that can run only one launch of a graph at a time orders them itself. Errors: OUT_OF_*_MEMORY,
  // DEVICE_LOST; on a synchronous device also FAULT and CANCELLED.
  ep_status (*graph_launch)(ep_graph* graph, ep_stream* stream, const ep_graph_launch* launch, ep_fault* out_fault,
                            ep_error** error);

  // --- interop: optional; NULL means that the device accepts no handle of this kind ---

  // Imports the first desc->size bytes of another API's memory. The result can be used like memory of pool 0.
  // memory_free ends the import and does not free the other API's memory. memory_map returns its host address or
  // UNSUPPORTED.
  // Threads: any. Errors: see Interop above; OUT_OF_*_MEMORY; DEVICE_LOST.
  ep_status (*memory_import)(ep_device* device, const ep_import_desc* desc, ep_memory** out_memory, ep_error** error);
  // Makes a stream that uses a queue of the application. Work submitted to the stream enters that queue, after work
  // that the application submitted before and before work that it submits later; stream_flush submits work that the
  // provider has only batched so far. Waits and events of the stream cover the application's work too. stream_destroy
  // does not change the queue. Threads: any. Errors: see Interop above; OUT_OF_*_MEMORY; DEVICE_LOST.
  ep_status (*stream_import)(ep_device* device, const ep_import_desc* desc, ep_stream** out_stream, ep_error** error);
  // Imports a semaphore. Optional as a group with the next two. Threads: any. Errors: see Interop above; UNSUPPORTED
  // for a kind (EP_SEMAPHORE_*) that the device lacks for this type; OUT_OF_*_MEMORY; DEVICE_LOST.
  ep_status (*semaphore_import)(ep_device* device, const ep_import_desc* desc, ep_semaphore** out_semaphore,
                                ep_error** error);
  // Destroys `semaphore`, which has no pending wait or signal. NULL is allowed.
  void (*semaphore_destroy)(ep_device* device, ep_semaphore* semaphore);
  // Makes work submitted to `stream` after this call wait for `semaphore`: until it reaches `value` (timeline), until a
  // signal (binary, `value` 0), or until it fires (event, `value` 0). The call itself does not wait. If the signal
  // never comes, this stream and all streams that share its hardware queue wait for ever. Errors: OUT_OF_*_MEMORY,
  // DEVICE_LOST.
  ep_status (*stream_wait_semaphore)(ep_stream* stream, ep_semaphore* semaphore, uint64_t value, ep_error** error);
  // Signals `semaphore` after all work already submitted to `stream`, and flushes `stream`, since nothing else would.
  // `value`: greater than the semaphore's value and than any signal submitted before (timeline), 0 (binary). May be
  // NULL even with semaphore_import: streams can then only wait for semaphores. Errors: UNSUPPORTED for
  // EP_SEMAPHORE_EVENT; OUT_OF_*_MEMORY; DEVICE_LOST.
  ep_status (*stream_signal_semaphore)(ep_stream* stream, ep_semaphore* semaphore, uint64_t value, ep_error** error);

  // --- opaque operands: optional; NULL means that the device has no own layouts ---

  // Returns the memory that an opaque value needs. `operand` describes the value and has EP_OPERAND_FLAG_OPAQUE; its
  // role is ignored. The result is the same each time. Threads: any. Errors: UNSUPPORTED with a reason, if the device
  // has not made this token for this dtype and these dims.
  ep_status (*layout_info)(ep_device* device, const ep_operand_desc* operand, ep_layout_info* out_info,
                           ep_error** error);
  // Allocates a block for one value that `operand` describes, in the image pool that layout_info names, with undefined
  // contents. Owner: caller, who frees it with memory_free. Threads: any. Errors: OUT_OF_DEVICE_MEMORY; UNSUPPORTED as
  // layout_info. Required if a pool has EP_POOL_FLAG_IMAGE, else NULL.
  ep_status (*layout_allocate)(ep_device* device, const ep_operand_desc* operand, ep_memory** out_memory,
                               ep_error** error);

  // --- device time: optional; if NULL, the host measures with its own clock ---

  // Returns the nanoseconds, by the device's clock, between the points of `begin` and `end`: the times at which the
  // work before each was done. The host has recorded both on streams of one device with EP_STREAM_FLAG_TIMED and has
  // seen both, and `begin` is not after `end` in the order of streams and waits. The clock may be coarse (0 is a valid
  // result), but times on one stream add up: a to c is the sum of a to b and b to c, within one tick of the clock. The
  // points do not change. Threads: any, but not during event_record of either event.
  // Errors: INVALID_ARGUMENT if one of them was never recorded, or not on such a stream; BUSY if one has not fired yet;
  // UNSUPPORTED if the device has lost the time (its clock was reset); DEVICE_LOST.
  ep_status (*event_elapsed)(ep_event* begin, ep_event* end, uint64_t* out_ns, ep_error** error);

  // --- command lists: optional as a group; NULL means that the host launches each time ---

  // Begins a recording on `stream`, which has no work in flight. Until command_list_end, launches and copies on
  // `stream` are recorded and not run. Errors: UNSUPPORTED with the reason, if the device cannot record, or not with
  // these bindings (the host then tries without bindings); BUSY if `stream` already records; OUT_OF_*_MEMORY,
  // DEVICE_LOST.
  ep_status (*command_list_begin)(ep_stream* stream, const ep_command_list_desc* desc, ep_error** error);
  // Ends the recording of `stream` and makes the list. `stream` then works normally again, even after an error. Owner:
  // caller. Errors: UNSUPPORTED if a recorded call failed or the list cannot be made; INVALID_ARGUMENT if `stream` does
  // not record; OUT_OF_*_MEMORY, DEVICE_LOST.
  ep_status (*command_list_end)(ep_stream* stream, ep_command_list** out_list, ep_command_list_info* out_info,
                                ep_error** error);
  // Destroys `list`, which has no replay in flight. NULL is allowed.
  void (*command_list_destroy)(ep_device* device, ep_command_list* list);
  // Runs the recorded work as one piece of work in stream order. `stream` may be any stream of the device. Errors: BUSY
  // if `stream` records; OUT_OF_*_MEMORY, DEVICE_LOST.
  ep_status (*command_list_replay)(ep_command_list* list, ep_stream* stream, const ep_command_list_replay_desc* replay,
                                   ep_error** error);

  // --- kernel modules: optional as a group; NULL means that the device compiles no text,
  //     and the host runs fused kernels elsewhere. ---

  // Describes dialect number `index`; the best is first. Threads: any. Errors: NOT_FOUND after the last.
  ep_status (*dialect_info)(ep_device* device, uint32_t index, ep_dialect_info* out_info, ep_error** error);
  // Compiles a text. May be slow, may be cancelled (host->cancel_requested). Owner: caller. Threads: any. Errors:
  // INVALID_ARGUMENT if the compiler refuses the text: the sentence has the compiler's first error and its line, and
  // `desc->diagnose` has received the complete output; UNSUPPORTED if the text is valid but the device cannot run it
  // (too much shared memory, no compiler found); CANCELLED, OUT_OF_*_MEMORY, DEVICE_LOST.
  ep_status (*module_create)(ep_device* device, const ep_module_desc* desc, ep_module** out_module,
                             ep_module_info* out_info, ep_error** error);
  // Destroys `module` and its kernels, which have no pending launch. NULL is allowed.
  void (*module_destroy)(ep_device* device, ep_module* module);
  // Returns the kernel `entry` of `module`. `module` owns it. Threads: any. Errors: NOT_FOUND if the text has no such
  // entry; UNSUPPORTED if the device cannot run it; OUT_OF_*_MEMORY, DEVICE_LOST.
  ep_status (*kernel_get)(ep_module* module, ep_string entry, ep_kernel** out_kernel, ep_kernel_info* out_info,
                          ep_error** error);
  // Launches `kernel` on `stream`, like primitive_launch. Errors: OUT_OF_*_MEMORY, DEVICE_LOST; on a synchronous device
  // also FAULT and CANCELLED.
  ep_status (*kernel_launch)(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault* out_fault,
                             ep_error** error);
} ep_device_ops;

// ---------------------------------------------------------------------------------------------------------------------
// The plug-in.
// ---------------------------------------------------------------------------------------------------------------------

typedef struct ep_plugin_ops {
  uint32_t struct_size;
  uint32_t struct_type;  // EP_STRUCT_PLUGIN_OPS
  const void* next;
  uint32_t abi_major;
  uint32_t abi_minor;
  ep_plugin* plugin;  // passed to every call below; a plug-in has no globals

  // Ends the plug-in after all devices are closed: joins its threads and frees its memory.
  void (*shutdown)(ep_plugin* plugin);
  // Returns the number of devices, including unusable ones. This is the first call that may access hardware. 0 is not
  // an error; a missing driver is an error with a sentence and a remedy.
  ep_status (*device_count)(ep_plugin* plugin, uint32_t* out_count, ep_error** error);
  // Describes device `index`. Its strings live until shutdown. Errors: NOT_FOUND.
  ep_status (*device_info)(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error);
  // Opens device `index` and fills its table. Errors: NOT_FOUND, or the reason why the device is unusable.
  ep_status (*device_open)(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                           ep_error** error);
  // Opens device `index` like device_open, but in a context that the application made, so that handles of that context
  // can be imported. Optional: NULL means that the device opens only in its own context. Errors: those of device_open;
  // INVALID_ARGUMENT if the context does not belong to this device; UNSUPPORTED for a type that ep_device_info does not
  // name.
  ep_status (*device_adopt)(ep_plugin* plugin, uint32_t index, const ep_adopt_desc* desc, ep_device** out_device,
                            ep_device_ops* out_ops, ep_error** error);
} ep_plugin_ops;

// The only exported symbol. Fills `out_ops`, whose struct_size and struct_type the host has set. Accesses no hardware,
// starts no thread, does not block, may be called twice (each call makes an independent plug-in). Errors: VERSION if
// the plug-in was built for another major than host->abi_major, or EP_ABI_MINORS_AGREE is false.
typedef ep_status (*ep_plugin_query_fn)(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error);
#define EP_PLUGIN_QUERY_SYMBOL "ep_plugin_query_v0"

#if defined(_MSC_VER)
#define EP_EXPORT __declspec(dllexport)
#else
#define EP_EXPORT __attribute__((visibility("default")))
#endif
EP_EXPORT ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error);

// ---------------------------------------------------------------------------------------------------------------------
// The note, which the loader reads before any code of the plug-in runs. Write it once, at file scope:
//   EP_PLUGIN_NOTE("foo", "1.2.0", 0)
//
// The note is one ep_note in its own section, with the same bytes in every file format. In ELF it is also a valid ELF
// note, so that the loader finds it through the program headers. In Mach-O and PE the section is found by its name.
// Hosts of this version load only ELF; they refuse other formats with an error that names the format.
// ---------------------------------------------------------------------------------------------------------------------

#if defined(__APPLE__)
#define EP_NOTE_SECTION "__DATA_CONST,__tenon_note"
#elif defined(_WIN32)
#define EP_NOTE_SECTION ".tenon"
#else
#define EP_NOTE_SECTION ".note.tenon"
#endif
#define EP_NOTE_OWNER "Tenon"
#define EP_NOTE_TYPE 1

#define EP_NOTE_FLAG_UNLOADABLE UINT32_C(1)      // the host may call dlclose
#define EP_NOTE_FLAG_PROBE_IN_CHILD UINT32_C(2)  // device_count or device_info may crash or hang

// The kind of a plug-in. A host that does not know the kind does not load the file.
#define EP_PLUGIN_KIND_DEVICES 0      // ep_plugin_query_v0: devices
#define EP_PLUGIN_KIND_COLLECTIVES 1  // ep_collectives_query_v0: communication between processes

#define EP_SANITIZER_NONE 0
#define EP_SANITIZER_ADDRESS 1
#define EP_SANITIZER_THREAD 2
#define EP_SANITIZER_MEMORY 3

typedef struct ep_plugin_note {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  uint32_t flags;      // EP_NOTE_FLAG_*
  uint32_t sanitizer;  // EP_SANITIZER_*
  char name[32];       // zero-terminated, [a-z0-9_]+, as in libtenon_<name>.so and "<name>:0"
  char version[32];
  char toolchain[64];
  uint32_t kind;  // EP_PLUGIN_KIND_*
  uint32_t reserved;
} ep_plugin_note;

// The fields before `desc` are the header of an ELF note.
typedef struct ep_note {
  uint32_t name_size;
  uint32_t desc_size;
  uint32_t type;
  char owner[8];
  ep_plugin_note desc;
} ep_note;

#if defined(__SANITIZE_ADDRESS__)
#define EP_SANITIZER_OF_THIS_BUILD EP_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define EP_SANITIZER_OF_THIS_BUILD EP_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EP_SANITIZER_OF_THIS_BUILD EP_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define EP_SANITIZER_OF_THIS_BUILD EP_SANITIZER_THREAD
#elif __has_feature(memory_sanitizer)
#define EP_SANITIZER_OF_THIS_BUILD EP_SANITIZER_MEMORY
#endif
#endif
#ifndef EP_SANITIZER_OF_THIS_BUILD
#define EP_SANITIZER_OF_THIS_BUILD EP_SANITIZER_NONE
#endif

#if defined(__clang__)
#define EP_TOOLCHAIN_ "clang " __clang_version__
#elif defined(__GNUC__)
#define EP_TOOLCHAIN_ "gcc " __VERSION__
#else
#define EP_TOOLCHAIN_ "unknown"
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#pragma section(EP_NOTE_SECTION, read)
#define EP_IN_NOTE_SECTION_ __declspec(allocate(EP_NOTE_SECTION))
#else
#define EP_IN_NOTE_SECTION_ __attribute__((section(EP_NOTE_SECTION), used, aligned(4)))
#endif

#define EP_PLUGIN_NOTE(plugin_name, plugin_version, note_flags) \
  EP_PLUGIN_NOTE_OF_KIND(plugin_name, plugin_version, note_flags, EP_PLUGIN_KIND_DEVICES)

#define EP_PLUGIN_NOTE_OF_KIND(plugin_name, plugin_version, note_flags, plugin_kind)                            \
  EP_IN_NOTE_SECTION_ static const ep_note ep_plugin_note_ = {                                                  \
      sizeof(EP_NOTE_OWNER),                                                                                    \
      sizeof(ep_plugin_note),                                                                                   \
      EP_NOTE_TYPE,                                                                                             \
      EP_NOTE_OWNER,                                                                                            \
      {sizeof(ep_plugin_note), EP_ABI_MAJOR, EP_ABI_MINOR, note_flags, EP_SANITIZER_OF_THIS_BUILD, plugin_name, \
       plugin_version, EP_TOOLCHAIN_, plugin_kind, 0}};

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENON_EP_API_EP_API_H_
