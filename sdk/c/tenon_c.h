/* Tenon for programs in C, and for bindings of other languages. Link libtenon-c.so.
 *
 *   tenon_error* error = NULL;
 *   tenon_model* model = NULL;
 *   tenon_tensor* scores = NULL;
 *   if (tenon_model_load("resnet.onnx", NULL, &model, &error) != TENON_OK) ...
 *   tenon_model_run(model, NULL, (const tenon_tensor*[]){image}, 1, &scores, 1, NULL, &error);
 *
 * Results. A function that can fail returns a tenon_status, and TENON_OK is 0. On a failure the results are untouched,
 * and *error, if `error` is not NULL, is a new error, which the caller frees. No exception leaves a function. A NULL
 * argument is a failure, unless the comment of the function allows it. tenon_..._free(NULL) does nothing.
 *
 * Handles. Types without members are handles. The caller owns every handle that a function returns through a pointer,
 * and frees it with the function of its type. A `const char*` that a function returns belongs to the handle that was
 * asked, and is valid while the handle lives. A `char*` is the caller's: free it with tenon_free. Text is UTF-8.
 *
 * Compatibility. A function or a number of this header never changes and never disappears; new ones are appended. A
 * struct that begins with `size` may get further members at its end. Initialise it with TENON_INIT: the library reads
 * and writes only the first `size` bytes, and a member that the caller does not know has its default, which is 0. The
 * other structs never change. Version 0 of this header is the exception: until version 1 it may change.
 *
 * Threads. Any thread may call any function. Threads may share a handle, but no thread may free a handle that another
 * one still uses, and no thread may read a tensor while another thread writes it. */
#ifndef TENON_C_H
#define TENON_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_C_MAJOR 0
#define TENON_C_MINOR 1

#if defined(__GNUC__)
#define TENON_C_API __attribute__((visibility("default")))
#else
#define TENON_C_API
#endif

/* ---- version, memory, errors ---- */

/* The version of Tenon, such as "0.9.0"; the version of this header that the library has, as 65536 * major + minor. */
TENON_C_API const char* tenon_version(void);
TENON_C_API uint32_t tenon_c_version(void);

/* Frees a `char*` that a function returned. */
TENON_C_API void tenon_free(void* memory);

typedef int32_t tenon_status;
enum {
  TENON_OK = 0,
  TENON_UNSUPPORTED = 1,          /* the device or the model cannot do it */
  TENON_FAULT = 2,                /* a kernel met bad data, such as an index out of range */
  TENON_INVALID_ARGUMENT = 3,     /* fix the call */
  TENON_NOT_FOUND = 4,            /* no such file, device, op or name */
  TENON_OUT_OF_HOST_MEMORY = 5,   /* free host memory and retry */
  TENON_OUT_OF_DEVICE_MEMORY = 6, /* free device memory and retry */
  TENON_DEVICE_LOST = 7,          /* free everything on the device, then name it again */
  TENON_TIMEOUT = 8,              /* the time has passed before the awaited work was done */
  TENON_CANCELLED = 9,            /* stopped on request */
  TENON_BUSY = 10,                /* not now: retry later */
  TENON_VERSION_MISMATCH = 11,    /* a plug-in and the library do not speak the same version */
  TENON_INTERNAL = 12             /* a defect: report it */
};

typedef struct tenon_error tenon_error;
TENON_C_API tenon_status tenon_error_code(const tenon_error* error);
/* What failed and why: a sentence, then a line for each layer that adds context. */
TENON_C_API const char* tenon_error_message(const tenon_error* error);
/* What to do about it; "" if that is unknown. */
TENON_C_API const char* tenon_error_remedy(const tenon_error* error);
TENON_C_API void tenon_error_free(tenon_error* error);

/* Prepares a struct that begins with `size`: tenon_model_options options = TENON_INIT(tenon_model_options); */
#ifdef __cplusplus
extern "C++" {
template <class Struct>
inline Struct tenon_init() {
  Struct prepared{};
  prepared.size = sizeof(Struct);
  return prepared;
}
}
#define TENON_INIT(type) tenon_init<type>()
#else
#define TENON_INIT(type) ((type){.size = sizeof(type)})
#endif

/* A choice whose default the settings decide. */
enum { TENON_DEFAULT = 0, TENON_ON = 1, TENON_OFF = 2 };

/* ---- settings, log, threads ---- */

