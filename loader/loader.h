// The loader: finds device providers, decides which to trust, loads and negotiates with them, and opens their devices.
//
// It knows nothing of tensors. Nothing happens before the first call, and naming a provider loads only that provider. A
// refused plug-in is skipped and explained; it never affects other plug-ins.
//
// Threads: every function may be called from any thread. A log sink and a provider's own code must not call back in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ep_api/ep_api.h"
#include "loader/settings/settings.h"
#include "primitives/accuracy/accuracy.h"
#include "primitives/status/status.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon::loader {

struct MemoryPool {
  uint64_t flags = 0;  // EP_POOL_FLAG_*
  uint64_t size = 0;
  uint64_t minimum_alignment = 1;
  uint64_t preferred_block = 0;
  uint64_t largest_allocation = 0;   // 0 unlimited
  uint64_t maximum_allocations = 0;  // 0 unlimited
  uint64_t copy_granularity = 1;     // bytes
};

// A device's description of itself (ep_device_info), checked, and copied so that it outlives the provider.
struct DeviceInfo {
  std::string name, fingerprint;
  std::string unusable_reason, remedy;  // empty: usable
  int32_t device_class = 0;             // EP_DEVICE_CLASS_*
  uint64_t flags = 0;                   // EP_DEVICE_FLAG_*
  uint64_t dtypes = 0;                  // bit 1 << dtype
  std::array<uint8_t, 16> uuid{};       // all zero: none
  std::array<int64_t, 4> pci{-1, -1, -1, -1};
  uint32_t threads = 0;
  Accuracy accuracy;
  std::vector<MemoryPool> pools;
  // Bits 1 << EP_HANDLE_*: what the device imports, and in which contexts it opens.
  uint64_t memory_handles = 0, stream_handles = 0, semaphore_handles = 0, device_handles = 0;
  int32_t native_memory = 0;  // EP_HANDLE_* of memory_native_handle; 0: unknown

  bool synchronous() const { return (flags & EP_DEVICE_FLAG_SYNCHRONOUS) != 0; }
  bool usable() const { return unusable_reason.empty(); }
};

struct ListedDevice {
  std::string spelling;  // "cpu:0"
  std::string provider;
  uint32_t index = 0;
  DeviceInfo info;
  std::string same_as;  // the earlier device (of another provider) that is the same hardware; empty: none
};

// An open device. It lives until close_device or shutdown_all. `ops` is a full-size copy: optional slots that the
// provider does not have are NULL, required slots are not.
struct OpenDevice {
  std::string spelling, provider;
  uint32_t index = 0;
  DeviceInfo info;
  ep_device* handle = nullptr;
  ep_device_ops ops{};
};

// How far a candidate came. A refused candidate keeps the stage that refused it. The stage `probed` precedes loading: a
// child process has loaded the file and listed its devices, if that was necessary.
enum class Stage : uint8_t { found, trusted, note, probed, loaded, negotiated, enumerated, usable, chosen };
std::string_view stage_name(Stage stage);

// One file (or registered function) that could be a provider, and how far it came.
struct Candidate {
  std::string provider;  // the <name> of libtenon_<name>.so
  std::string path;      // empty: registered by the application
  std::string source;    // "TENON_PLUGIN_PATH", "beside the library", ...
  std::string version, toolchain;
  Stage stage = Stage::found;
  Code code = Code::ok;
  std::string sentence;  // the error, or the list of its devices
  std::string remedy;
  std::vector<ListedDevice> devices;
  uint32_t kind = EP_PLUGIN_KIND_DEVICES;  // EP_PLUGIN_KIND_*, set once its note was read
};

// A folder of the search, and how many candidates it holds.
struct SearchedFolder {
  std::string path, source;
  uint32_t candidates = 0;
  Status status;  // why it was not searched
};

// Opens the device that `spelling` names: "cpu", "cuda:1", "vulkan:uuid=...", "cuda:pci=0000:01:00.0", "pci=...". A
// provider's name alone means its best usable device. "" is the default device: the setting `device`, else the first
// discrete, integrated or CPU device, never a software device. The same device returns the same pointer. Loads only as
// many providers as necessary. Errors: invalid settings or spelling; nothing matches (the message lists the existing
// devices and why each candidate that could have matched was refused).
Result<OpenDevice*> open_device(std::string_view spelling);

// Opens the device that `spelling` names in a context of the application. `desc` is borrowed for the call. Errors:
// busy, if the device is already open; unsupported, if it cannot be opened in a context of that type; the errors of
// open_device and of the provider.
Result<OpenDevice*> adopt_device(std::string_view spelling, const ep_adopt_desc& desc);

// The names of the handle types in `mask` (bits 1 << EP_HANDLE_*): "opaque_fd and vk_buffer"; "none" for 0.
std::string handle_names(uint64_t mask);

// The canonical spelling ("cuda:1") of the device that open_device would open.
Result<std::string> resolve_device(std::string_view spelling);

// Every device of every allowed provider, usable or not. Loads all these providers.
std::vector<ListedDevice> list_devices();

// Every candidate, after all stages up to `until`. Stage::found opens no file; Stage::enumerated loads everything that
// can be loaded. A candidate that is already further stays there.
std::vector<Candidate> explain(Stage until = Stage::enumerated);
std::vector<SearchedFolder> searched_folders();

// A fact about this machine's devices, with a remedy (may be empty).
struct Finding {
  std::string sentence, remedy;
};
// The findings about this machine: devices that are the same hardware under several providers; the reason why no GPU
// can be used. Loads every allowed provider.
std::vector<Finding> findings();

// Adds a provider that is linked into the program. It precedes all files of that name. Call this before the first use
// of the name; a later call has no effect and is logged as an error.
void register_provider(std::string name, ep_plugin_query_fn query);

// Closes one device and makes the pointer invalid. The caller has destroyed everything made from the device.
void close_device(OpenDevice* device);
// Closes the devices of a provider and shuts the provider down. Its mapping stays, and the next call that needs the
// provider starts it again. The caller has destroyed everything made from its devices. The pointers from open_device
// stay readable; calls through them return CANCELLED. Errors: not_found if the provider is not loaded.
Status retire(std::string_view provider);
// Closes all devices, shuts down all plug-ins, and logs their leaks. Mappings stay. Later calls that need a provider
// fail.
void shutdown_all();

// Turns the result of a provider's function into a Status and releases `error` (which may be NULL). `doing` completes
// "while ...": "allocating 64 bytes on cpu:0". Returns ok for EP_STATUS_OK.
Status take_error(ep_status status, ep_error* error, std::string_view doing);

// Host memory that a provider holds through host->allocate. A provider that is not loaded holds none.
struct HostMemory {
  uint64_t blocks = 0, bytes = 0;
};
HostMemory provider_host_memory(std::string_view provider);
// The bytes that the provider reported through host->device_memory_report.
int64_t reported_device_memory(const OpenDevice& device);

// Shuts down and forgets registrations and arguments. The next call starts from the beginning.
void reset_for_tests();

}  // namespace tenon::loader

#pragma GCC visibility pop
