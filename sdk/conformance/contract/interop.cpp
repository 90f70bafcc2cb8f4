// Handles of other APIs. The kit uses no other API. It imports the device's own memory by the handle from
// memory_native_handle, and tries imports that must fail.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ep_api/ep_names.h"
#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

constexpr int32_t no_such_type = 63;

bool takes(uint64_t mask, int32_t type) { return type > 0 && type < 64 && (mask >> type & 1) != 0; }
bool is_descriptor(int32_t type) { return type == EP_HANDLE_OPAQUE_FD || type == EP_HANDLE_DMA_BUF; }
bool is_event(int32_t type) { return type == EP_HANDLE_CUDA_EVENT || type == EP_HANDLE_CL_EVENT; }

ep_import_desc import_desc(int32_t type, uint64_t handle, uint64_t size) {
  auto desc = with_header<ep_import_desc>(EP_STRUCT_IMPORT_DESC);
  desc.handle_type = type;
  desc.handle = handle;
  desc.size = size;
  return desc;
}

size_t open_descriptors() {
  std::error_code ignored;
  const std::filesystem::directory_iterator folder("/proc/self/fd", ignored);
  return static_cast<size_t>(std::distance(begin(folder), std::filesystem::directory_iterator()));
}

// True if the device accepts the handles that its memory_native_handle returns.
bool imports_its_own(const Subject& subject) {
  return subject.ops.memory_import != nullptr && subject.ops.memory_native_handle != nullptr &&
         takes(subject.info.memory_handles, subject.info.native_memory);
}

Result<Memory> import_block(Subject& subject, const Memory& block, uint64_t size) {
  uint64_t handle = 0;
  TENON_RETURN_IF_ERROR(
      subject.call("memory_native_handle", subject.ops.memory_native_handle, subject.device, block.get(), &handle));
  if (handle == 0) return broken("R01", "memory_native_handle returned OK and gave 0");
  const ep_import_desc desc = import_desc(subject.info.native_memory, handle, size);
  ep_memory* made = nullptr;
  TENON_RETURN_IF_ERROR(subject.call("memory_import", subject.ops.memory_import, subject.device, &desc, &made));
  return Memory(&subject, made);
}

}  // namespace

Status exercise_interop(Subject& subject, const Stream& stream) {
  if (!imports_its_own(subject)) return {};
  constexpr uint64_t size = 4096;
  TENON_ASSIGN_OR_RETURN(const Memory block, subject.allocate(size));
  TENON_ASSIGN_OR_RETURN(const Memory imported, import_block(subject, block, size));
  const std::vector<uint8_t> sent = random_bytes(size, 31);
  std::vector<uint8_t> received(size, 0);
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(subject.upload(stream, block, 0, sent));
  TENON_RETURN_IF_ERROR(subject.download(stream, imported, 0, received));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  return sent == received ? Status() : broken("I01", "the memory imported by its handle is not the same memory");
}

Status interop_memory(Subject& subject) {
  if (!imports_its_own(subject)) return skipped("it imports no memory by a type of handle that the kit can make.");
  constexpr uint64_t size = 8192, part = 1024, at = 2048;
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Memory block, subject.allocate(size));
  TENON_ASSIGN_OR_RETURN(Memory imported, import_block(subject, block, size));
  TENON_ASSIGN_OR_RETURN(Memory again, import_block(subject, block, size - part));
  std::vector<uint8_t> expected = random_bytes(size, 41), received(size, 0), seen(part, 0);
  const std::vector<uint8_t> patch = random_bytes(part, 42);
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(subject.upload(stream, block, 0, expected));
  TENON_RETURN_IF_ERROR(subject.upload(stream, imported, at, patch));
  std::copy(patch.begin(), patch.end(), expected.begin() + at);
  TENON_RETURN_IF_ERROR(subject.download(stream, again, at, seen));
  TENON_RETURN_IF_ERROR(subject.download(stream, block, 0, received));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  if (received != expected) return broken("I01", "what was written into imported memory is not where the handle says");
  if (seen != patch) return broken("I01", "two imports of one handle are not the same memory");
  imported.reset();
  again.reset();
  TENON_RETURN_IF_ERROR(subject.download(stream, block, 0, received));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  if (received != expected) return broken("I01", "memory_free of what was imported changed the memory");
  return {};
}

namespace {

// One of the three import functions, tried with descriptions that it must refuse.
template <class Handle, class Function>
class Refusals {
 public:
  Refusals(Subject& subject, const char* name, Function function, uint64_t taken, uint64_t size)
      : subject_(subject), name_(name), function_(function), taken_(taken), size_(size) {}

  Status run() {
    int32_t foreign = 1;
    while (takes(taken_, foreign)) ++foreign;
    for (const int32_t type : {no_such_type, foreign}) {
      TENON_RETURN_IF_ERROR(refused(desc_of(type, 1), {Code::unsupported}, "a type that the device does not state"));
    }
    for (int32_t type = 1; type < no_such_type; ++type) {
      if (takes(taken_, type)) TENON_RETURN_IF_ERROR(refuse_type(type));
    }
    return {};
  }

 private:
  ep_import_desc desc_of(int32_t type, uint64_t handle) const {
    ep_import_desc desc = import_desc(type, handle, size_);
    if (std::is_same_v<Handle, ep_semaphore>) {
      desc.semaphore = is_event(type) ? EP_SEMAPHORE_EVENT : EP_SEMAPHORE_TIMELINE;
    }
    return desc;
  }