/* Sets a setting of `tenon help env` by its key, such as "device" or "log", as an option of the tool does. Call it
 * before the first call that needs a device. Errors: INVALID_ARGUMENT (no such key, a wrong value). */
TENON_C_API tenon_status tenon_set_setting(const char* key, const char* value, tenon_error** error);

enum { TENON_LOG_ERROR = 1, TENON_LOG_WARNING = 2, TENON_LOG_INFO = 3, TENON_LOG_DEBUG = 4 };
/* Receives the lines of the log, on any thread, also at the same time. It must not call Tenon. */
typedef void (*tenon_log_sink)(void* context, int32_t level, const char* topic, const char* message);
/* Replaces the log on stderr. NULL restores it. A message in progress may still reach the old sink. */
TENON_C_API void tenon_set_log_sink(tenon_log_sink sink, void* context);

/* The most threads that ops use on devices that open later. Errors: INVALID_ARGUMENT (below 1), BUSY (a device is
 * open). */
TENON_C_API tenon_status tenon_set_num_threads(int32_t count, tenon_error** error);

/* ---- devices ---- */

typedef struct tenon_device_info {
  size_t size;
  const char* device;       /* "cuda:0": the name that every function takes */
  const char* provider;     /* "cuda" */
  const char* name;         /* "NVIDIA H200" */
  const char* device_class; /* "discrete", "integrated", "cpu", "software", "accelerator", "other" */
  int32_t usable;           /* 0: `reason` says why not, and `remedy` what to do */
  int32_t is_default;       /* 1: the device that NULL names */
  const char* reason;
  const char* remedy;
  uint64_t memory; /* bytes of its largest pool of memory; 0: unknown */
} tenon_device_info;

/* The devices of all providers at one moment. */
typedef struct tenon_device_list tenon_device_list;
TENON_C_API tenon_status tenon_device_list_create(tenon_device_list** out, tenon_error** error);
TENON_C_API size_t tenon_device_list_count(const tenon_device_list* list);
/* Errors: INVALID_ARGUMENT (there is no device `index`). */
TENON_C_API tenon_status tenon_device_list_get(const tenon_device_list* list, size_t index, tenon_device_info* info,
                                               tenon_error** error);
TENON_C_API void tenon_device_list_free(tenon_device_list* list);

/* The report of `tenon doctor --json`: every plug-in that was found and why it was refused, the devices, the settings
 * and their sources. */
TENON_C_API tenon_status tenon_doctor(char** out_json, tenon_error** error);

/* Waits for all work of the device, then reports the first error that nobody has read. `device` may be NULL: the
 * default device. */
TENON_C_API tenon_status tenon_device_synchronize(const char* device, tenon_error** error);

typedef struct tenon_memory_info {
  size_t size;
  uint64_t live;     /* bytes handed out */
  uint64_t peak;     /* the most that was ever handed out */
  uint64_t cached;   /* bytes kept for reuse */
  uint64_t reserved; /* bytes taken from the device */
} tenon_memory_info;
TENON_C_API tenon_status tenon_device_memory(const char* device, tenon_memory_info* info, tenon_error** error);
/* Waits for the device, then returns the memory that is kept for reuse. */
TENON_C_API tenon_status tenon_device_trim(const char* device, tenon_error** error);

/* ---- tensors ---- */

typedef int32_t tenon_dtype;
enum {
  TENON_BOOL = 1, /* one byte, 0 or 1 */
  TENON_I8 = 2,
  TENON_I16 = 3,
  TENON_I32 = 4,
  TENON_I64 = 5,
  TENON_U8 = 6,
  TENON_U16 = 7,
  TENON_U32 = 8,
  TENON_U64 = 9,
  TENON_F16 = 10,
  TENON_BF16 = 11,
  TENON_F32 = 12,
  TENON_F64 = 13,
  TENON_F8E4M3FN = 14,
  TENON_F8E5M2 = 15,
  TENON_I4 = 16, /* types of fewer than 8 bits are packed from the low bits up */
  TENON_U4 = 17,
  TENON_F8E4M3FNUZ = 20,
  TENON_F8E5M2FNUZ = 21,
  TENON_F8E8M0 = 22,
  TENON_F6E2M3 = 23,
  TENON_F6E3M2 = 24,
  TENON_F4E2M1 = 25,
  TENON_I2 = 26,
  TENON_U2 = 27
};

enum { TENON_MAX_RANK = 8 };

/* A tensor: a counted reference to elements on a device. */
typedef struct tenon_tensor tenon_tensor;

