// Kernel modules, the optional part of sample.c (-DSAMPLE_MODULES=ON): the host passes kernels in C, and cc of this
// machine compiles them. MODULES.md, next to ep_api.h, says what a text may use. One thread runs each launch. Not shown
// here: storing binaries (host->blob_put), and several threads.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_BUFFERS 64
#define MOST_BYTES 65536  // limit for parameters and for local memory
#define SECONDS 30        // time limit of a compiler

// The type behind EP_FAULT_PARAMETER. It keeps the first fault of a launch.
struct fault_sink {
  int32_t raised, code, operand, reserved;
  int64_t value, limit;
};
typedef void entry_function(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local,
                            struct fault_sink* sink);
struct ep_kernel {
  const ep_host* host;
  char name[64];
  uint64_t flags;
  entry_function* run;  // an entry without faults ignores the last argument
};
struct ep_module {
  const ep_host* host;
  void* library;
  uint32_t count;
  ep_kernel kernels[];
};

// Precedes each text: the types of stdint.h without the header, and faults. The constants follow.
static const char words_in_front[] =
    "typedef __INT8_TYPE__ int8_t; typedef __INT16_TYPE__ int16_t; typedef __INT32_TYPE__ int32_t;\n"
    "typedef __INT64_TYPE__ int64_t; typedef __UINT8_TYPE__ uint8_t; typedef __UINT16_TYPE__ uint16_t;\n"
    "typedef __UINT32_TYPE__ uint32_t; typedef __UINT64_TYPE__ uint64_t; typedef __INTPTR_TYPE__ intptr_t;\n"
    "typedef __SIZE_TYPE__ size_t;\n"
    "struct ep_fault_sink { int32_t raised, code, operand, reserved; int64_t value, limit; };\n"
    "#define EP_FAULT_PARAMETER struct ep_fault_sink* ep_sink\n"
    "#define ep_raise(c, o, v, l) (ep_sink->raised++ ? (void)0 : (void)(ep_sink->code = (c), ep_sink->operand = (o), "
    "ep_sink->value = (v), ep_sink->limit = (l)))\n";

static ep_status dialect_info(ep_device* device, uint32_t index, ep_dialect_info* out_info, ep_error** error) {
  if (index != 0) return fail(device->host, error, EP_STATUS_NOT_FOUND, "sample compiles one dialect, C.");
  ep_dialect_info info = {.struct_type = EP_STRUCT_DIALECT_INFO, .dialect = EP_DIALECT_C, .compiler = text("cc")};
  info.features = EP_DIALECT_FEATURE_F64 | EP_DIALECT_FEATURE_I64;
  info.features |= EP_DIALECT_FEATURE_STORE_8 | EP_DIALECT_FEATURE_STORE_16;
  info.group_items = 1;
  info.greatest_buffers = MOST_BUFFERS;
  info.shared_bytes = info.parameter_bytes = MOST_BYTES;
  for (int axis = 0; axis < 3; axis++) info.group_dims[axis] = 1, info.groups[axis] = axis == 0 ? INT64_MAX : 1;
  hand_out(out_info, &info, sizeof info);
  return EP_STATUS_OK;
}

// Refuses unknown parts: a part that a later version adds may change the meaning.
static ep_status check_text(const ep_host* host, const ep_module_desc* desc, ep_error** error) {
  const uint64_t known = EP_ENTRY_FLAG_FAULTS | EP_ENTRY_FLAG_WORKSPACE | EP_ENTRY_FLAG_SCRATCH;
  if (desc->dialect != EP_DIALECT_C || desc->next)
    return fail(host, error, EP_STATUS_UNSUPPORTED, "sample compiles C, not dialect %d.", desc->dialect);
  for (uint32_t i = 0; i < desc->entry_count; i++) {
    const ep_module_entry* entry = &desc->entries[i];
    if ((entry->flags & ~known) || entry->buffer_count > MOST_BUFFERS - 2 || entry->name.size >= 64 ||
        entry->parameter_bytes > MOST_BYTES || entry->shared_bytes > MOST_BYTES)
      return fail(host, error, EP_STATUS_UNSUPPORTED,
                  "Entry %u has flags 0x%llx, %u buffers, %u and %u bytes of parameters and local memory.", i,
                  (unsigned long long)entry->flags, entry->buffer_count, entry->parameter_bytes, entry->shared_bytes);
  }
  return EP_STATUS_OK;
}