  Status refuse_type(int32_t type) {
    const uint64_t nothing = is_descriptor(type) ? ~uint64_t{0} : 0;
    TENON_RETURN_IF_ERROR(refused(desc_of(type, nothing), {Code::invalid_argument}, "a handle that names nothing"));
    if (!is_descriptor(type)) return {};
    const int file = memfd_create("tenon-conform", MFD_CLOEXEC);
    if (file == -1) return {};
    Status status = ftruncate(file, 1 << 16) == 0 ? refuse_file(type, file) : Status();
    close(file);
    if (!status.ok()) return status;
    return refused(desc_of(type, static_cast<uint64_t>(file)), {Code::invalid_argument}, "a closed file descriptor");
  }

  // Imports that must fail although the file descriptor is open. The descriptor must stay open, and the provider must
  // keep no duplicate.
  Status refuse_file(int32_t type, int file) {
    ep_import_desc other = desc_of(type, static_cast<uint64_t>(file));
    std::copy_n(subject_.info.uuid, sizeof other.uuid, other.uuid);
    other.uuid[0] ^= 0x5a;
    other.uuid[15] |= 1;
    const size_t before = open_descriptors();
    TENON_RETURN_IF_ERROR(refused(other, {Code::invalid_argument}, "the UUID of another device"));
    ep_import_desc flags = desc_of(type, static_cast<uint64_t>(file));
    flags.flags = UINT64_C(1) << 63;
    TENON_RETURN_IF_ERROR(refused(flags, {Code::unsupported}, "an unknown flag"));
    if (fcntl(file, F_GETFD) == -1) {
      return broken("I01", "{} failed and closed the caller's file descriptor", name_);
    }
    const size_t now = open_descriptors();
    return now == before ? Status() : broken("I01", "{} failed and left {} file descriptors open", name_, now - before);
  }

  Status refused(const ep_import_desc& desc, std::initializer_list<Code> codes, const char* what) {
    Poisoned<Handle*> out("the place for the handle");
    note_call(name_);
    ep_error* error = nullptr;
    const ep_status status = function_(subject_.device, &desc, &out.value, &error);
    const Status told = subject_.host.take(name_, status, error);
    const std::string tried = fmt::format("{} with {} (type {}, {})", name_, what, desc.handle_type,
                                          std::string_view(ep_handle_name(desc.handle_type)));
    if (status == EP_STATUS_OK) return broken("I02", "{} answered 'ok'", tried);
    if (!out.written().empty()) return broken("E01", "{} failed and wrote{}", tried, out.written());
    if (std::find(codes.begin(), codes.end(), told.code()) != codes.end()) return {};
    return broken("I02", "{} answered '{}', not '{}': {}", tried, code_name(told.code()), code_name(*codes.begin()),
                  without_rule(told).message());
  }

  Subject& subject_;
  const char* name_;
  Function function_;
  uint64_t taken_;
  uint64_t size_;
};

// device_adopt must fail for a context of a type that the device does not state, and for one without handles.
Status adoption_refusals(Subject& subject) {
  if (subject.plugin.device_adopt == nullptr) return {};
  for (int32_t type = 1; type <= no_such_type; ++type) {
    const bool stated = takes(subject.info.device_handles, type);
    if (!stated && type != no_such_type) continue;
    auto desc = with_header<ep_adopt_desc>(EP_STRUCT_ADOPT_DESC);
    desc.handle_type = type;
    Poisoned<ep_device*> device("out_device");
    auto ops = with_header<ep_device_ops>(EP_STRUCT_DEVICE_OPS);
    const Status answer = subject.call("device_adopt", subject.plugin.device_adopt, subject.plugin.plugin,
                                       subject.target.device, &desc, &device.value, &ops);
    const Code expected = stated ? Code::invalid_argument : Code::unsupported;
    if (!device.written().empty()) return broken("E01", "device_adopt failed and wrote out_device");
    if (answer.code() == expected) continue;
    return broken("I02", "device_adopt without handles (type {}, {}) answered '{}', not '{}'", type,
                  std::string_view(ep_handle_name(type)), code_name(answer.code()), code_name(expected));
  }
  return {};
}

template <class Handle, class Function>
Status refusals(Subject& subject, const char* name, Function function, uint64_t taken, uint64_t size) {
  return function == nullptr ? Status() : Refusals<Handle, Function>(subject, name, function, taken, size).run();
}

}  // namespace

Status interop_refusals(Subject& subject) {
  const ep_device_ops& ops = subject.ops;
  const ep_device_info& info = subject.info;
  if (ops.memory_import == nullptr && ops.stream_import == nullptr && ops.semaphore_import == nullptr &&
      subject.plugin.device_adopt == nullptr) {
    return skipped("it imports nothing of other APIs.");
  }
  TENON_RETURN_IF_ERROR(adoption_refusals(subject));
  TENON_RETURN_IF_ERROR(
      refusals<ep_memory>(subject, "memory_import", ops.memory_import, info.memory_handles, uint64_t{1} << 16));
  TENON_RETURN_IF_ERROR(refusals<ep_stream>(subject, "stream_import", ops.stream_import, info.stream_handles, 0));
  return refusals<ep_semaphore>(subject, "semaphore_import", ops.semaphore_import, info.semaphore_handles, 0);
}

}  // namespace tenon::conformance