typedef struct tenon_tensor_info {
  size_t size;
  tenon_dtype dtype;
  int32_t rank;
  int64_t dims[TENON_MAX_RANK];
  int64_t strides[TENON_MAX_RANK]; /* in elements */
  int64_t elements;
  int64_t bytes;      /* of the elements, row-major and without gaps */
  const char* device; /* "cuda:0"; valid while the tensor lives */
} tenon_tensor_info;

/* A tensor without values yet. `device` may be NULL: the default device. `dims` has `rank` sizes and may be NULL if the
 * rank is 0. Errors: INVALID_ARGUMENT (a rank outside 0 to 8, a negative size, no such dtype), NOT_FOUND (no such
 * device), OUT_OF_DEVICE_MEMORY. */
TENON_C_API tenon_status tenon_tensor_empty(tenon_dtype dtype, int32_t rank, const int64_t* dims, const char* device,
                                            tenon_tensor** out, tenon_error** error);
/* A tensor with a copy of the row-major elements at `data`. `bytes` must be the size of all elements. */
TENON_C_API tenon_status tenon_tensor_copy(const void* data, size_t bytes, tenon_dtype dtype, int32_t rank,
                                           const int64_t* dims, const char* device, tenon_tensor** out,
                                           tenon_error** error);
/* A tensor on the host device over memory of the caller, without a copy. `strides` counts elements; NULL means
 * row-major. `deleter` (may be NULL) runs once with `context` when the memory is no longer used, on any thread. It does
 * not run if the function fails. */
TENON_C_API tenon_status tenon_tensor_borrow(void* data, tenon_dtype dtype, int32_t rank, const int64_t* dims,
                                             const int64_t* strides, void (*deleter)(void* context), void* context,
                                             tenon_tensor** out, tenon_error** error);
/* Another reference to the same tensor. */
TENON_C_API tenon_tensor* tenon_tensor_share(const tenon_tensor* tensor);
TENON_C_API void tenon_tensor_free(tenon_tensor* tensor);

TENON_C_API tenon_status tenon_tensor_describe(const tenon_tensor* tensor, tenon_tensor_info* info,
                                               tenon_error** error);
/* Copies the elements, row-major, to `data`, after the work that computes them. `bytes` must be the size of all
 * elements. Errors: the failure of the op that computes the tensor. */
TENON_C_API tenon_status tenon_tensor_read(const tenon_tensor* tensor, void* data, size_t bytes, tenon_error** error);
/* Overwrites the elements with the row-major ones at `data`, which may change when the function returns. */
TENON_C_API tenon_status tenon_tensor_write(const tenon_tensor* tensor, const void* data, size_t bytes,
                                            tenon_error** error);
/* The address of the first element, after the work that computes it; NULL if the host cannot reach the memory. Valid
 * while the tensor lives. */
TENON_C_API tenon_status tenon_tensor_data(const tenon_tensor* tensor, void** out, tenon_error** error);
/* Waits for the elements without reading them. Errors: as tenon_tensor_read. */
TENON_C_API tenon_status tenon_tensor_wait(const tenon_tensor* tensor, tenon_error** error);
/* The tensor on another device, or with another dtype; the same tensor if nothing changes. */
TENON_C_API tenon_status tenon_tensor_to_device(const tenon_tensor* tensor, const char* device, tenon_tensor** out,
                                                tenon_error** error);
TENON_C_API tenon_status tenon_tensor_to_dtype(const tenon_tensor* tensor, tenon_dtype dtype, tenon_tensor** out,
                                               tenon_error** error);

/* DLPack (github.com/dmlc/dlpack): shares memory with other libraries. The consumer of *out calls its deleter. */
struct DLManagedTensor;
TENON_C_API tenon_status tenon_tensor_to_dlpack(const tenon_tensor* tensor, struct DLManagedTensor** out,
                                                tenon_error** error);
/* A tensor over `managed`, whose deleter runs when the memory is no longer used. On a failure the caller keeps it. */
TENON_C_API tenon_status tenon_tensor_from_dlpack(struct DLManagedTensor* managed, tenon_tensor** out,
                                                  tenon_error** error);

/* ---- ops by name ---- */

