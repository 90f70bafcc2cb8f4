// Registry: the candidates of this process, each taken through the stages only as far as someone asked.
//
// Order decides among files of one name: the first that loads is the provider, the others are not loaded. So a folder
// the user names overrides an installed one, whatever the versions.
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

// One candidate, and its plug-in if it was loaded. A `report.code` other than ok means that it ended at `report.stage`.
struct Entry {
  Candidate report;
  ep_plugin_query_fn registered = nullptr;
  CheckedFile file;
  PluginNote note;
  std::unique_ptr<Library> library;
  std::unique_ptr<Plugin> plugin;
  bool is_told = false;  // the log has a warning of the quarantine

  bool refused() const { return report.code != Code::ok; }
  // Its child process crashed, hung or gave no answer.
  bool quarantined() const { return refused() && report.stage == Stage::probed; }
};

class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The one of this process; never destroyed.
  static Registry& instance();

  // The lock that the caller of each function below holds.
  std::mutex& mutex() { return mutex_; }

  void add(std::string name, ep_plugin_query_fn query);
  // The provider `name`, loaded and asked for its devices. Null: no candidate of that name came that far.
  Entry* provider(const std::string& name);
  // The names of the allowed candidates, in order of preference: the order of the setting `providers`, else of the
  // search.
  std::vector<std::string> allowed_names();
  // Takes every candidate as far as `until`.
  void advance_all(Stage until);
  // Every device of the providers loaded so far, in order of preference, with same_as set.
  std::vector<ListedDevice> devices();

  // To be called after an attempt to open a device of `entry`: brings its report up to date.
  void note_opening(Entry& entry, bool opened);

  std::vector<std::unique_ptr<Entry>>& entries();
  const std::vector<SearchedFolder>& folders();

  bool is_shut_down() const { return shut_down_; }
  // Ends the provider `name` so that it is loaded anew when next asked for. Errors: not_found if it is not loaded.
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
