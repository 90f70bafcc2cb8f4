// Plugin: one provider that was loaded and negotiated with, its devices, and those of them that are open.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "loader/host/host.h"
#include "loader/library/library.h"
#include "loader/loader.h"

namespace tenon::loader {

// Keeps the library mapped for ever once it has been asked for its devices. Not thread-safe: the registry's lock is
// held.
class Plugin {
 public:
  // Negotiates. `library` is null for a provider the application registered.
  static Result<std::unique_ptr<Plugin>> make(const std::string& provider, std::unique_ptr<Library> library,
                                              ep_plugin_query_fn query, const std::string& path,
                                              const std::map<std::string, std::string>& values);
  ~Plugin();

  // Asks once how many devices there are and what each is. A device that cannot be described is listed as unusable.
  Status enumerate();
  const std::vector<ListedDevice>& devices() const { return devices_; }

  // A device whose opening shows a defect of the provider is unusable from then on; other failures may pass.
  Result<OpenDevice*> open(uint32_t index);
  // False if `device` is not one of this plug-in's.
  bool close(OpenDevice* device);
  // The same, for a provider that may be loaded again: what OpenDevice pointers point to stays, and answers CANCELLED.
  void retire();
  // Closes all devices, calls shutdown, and logs what host memory is still held.
  void shut_down();

  const HostServices& host() const { return *host_; }

 private:
  Plugin(std::unique_ptr<HostServices> host, ep_plugin_ops ops, std::unique_ptr<Library> library);
  void close_table(OpenDevice& device);

  std::unique_ptr<HostServices> host_;
  ep_plugin_ops ops_;
  std::unique_ptr<Library> library_;
  std::vector<ListedDevice> devices_;
  std::map<uint32_t, std::unique_ptr<OpenDevice>> open_;
  bool down_ = false;
};

}  // namespace tenon::loader