// Writes the complete source. Floats are hexadecimal, so that they are exact.
static void write_source(FILE* file, const ep_module_desc* desc) {
  fputs(words_in_front, file);
  for (uint32_t i = 0; i < desc->constant_count; i++) {
    const ep_module_constant* one = &desc->constants[i];
    const ep_scalar v = one->value;
    fprintf(file, "#define %.*s ", (int)one->name.size, one->name.data);
    if (v.dtype == EP_DTYPE_f64 || v.dtype == EP_DTYPE_f32 || v.dtype == EP_DTYPE_f16 || v.dtype == EP_DTYPE_bf16)
      fprintf(file, v.value.f64 - v.value.f64 == 0 ? "(%a%s)\n" : "((double)%g%s)\n", v.value.f64,
              v.dtype == EP_DTYPE_f64 ? "" : "f");
    else
      fprintf(file, "((%sint64_t)%lluull)\n", v.dtype >= EP_DTYPE_u8 && v.dtype <= EP_DTYPE_u64 ? "u" : "",
              (unsigned long long)v.value.u64);
  }
  fputs("#line 1 \"kernel\"\n", file);
  fwrite(desc->text.data, 1, desc->text.size, file);
}

// Runs cc in its own process, and kills it if it hangs or the host wants to stop. Its standard input and output are
// `in` and `said`.
static ep_status run_compiler(const ep_host* host, int in, int said, const char* library, ep_error** error) {
  char* words[] = {"cc",
                   "-std=gnu11",
                   "-O2",
                   "-fPIC",
                   "-shared",
                   "-ffp-contract=off",
                   "-fno-math-errno",
                   "-fwrapv",
                   "-fno-strict-aliasing",
                   "-Wl,-Bsymbolic",
                   "-o",
                   (char*)library,
                   "-x",
                   "c",
                   "-",
                   "-lm",
                   NULL};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in, 0);
  posix_spawn_file_actions_adddup2(&files, said, 1);
  posix_spawn_file_actions_adddup2(&files, said, 2);
  pid_t child;
  extern char** environ;
  const int started = posix_spawnp(&child, "cc", &files, NULL, words, environ);
  posix_spawn_file_actions_destroy(&files);
  if (started) return fail(host, error, EP_STATUS_UNSUPPORTED, "cc cannot be run: %s.", strerror(started));
  int status = 0;
  for (int looks = 0; waitpid(child, &status, WNOHANG) == 0; looks++) {
    nanosleep(&(struct timespec){0, 2000000}, NULL);
    const int stop = host->cancel_requested(host);
    if (!stop && looks < SECONDS * 500) continue;
    kill(child, SIGKILL), waitpid(child, NULL, 0);
    return fail(host, error, stop ? EP_STATUS_CANCELLED : EP_STATUS_UNSUPPORTED, "cc was stopped.");
  }
  return status == 0 ? EP_STATUS_OK : EP_STATUS_INVALID_ARGUMENT;
}

// Passes the complete output of cc to the host, and puts the line of the first error into our error.
static ep_status report(const ep_host* host, const ep_module_desc* desc, int said, ep_status status, ep_error** error) {
  struct stat file = {0};
  fstat(said, &file);
  char* words = calloc(1, (size_t)file.st_size + 1);
  if (!words) return fail(host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "There is no memory for the output of cc.");
  if (pread(said, words, (size_t)file.st_size, 0) > 0 && desc->diagnose) desc->diagnose(desc->context, text(words));
  char* line = strstr(words, ": error: ");
  while (line && line > words && line[-1] != '\n') line--;
  if (status == EP_STATUS_INVALID_ARGUMENT && !line)
    status = fail(host, error, EP_STATUS_UNSUPPORTED, "cc failed: %.200s", words);
  else if (status == EP_STATUS_INVALID_ARGUMENT)
    fail(host, error, status, "cc refuses the text: %.*s", (int)strcspn(line, "\n"), line);
  free(words);
  return status;
}

// Compiles into the file `path`, in our own temporary folder.
static ep_status compile(const ep_host* host, const ep_module_desc* desc, const char* path, ep_error** error) {
  const int said = memfd_create("said", MFD_CLOEXEC);
  FILE* source = tmpfile();
  ep_status status = EP_STATUS_UNSUPPORTED;
  if (said < 0 || !source) {
    fail(host, error, status, "The source text cannot be written: %s.", strerror(errno));
  } else {
    write_source(source, desc);
    rewind(source);
    status = run_compiler(host, fileno(source), said, path, error);
    if (status != EP_STATUS_CANCELLED && status != EP_STATUS_UNSUPPORTED)
      status = report(host, desc, said, status, error);
  }
  if (said >= 0) close(said);
  if (source) fclose(source);
  return status;
}

