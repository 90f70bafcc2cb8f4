// Registry: the candidates of this process. Each is taken through the stages only as far as a call requires.
//
// The order decides between files of one name: the first one that loads is the provider, and the others are not loaded.
// So a folder that the user names overrides an installed plug-in, whatever the versions.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "loader/loader.h"
#include "loader/note/note.h"
#include "loader/registry/plugin.h"
#include "loader/trust/trust.h"

namespace tenon::loader {

// One candidate, and its plug-in if it was loaded. If `report.code` is not ok, the candidate was refused at
// `report.stage`.
struct Entry {
  Candidate report;
  ep_plugin_query_fn registered = nullptr;
  CheckedFile file;
  PluginNote note;
  std::unique_ptr<Library> library;
  std::unique_ptr<Plugin> plugin;
  bool is_told = false;  // the quarantine has been logged

  bool refused() const { return report.code != Code::ok; }
  // True if its child process crashed, hung or gave no answer.
  bool quarantined() const { return refused() && report.stage == Stage::probed; }
};

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The registry of this process. It is never destroyed.
  static Registry& instance();

  // The caller of each function below holds this lock.
  std::mutex& mutex() { return mutex_; }

  void add(std::string name, ep_plugin_query_fn query);
  // The provider `name`, loaded and enumerated. Null if no candidate of that name reached that stage.
  Entry* provider(const std::string& name);
  // The names of the allowed candidates, in order of preference: the order of the setting `providers`, else of the
  // search.
  std::vector<std::string> allowed_names();
  // Takes every candidate through all stages up to `until`.
  void advance_all(Stage until);
  // Every device of the providers loaded so far, in order of preference, with same_as set.
  std::vector<ListedDevice> devices();

  // Call this after an attempt to open a device of `entry`. Updates its report.
  void note_opening(Entry& entry, bool opened);

  std::vector<std::unique_ptr<Entry>>& entries();
  const std::vector<SearchedFolder>& folders();

  bool is_shut_down() const { return shut_down_; }
  // Shuts down the provider `name`. The next use loads it again. Errors: not_found if it is not loaded.
  Status retire(std::string_view name);
  void shut_down();
  void reset();

 private:
  void search();
  void warn_of_absent(const std::vector<std::string>& allowed);
  void search_folder(const std::string& path, const std::string& source);
  void add_file(const std::string& path, const std::string& name, const std::string& source);
  void advance(Entry& entry, Stage until);
  Status take_step(Entry& entry, Stage stage);
  Status check_duplicate(const Entry& entry);
  void set_aside_others(const Entry& winner);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Entry>> registered_, entries_;
  std::vector<SearchedFolder> folders_;
  bool searched_ = false;
  bool shut_down_ = false;
};

}  // namespace tenon::loader