enum {
  TENON_ARGUMENT_NONE = 0,     /* Python's None */
  TENON_ARGUMENT_TENSOR = 1,   /* value.tensor */
  TENON_ARGUMENT_BOOL = 2,     /* value.integer, 0 or 1 */
  TENON_ARGUMENT_INTEGER = 3,  /* value.integer */
  TENON_ARGUMENT_NUMBER = 4,   /* value.number */
  TENON_ARGUMENT_INTEGERS = 5, /* value.integers, count */
  TENON_ARGUMENT_NUMBERS = 6,  /* value.numbers, count */
  TENON_ARGUMENT_TENSORS = 7,  /* value.tensors, count */
  TENON_ARGUMENT_DTYPE = 8,    /* value.integer, a tenon_dtype */
  TENON_ARGUMENT_DEVICE = 9,   /* value.text */
  TENON_ARGUMENT_TEXT = 10     /* value.text */
};

/* One argument of an op. This struct never changes. */
typedef struct tenon_argument {
  const char* name; /* NULL: a positional argument; these precede the named ones */
  int32_t kind;     /* TENON_ARGUMENT_... */
  uint32_t count;   /* length of a list */
  union {
    const tenon_tensor* tensor;
    int64_t integer;
    double number;
    const char* text;
    const int64_t* integers;
    const double* numbers;
    const tenon_tensor* const* tensors;
  } value;
} tenon_argument;

/* An op; it lives as long as the process. */
typedef struct tenon_op tenon_op;
/* Errors: NOT_FOUND, with the nearest name. */
TENON_C_API tenon_status tenon_op_find(const char* name, const tenon_op** out, tenon_error** error);
/* Calls an op as Python does: tenon help and the op reference list the signatures. Writes the results to `outputs`,
 * which has room for `capacity` handles, and their number to *count. Errors: INVALID_ARGUMENT (no signature accepts the
 * arguments, more results than `capacity`); those of the op. */
TENON_C_API tenon_status tenon_op_call(const tenon_op* op, const tenon_argument* arguments, size_t argument_count,
                                       tenon_tensor** outputs, size_t capacity, size_t* count, tenon_error** error);

/* ---- cancellation ---- */

/* A request to stop. It cannot be withdrawn: new work takes a new one. */
typedef struct tenon_cancellation tenon_cancellation;
TENON_C_API tenon_status tenon_cancellation_create(tenon_cancellation** out, tenon_error** error);
TENON_C_API void tenon_cancellation_cancel(const tenon_cancellation* cancellation);
TENON_C_API void tenon_cancellation_free(tenon_cancellation* cancellation);

/* ---- programs: functions that are recorded once and run as one ---- */

typedef struct tenon_program tenon_program;

/* The function of a program. It calls ops on `inputs` and writes a handle to each of `outputs`, which the program then
 * owns. A status other than TENON_OK fails the run; set *error with tenon_error_create, or leave it NULL. */
typedef tenon_status (*tenon_function)(void* context, const tenon_tensor* const* inputs, size_t input_count,
                                       tenon_tensor** outputs, size_t output_count, tenon_error** error);
/* An error of a tenon_function. `message` is a sentence. NULL if memory is exhausted. */
TENON_C_API tenon_error* tenon_error_create(tenon_status code, const char* message);

typedef struct tenon_program_options {
  size_t size;
  const char* name; /* in errors; NULL: "a program" */
  int32_t exact;    /* 1: results have the bits of the ops called one by one */
  int32_t fuse;     /* TENON_DEFAULT, TENON_ON, TENON_OFF: one kernel for several ops */
  int32_t wait;     /* TENON_ON: the first run waits for compiled kernels; TENON_OFF: it does not */
  int32_t unused;
  void (*release)(void* context); /* runs once when the program is freed; may be NULL */
} tenon_program_options;

/* A program of `function`, which has `output_count` results. `options` may be NULL. The function runs at the first run
 * of each kind of inputs (dtypes, ranks, devices), and once more to compare. Later runs launch what was recorded, for
 * any sizes. If it fails, `release` does not run. */
TENON_C_API tenon_status tenon_program_create(tenon_function function, void* context, size_t output_count,
                                              const tenon_program_options* options, tenon_program** out,
                                              tenon_error** error);
TENON_C_API tenon_status tenon_program_run(const tenon_program* program, const tenon_tensor* const* inputs,
                                           size_t input_count, tenon_tensor** outputs, size_t output_count,
                                           const tenon_cancellation* cancellation, tenon_error** error);
TENON_C_API void tenon_program_free(tenon_program* program);

/* ---- models ---- */

typedef struct tenon_model tenon_model;