static void module_destroy(ep_device* device, ep_module* module) {
  if (!module) return;
  if (module->library) dlclose(module->library);
  device->host->release(device->host, module, sizeof *module + module->count * sizeof module->kernels[0]);
}

// dlsym also finds symbols of the C library, so this checks that the entry is in `library`.
static entry_function* find_entry(void* library, const char* name, const char* path) {
  Dl_info info;
  void* address = dlsym(library, name);
  entry_function* run = NULL;
  if (address && dladdr(address, &info) && strcmp(info.dli_fname, path) == 0) memcpy(&run, &address, sizeof run);
  return run;
}

static ep_status load(ep_device* device, const ep_module_desc* desc, const char* path, ep_module** out,
                      ep_error** error) {
  const ep_host* host = device->host;
  ep_module* module = make(host, sizeof *module + desc->entry_count * sizeof(ep_kernel), error);
  if (!module) return EP_STATUS_OUT_OF_HOST_MEMORY;
  module->host = host;
  module->count = desc->entry_count;
  module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  for (uint32_t i = 0; i < desc->entry_count; i++) {
    ep_kernel* kernel = &module->kernels[i];
    kernel->host = host;
    kernel->flags = desc->entries[i].flags;
    memcpy(kernel->name, desc->entries[i].name.data, desc->entries[i].name.size);
    kernel->run = module->library ? find_entry(module->library, kernel->name, path) : NULL;
    if (kernel->run) continue;
    fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The text does not define the entry %s.", kernel->name);
    return module_destroy(device, module), EP_STATUS_INVALID_ARGUMENT;
  }
  *out = module;
  return EP_STATUS_OK;
}

static ep_status module_create(ep_device* device, const ep_module_desc* desc, ep_module** out_module,
                               ep_module_info* out_info, ep_error** error) {
  ep_status status = check_text(device->host, desc, error);
  if (status != EP_STATUS_OK) return status;
  char folder[] = "/tmp/sample-XXXXXX", path[64];
  if (!mkdtemp(folder))
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, "A temporary folder cannot be made: %s.", strerror(errno));
  snprintf(path, sizeof path, "%s/kernel.so", folder);
  ep_module* module = NULL;
  status = compile(device->host, desc, path, error);
  if (status == EP_STATUS_OK) status = load(device, desc, path, &module, error);
  unlink(path), rmdir(folder);  // a loaded library stays usable
  if (status != EP_STATUS_OK) return status;
  ep_module_info info = {.struct_type = EP_STRUCT_MODULE_INFO, .host_bytes = sizeof *module};
  hand_out(out_info, &info, sizeof info);
  *out_module = module;
  return EP_STATUS_OK;
}

static ep_status kernel_get(ep_module* module, ep_string entry, ep_kernel** out_kernel, ep_kernel_info* out_info,
                            ep_error** error) {
  ep_kernel_info info = {.struct_type = EP_STRUCT_KERNEL_INFO};
  for (uint32_t i = 0; i < module->count; i++) {
    ep_kernel* kernel = &module->kernels[i];
    if (strlen(kernel->name) != entry.size || memcmp(kernel->name, entry.data, entry.size) != 0) continue;
    hand_out(out_info, &info, sizeof info);
    return *out_kernel = kernel, EP_STATUS_OK;
  }
  return fail(module->host, error, EP_STATUS_NOT_FOUND, "There is no entry %.*s.", (int)entry.size, entry.data);
}

static ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch,
                               ep_fault* out_fault, ep_error** error) {
  void* buffers[MOST_BUFFERS];
  _Alignas(64) char local[MOST_BYTES];
  uint32_t count = 0;
  for (; count < launch->buffer_count; count++)
    buffers[count] = launch->buffers[count].memory ? at(launch->buffers[count]) : NULL;
  if (launch->workspace.memory) buffers[count++] = at(launch->workspace);
  if (launch->scratch.memory) buffers[count++] = at(launch->scratch);
  struct fault_sink sink = {0};
  fenv_t callers;
  fegetenv(&callers);
  fesetenv(FE_DFL_ENV);
  kernel->run(buffers, launch->parameters, 0, (int64_t)launch->groups[0], local, &sink);
  fesetenv(&callers);
  (void)stream, (void)error;
  if (!sink.raised) return EP_STATUS_OK;
  *out_fault = (ep_fault){launch->tag, sink.code, sink.operand, sink.value, sink.limit, 0};
  return EP_STATUS_FAULT;
}

static void fill_modules(ep_device_ops* ops) {
  ops->dialect_info = dialect_info;
  ops->module_create = module_create;
  ops->module_destroy = module_destroy;
  ops->kernel_get = kernel_get;
  ops->kernel_launch = kernel_launch;
}
