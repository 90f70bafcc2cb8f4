// The loader: finds device providers, decides which to trust, loads and negotiates with them, and opens their devices.
//
// It knows nothing of tensors. Nothing happens before the first call; naming a provider loads that one alone. A plug-in
// that is refused is skipped and explained, and never hides or hurts another.
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

// What a device says of itself (ep_device_info), checked, and copied so that it outlives the provider.
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
  int32_t native_memory = 0;  // EP_HANDLE_* of memory_native_handle; 0: not told

  bool synchronous() const { return (flags & EP_DEVICE_FLAG_SYNCHRONOUS) != 0; }
  bool usable() const { return unusable_reason.empty(); }
};

struct ListedDevice {
  std::string spelling;  // "cpu:0"
  std::string provider;
  uint32_t index = 0;
  DeviceInfo info;
  std::string same_as;  // the earlier device (of another provider) that is physically this one, or empty
};

// An open device. It lives until close_device or shutdown_all. `ops` is a full-size copy: optional slots that the
// provider left out are NULL, required ones are not.
struct OpenDevice {
  std::string spelling, provider;
  uint32_t index = 0;
  DeviceInfo info;
  ep_device* handle = nullptr;
  ep_device_ops ops{};
};

// How far a candidate came. A candidate that was refused keeps the stage that refused it.
// `probed` comes before the file is loaded: a child process has loaded it and asked it for its devices, if that was
// due.
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
  std::string sentence;  // what is wrong, or which devices it has
  std::string remedy;
  std::vector<ListedDevice> devices;
  uint32_t kind = EP_PLUGIN_KIND_DEVICES;  // EP_PLUGIN_KIND_*, as far as its note was read
};

// A folder of the search, and how many candidates it holds.
struct SearchedFolder {
  std::string path, source;
  uint32_t candidates = 0;
  Status status;  // why it was not searched
};

// Opens the device that `spelling` names: "cpu", "cuda:1", "vulkan:uuid=...", "cuda:pci=0000:01:00.0", "pci=...". The
// name of a provider alone means its best usable device. "" is the default: the setting `device`, else the first
// discrete, integrated or CPU device, never a software one. The same device gives the same pointer. Loads no more
// providers than it must. Errors: invalid settings or spelling; nothing matches (the message lists the devices there
// are, and why each candidate that could have matched was refused).
Result<OpenDevice*> open_device(std::string_view spelling);

// Opens the device that `spelling` names in a context of the application's. `desc` is borrowed for the call. Errors:
// busy, if the device is open already; unsupported, if it opens in no context of that type; those of open_device and
// of the provider.
Result<OpenDevice*> adopt_device(std::string_view spelling, const ep_adopt_desc& desc);

// The names of the handle types in `mask` (bits 1 << EP_HANDLE_*): "opaque_fd and vk_buffer"; "none" for 0.
std::string handle_names(uint64_t mask);

// The canonical spelling ("cuda:1") of the device that open_device would open.
Result<std::string> resolve_device(std::string_view spelling);

// Every device of every allowed provider, usable or not. Loads all these providers.
std::vector<ListedDevice> list_devices();

// Every candidate, taken as far as `until` (Stage::found looks at nothing; Stage::enumerated loads everything that
// can be loaded). Candidates already further stay where they are.
std::vector<Candidate> explain(Stage until = Stage::enumerated);
std::vector<SearchedFolder> searched_folders();

// A fact about this machine's devices, and what could be done about it (may be empty).
struct Finding {
  std::string sentence, remedy;
};
// The findings of this machine: devices that are one piece of hardware seen through several providers; that no GPU can
// be used, and why. Loads every allowed provider.
std::vector<Finding> findings();

// Adds a provider linked into the program; it comes before all files of that name. To be called before the first use of
// the name. A later call changes nothing and is logged as an error.
void register_provider(std::string name, ep_plugin_query_fn query);

// Closes one device. The caller has destroyed everything made from it. Afterwards the pointer is invalid.
void close_device(OpenDevice* device);
// Closes the devices of a provider and shuts the provider down. Its mapping stays, and the next call that needs the
// provider begins it anew. The caller has destroyed everything made from its devices. The pointers that open_device
// gave stay readable; calls through them answer CANCELLED. Errors: not_found if it is not loaded.
Status retire(std::string_view provider);
// Closes all devices, shuts all plug-ins down, and logs what they leaked. Mappings stay. Later calls that need a
// provider fail.
void shutdown_all();

// Turns the answer of a provider's function into a Status and releases `error` (which may be NULL). `doing` completes
// "while ...": "allocating 64 bytes on cpu:0". Ok for EP_STATUS_OK.
Status take_error(ep_status status, ep_error* error, std::string_view doing);

// Host memory that a provider holds through host->allocate. A provider that is not loaded holds none.
struct HostMemory {
  uint64_t blocks = 0, bytes = 0;
};
HostMemory provider_host_memory(std::string_view provider);
// The bytes that the provider reported through host->device_memory_report.
int64_t reported_device_memory(const OpenDevice& device);

// Shuts down, forgets registrations and arguments, and starts anew at the next call.
void reset_for_tests();

}  // namespace tenon::loader

#pragma GCC visibility pop