enum { TENON_SHAPES_EXACT = 0, TENON_SHAPES_RANK = 1, TENON_SHAPES_ANY = 2 };
enum {
  TENON_PRECISION_DEFAULT = 0,
  TENON_PRECISION_RELAXED = 1,
  TENON_PRECISION_PORTABLE = 2,
  TENON_PRECISION_FULL = 3
};

typedef struct tenon_model_options {
  size_t size;
  const char* device;        /* NULL: the default device */
  const char* external_data; /* the folder of external data; NULL: the folder of the file */
  int32_t eager;             /* 1: no recording; every run translates and runs node after node */
  int32_t exact;             /* 1: only passes that keep every bit of the results */
  int32_t fuse;              /* TENON_DEFAULT, TENON_ON, TENON_OFF: one kernel for several nodes */
  int32_t wait;              /* TENON_ON: the first run waits for compiled kernels; TENON_OFF: it does not */
  int32_t shapes;            /* TENON_SHAPES_...: how strictly inputs must match the declared shapes */
  int32_t precision;         /* TENON_PRECISION_...: how exact the results must be */
  uint32_t kept_graphs;      /* prepared graphs that the model keeps, one per signature of inputs; 0: 16 */
  uint32_t unused;
} tenon_model_options;

/* Loads an ONNX model. `options` may be NULL. Errors: NOT_FOUND (no such file), INVALID_ARGUMENT (no model, or a
 * malformed one), UNSUPPORTED (the message has a line for each node that cannot run). */
TENON_C_API tenon_status tenon_model_load(const char* path, const tenon_model_options* options, tenon_model** out,
                                          tenon_error** error);
/* Loads a model from memory, which may be freed when the function returns. */
TENON_C_API tenon_status tenon_model_load_bytes(const void* data, size_t bytes, const tenon_model_options* options,
                                                tenon_model** out, tenon_error** error);
TENON_C_API void tenon_model_free(tenon_model* model);

/* What loading would refuse, as JSON: {"inputs": [...], "outputs": [...], "refusals": ["..."], "nodes": 12, ...}. An
 * empty list of refusals means that the model loads. */
TENON_C_API tenon_status tenon_model_check(const char* path, const tenon_model_options* options, char** out_json,
                                           tenon_error** error);

enum {
  TENON_VALUE_NONE = 0,
  TENON_VALUE_TENSOR = 1,
  TENON_VALUE_STRINGS = 2,
  TENON_VALUE_SEQUENCE = 3,
  TENON_VALUE_OPTIONAL = 4, /* an optional without a value */
  TENON_VALUE_MAP = 5
};

/* One size of an input or output. This struct never changes. */
typedef struct tenon_dim {
  int64_t size;     /* -1: open */
  const char* name; /* of an open size; may be "" */
} tenon_dim;

typedef struct tenon_value_info {
  size_t size;
  const char* name;
  int32_t kind; /* TENON_VALUE_... */
  int32_t is_optional;
  tenon_dtype dtype; /* 0: another kind of value */
  int32_t rank;      /* -1: any */
  const tenon_dim* dims;
  const char* text; /* "f32[batch, 3, 224, 224]" */
} tenon_value_info;

enum {
  TENON_INPUTS = 0,  /* the inputs that a run must get */
  TENON_OUTPUTS = 1, /* the outputs */
  TENON_DEFAULTS = 2 /* inputs that have a value in the file, which a run may replace */
};
/* The number of inputs or outputs; 0 for another `which`. */
TENON_C_API size_t tenon_model_count(const tenon_model* model, int32_t which);
/* Describes one of them. The texts are valid while the model lives. Errors: INVALID_ARGUMENT (no such index). */
TENON_C_API tenon_status tenon_model_describe(const tenon_model* model, int32_t which, size_t index,
                                              tenon_value_info* info, tenon_error** error);
/* The value of a key of the metadata that the authors wrote into the file; NULL if there is none. */
TENON_C_API const char* tenon_model_metadata(const tenon_model* model, const char* key);

typedef struct tenon_run_options {
  size_t size;
  const tenon_cancellation* cancellation; /* may be NULL */
  /* One tensor per output, into which the output is written, or NULL for a new one. NULL: all outputs are new. */
  const tenon_tensor* const* bound;
  /* Not NULL: gets a list of the launches as JSON, with the implementation and the reason; the caller frees it. */
  char** report;
} tenon_run_options;

