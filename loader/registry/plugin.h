// Plugin: a loaded and negotiated provider, its devices, and the open ones among them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loader/host/host.h"
#include "loader/library/library.h"
#include "loader/loader.h"

namespace tenon::loader {

// Once the library has been asked for its devices, it stays mapped forever. Not thread-safe: the caller holds the
// registry's lock.
class Plugin {
 public:
  // Negotiates with the plug-in. `library` is null for a provider that the application registered.
  static Result<std::unique_ptr<Plugin>> make(const std::string& provider, std::unique_ptr<Library> library,
                                              ep_plugin_query_fn query, const std::string& path,
                                              const std::map<std::string, std::string>& values);
  ~Plugin();

  // Asks the plug-in once for its devices and their descriptions. A device whose description fails is listed as
  // unusable.
  Status enumerate();
  const std::vector<ListedDevice>& devices() const { return devices_; }

  // Opens device `index`. If this shows a defect of the provider, the device stays unusable. After any other failure a
  // later attempt may succeed.
  Result<OpenDevice*> open(uint32_t index);
  // Opens device `index` in a context of the application. Errors: busy, if it is open.
  Result<OpenDevice*> adopt(uint32_t index, const ep_adopt_desc& desc);
  // Closes `device`. False if it is not a device of this plug-in.
  bool close(OpenDevice* device);
  // Shuts the provider down so that it can be loaded again. The objects behind OpenDevice pointers stay, and calls
  // through them return CANCELLED.
  void retire();
  // Closes all devices, calls shutdown, and logs the host memory that the plug-in still holds.
  void shut_down();

  const HostServices& host() const { return *host_; }

 private:
  Plugin(std::unique_ptr<HostServices> host, ep_plugin_ops ops, std::unique_ptr<Library> library);
  Result<OpenDevice*> open_new(uint32_t index, const ep_adopt_desc* adopt);
  void close_table(OpenDevice& device);

  std::unique_ptr<HostServices> host_;
  ep_plugin_ops ops_;
  std::unique_ptr<Library> library_;
  std::vector<ListedDevice> devices_;
  std::map<uint32_t, std::unique_ptr<OpenDevice>> open_;
  bool down_ = false;
};

}  // namespace tenon::loader