/* Runs the model. `names` has the name of each input, or is NULL if the inputs have the order of TENON_INPUTS.
 * `outputs` gets the outputs in their order; `output_count` must be their number. `options` may be NULL. On a device
 * with a queue the function returns when the work is submitted: reading an output waits for it and reports its failure.
 * Errors: INVALID_ARGUMENT (a missing or unknown input, a wrong dtype or shape); those of the nodes; CANCELLED. */
TENON_C_API tenon_status tenon_model_run(const tenon_model* model, const char* const* names,
                                         const tenon_tensor* const* inputs, size_t input_count, tenon_tensor** outputs,
                                         size_t output_count, const tenon_run_options* options, tenon_error** error);

/* Receives the end of an asynchronous run, on a thread of Tenon. The outputs are computed; the callee owns them and
 * `error`, which is NULL if `status` is TENON_OK. It may call Tenon. */
typedef void (*tenon_run_done)(void* context, tenon_status status, tenon_tensor** outputs, size_t output_count,
                               tenon_error* error);
/* Like tenon_model_run, on a thread of Tenon: returns at once, and calls `done` once. The inputs and the names may be
 * freed when the function returns; the cancellation, bound tensors and the place of the report must live until `done`
 * runs. If this function fails, `done` does not run. */
TENON_C_API tenon_status tenon_model_run_async(const tenon_model* model, const char* const* names,
                                               const tenon_tensor* const* inputs, size_t input_count,
                                               const tenon_run_options* options, tenon_run_done done, void* context,
                                               tenon_error** error);

/* ---- values that are not tensors of numbers ---- */

/* A tensor of numbers or strings, a sequence of values, a map, or an empty optional. It never changes. */
typedef struct tenon_value tenon_value;

TENON_C_API tenon_status tenon_value_from_tensor(const tenon_tensor* tensor, tenon_value** out, tenon_error** error);
/* A tensor of strings in row-major order. `lengths` has the bytes of each string, or is NULL if they end with a zero.
 */
TENON_C_API tenon_status tenon_value_from_strings(int32_t rank, const int64_t* dims, const char* const* strings,
                                                  const size_t* lengths, size_t count, tenon_value** out,
                                                  tenon_error** error);
TENON_C_API tenon_status tenon_value_from_sequence(const tenon_value* const* elements, size_t count, tenon_value** out,
                                                   tenon_error** error);
/* A map from `keys` (strings or i64) to `values` (strings or numbers) of the same length. */
TENON_C_API tenon_status tenon_value_from_map(const tenon_value* keys, const tenon_value* values, tenon_value** out,
                                              tenon_error** error);
/* An empty optional. */
TENON_C_API tenon_status tenon_value_nothing(tenon_value** out, tenon_error** error);
TENON_C_API void tenon_value_free(tenon_value* value);

TENON_C_API int32_t tenon_value_kind(const tenon_value* value);
/* The number of strings or elements; 0 for other kinds. */
TENON_C_API size_t tenon_value_count(const tenon_value* value);
/* The functions below fail with INVALID_ARGUMENT if the value is of another kind, or has no such index. */
TENON_C_API tenon_status tenon_value_tensor(const tenon_value* value, tenon_tensor** out, tenon_error** error);
/* Writes the rank and, if `dims` is not NULL, at most 8 sizes of a tensor of numbers or strings. */
TENON_C_API tenon_status tenon_value_dims(const tenon_value* value, int32_t* rank, int64_t* dims, tenon_error** error);
/* The string `index`, which may hold zeros; `length` may be NULL. Valid while the value lives. */
TENON_C_API tenon_status tenon_value_string(const tenon_value* value, size_t index, const char** out, size_t* length,
                                            tenon_error** error);
TENON_C_API tenon_status tenon_value_element(const tenon_value* value, size_t index, tenon_value** out,
                                             tenon_error** error);
TENON_C_API tenon_status tenon_value_keys(const tenon_value* value, tenon_value** out, tenon_error** error);
TENON_C_API tenon_status tenon_value_values(const tenon_value* value, tenon_value** out, tenon_error** error);

/* Like tenon_model_run, for a model whose inputs or outputs are not all tensors of numbers. `bound` must be NULL. */
TENON_C_API tenon_status tenon_model_run_values(const tenon_model* model, const char* const* names,
                                                const tenon_value* const* inputs, size_t input_count,
                                                tenon_value** outputs, size_t output_count,
                                                const tenon_run_options* options, tenon_error** error);

#ifdef __cplusplus
}
#endif

#endif
