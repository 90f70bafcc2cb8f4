#include "loader/collectives/collectives.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "loader/host/host.h"
#include "loader/library/library.h"
#include "loader/log/log.h"
#include "loader/negotiate/table_buffer.h"
#include "loader/note/note.h"
#include "loader/search/search.h"
#include "loader/settings/settings.h"
#include "loader/trust/trust.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon::loader {
namespace {

const char* const author_remedy = "Report it to the plug-in's author.";

// One candidate, and the plug-in if it was opened.
struct Found {
  Candidate report;
  ep_collectives_query_fn registered = nullptr;
  std::unique_ptr<HostServices> host;
  std::optional<OpenCollectives> open;
  bool only_tickets = false;  // true: it does not find ranks

  bool refused() const { return report.code != Code::ok; }
};

struct Search {
  std::mutex mutex;
  std::vector<std::unique_ptr<Found>> registered, found;
  std::vector<std::unique_ptr<Library>> mapped;  // kept forever: their code may run at exit
  bool searched = false, shut_down = false;
};

// Never destroyed.
Search& the_search() {
  static auto* search = new Search;
  return *search;
}

Status missing_function(const std::string& what, const char* name) {
  return Status(Code::invalid_argument, fmt::format("{} lacks the function '{}'", what, name), author_remedy)
      .with_rule("J02");
}

bool is_spoken(const ep_collectives_ops& ops) {
  return ops.version_major == EP_COLLECTIVES_MAJOR && ops.version_minor == EP_COLLECTIVES_MINOR;
}

}  // namespace

Status check_collectives(const ep_collectives_ops& ops, const std::string& what) {
  if (!is_spoken(ops)) {
    return Status(Code::version,
                  fmt::format("{} is of version {}.{}, this host speaks {}.{}", what, ops.version_major,
                              ops.version_minor, EP_COLLECTIVES_MAJOR, EP_COLLECTIVES_MINOR),
                  "Build the plug-in against this Tenon; while the version is 0.x both must be the same.")
        .with_rule("J01");
  }
  if (!ops.shutdown) return missing_function(what, "shutdown");
  if (!ops.describe) return missing_function(what, "describe");
  const bool has_tickets = ops.ticket_make || ops.ticket_join;
  if (ops.world_join || ops.communicator_split || !has_tickets) {
    if (!ops.world_join) return missing_function(what, "world_join");
    if (!ops.communicator_split) return missing_function(what, "communicator_split");
  }
  if (has_tickets && !ops.ticket_make) return missing_function(what, "ticket_make");
  if (has_tickets && !ops.ticket_join) return missing_function(what, "ticket_join");
  if (!ops.communicator_destroy) return missing_function(what, "communicator_destroy");
  if (!ops.exchange_start) return missing_function(what, "exchange_start");
  if (!ops.exchange_wait) return missing_function(what, "exchange_wait");
  if (!ops.exchange_destroy) return missing_function(what, "exchange_destroy");
  return {};
}

namespace {

Result<CollectivesInfo> describe(const std::string& plugin, const ep_collectives_ops& ops) {
  TableBuffer<ep_collectives_info> buffer(EP_STRUCT_COLLECTIVES_INFO);
  TENON_RETURN_IF_ERROR(
      call_plugin(plugin, "describe", [&](ep_error** error) { return ops.describe(ops.plugin, buffer.get(), error); }));
  TENON_ASSIGN_OR_RETURN(const ep_collectives_info raw,
                         buffer.accept(fmt::format("the description of the plug-in '{}'", plugin)));
  CollectivesInfo info;
  info.name = view_of(raw.name);
  info.unusable_reason = view_of(raw.unusable_reason);
  info.remedy = view_of(raw.remedy);
  info.memory_handles = raw.memory_handles;
  info.stream_handles = raw.stream_handles;
  info.dtypes = raw.dtypes;
  info.reduced_dtypes = raw.reduced_dtypes;
  info.reductions = raw.reductions;
  info.largest_count = raw.largest_count;
  return info;
}

void shut_down(Found& found) {
  if (!found.open) return;
  const Status stopped = call_plugin(found.report.provider, "shutdown", [&](ep_error**) {
    found.open->ops.shutdown(found.open->ops.plugin);
    return EP_STATUS_OK;
  });
  if (!stopped.ok()) log(LogTopic::load, LogLevel::error, stopped.message());
  found.open.reset();
  found.host->report_leaks();
}

// Takes all steps from the file to its description. `report.stage` is the last step that succeeded.
Status take_steps(Search& search, Found& found) {
  Candidate& report = found.report;
  ep_collectives_query_fn query = found.registered;
  if (query == nullptr) {
    TENON_ASSIGN_OR_RETURN(const CheckedFile file, open_checked(report.path, settings().trust == Trust::owned));
    report.stage = Stage::trusted;
    TENON_ASSIGN_OR_RETURN(const PluginNote note, read_note(file.descriptor.get(), file.identity.size));
    report.version = note.version;
    report.toolchain = note.toolchain;
    TENON_RETURN_IF_ERROR(check_note(note, report.provider, EP_PLUGIN_KIND_COLLECTIVES));
    report.stage = Stage::note;
    TENON_ASSIGN_OR_RETURN(std::unique_ptr<Library> library,
                           Library::load(file, EP_COLLECTIVES_QUERY_SYMBOL, Binding::program_first));
    query = reinterpret_cast<ep_collectives_query_fn>(library->entry());
    search.mapped.push_back(std::move(library));
  }
  report.stage = Stage::loaded;
  found.host = std::make_unique<HostServices>(report.provider, report.path, configured_values(report.provider));
  TableBuffer<ep_collectives_ops> buffer(EP_STRUCT_COLLECTIVES_OPS);
  TENON_RETURN_IF_ERROR(call_plugin(report.provider, EP_COLLECTIVES_QUERY_SYMBOL,
                                    [&](ep_error** error) { return query(found.host->table(), buffer.get(), error); }));
  const std::string what = fmt::format("the table of the plug-in '{}'", report.provider);
  TENON_ASSIGN_OR_RETURN(const ep_collectives_ops ops, buffer.accept(what));
  const Status checked = check_collectives(ops, what);
  // A plug-in that is refused because another function is missing is shut down too.
  if (is_spoken(ops) && ops.shutdown != nullptr) found.open = OpenCollectives{report.provider, {}, ops};
  TENON_RETURN_IF_ERROR(checked);
  found.only_tickets = !finds_ranks(ops);
  report.stage = Stage::negotiated;
  TENON_ASSIGN_OR_RETURN(found.open->info, describe(report.provider, ops));
  report.stage = Stage::enumerated;
  const CollectivesInfo& info = found.open->info;
  if (!info.usable()) return Status(Code::unsupported, info.unusable_reason, info.remedy);
  report.stage = Stage::usable;
  report.sentence = info.name;
  return {};
}

void advance(Search& search, Found& found) {
  if (found.refused() || found.open) return;
  const Status taken = take_steps(search, found);
  if (taken.ok()) return;
  if (found.open) shut_down(found);
  Candidate& report = found.report;
  report.stage = static_cast<Stage>(static_cast<int>(report.stage) + 1);
  if (report.stage == Stage::probed) report.stage = Stage::loaded;
  report.code = taken.code();
  report.sentence = taken.message();
  report.remedy = taken.remedy();
}

// True if the file's note states this kind.
bool is_candidate(const std::string& path) {
  const Result<CheckedFile> file = open_checked(path, false);
  if (!file.ok()) return false;
  const Result<PluginNote> note = read_note(file->descriptor.get(), file->identity.size);
  return note.ok() && note->kind == EP_PLUGIN_KIND_COLLECTIVES;
}

void find(Search& search) {
  if (search.searched) return;
  search.searched = true;
  search.found = std::move(search.registered);
  search.registered.clear();
  for (const PluginFolder& folder : plugin_folders(settings())) {
    const Result<std::vector<FoundFile>> files = find_plugins(folder.path);
    if (!files.ok()) continue;
    for (const FoundFile& file : files.value()) {
      const bool is_hidden = std::any_of(search.found.begin(), search.found.end(),
                                         [&](const auto& earlier) { return earlier->report.provider == file.name; });
      if (is_hidden || !is_candidate(file.path)) continue;
      auto found = std::make_unique<Found>();
      found->report.provider = file.name;
      found->report.path = file.path;
      found->report.source = folder.source;
      found->report.kind = EP_PLUGIN_KIND_COLLECTIVES;
      search.found.push_back(std::move(found));
    }
  }
}

// The names in the setting `collectives`, separated by commas.
std::vector<std::string_view> names_in(std::string_view setting) {
  std::vector<std::string_view> names;
  while (!setting.empty()) {
    const size_t end = std::min(setting.find(','), setting.size());
    if (end > 0) names.push_back(setting.substr(0, end));
    setting.remove_prefix(std::min(end + 1, setting.size()));
  }
  return names;
}

bool is_wanted(const std::vector<std::string_view>& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

Status none_is_usable(const Search& search, const std::vector<std::string_view>& wanted) {
  std::string lines, remedy, alone;
  std::vector<std::string> names;
  for (const auto& found : search.found) {
    const Candidate& report = found->report;
    names.push_back(report.provider);
    if (!is_wanted(wanted, report.provider)) continue;
    if (found->only_tickets) {
      alone = report.provider;
      continue;
    }
    lines += fmt::format("\n  {} was refused ({}): {}", report.path.empty() ? report.provider : report.path,
                         stage_name(report.stage), report.sentence);
    if (remedy.empty()) remedy = report.remedy;
  }
  if (!lines.empty()) {
    return Status(Code::not_found, fmt::format("No plug-in that carries data between processes works:{}", lines),
                  remedy);
  }
  if (!alone.empty() && !wanted.empty()) {
    return Status(Code::not_found,
                  fmt::format("The plug-in '{}' cannot find the ranks; it needs a second plug-in that can.", alone),
                  fmt::format("Name such a plug-in too (TENON_COLLECTIVES=mpi,{}).", alone));
  }
  if (names.empty() || wanted.empty()) {
    return Status(Code::not_found, "There is no plug-in that carries data between processes.",
                  "Install libtenon_mpi.so, which is built where MPI is (libopenmpi-dev).");
  }
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
  const std::string name(wanted.front());
  const std::string nearest = nearest_word(name, names);
  return Status(Failure{
      .code = Code::not_found,
      .reason =
          fmt::format("No plug-in that carries data between processes is called '{}'.\n  there are: {}", name, all),
      .suggestion = nearest,
      .advice = nearest.empty() ? "Name one of these plug-ins in TENON_COLLECTIVES." : "",
  });
}

}  // namespace

Result<OpenCollectives*> open_collectives(std::string_view name) {
  const Settings& current = settings();
  TENON_RETURN_IF_ERROR(current.status);
  Search& search = the_search();
  const std::lock_guard lock(search.mutex);
  if (search.shut_down) {
    return Status(Code::cancelled, "no communicator can be made: the runtime has been shut down.");
  }
  find(search);
  const std::vector<std::string_view> wanted = names_in(name.empty() ? std::string_view(current.collectives) : name);
  for (const auto& found : search.found) {
    if (!is_wanted(wanted, found->report.provider)) continue;
    advance(search, *found);
    if (!found->refused() && finds_ranks(found->open->ops)) return &*found->open;
  }
  return none_is_usable(search, wanted);
}

OpenCollectives* open_collectives_of_memory(int32_t handle) {
  const Settings& current = settings();
  Search& search = the_search();
  const std::lock_guard lock(search.mutex);
  if (search.shut_down || !current.status.ok() || handle <= 0 || handle > 63) return nullptr;
  find(search);
  const std::vector<std::string_view> wanted = names_in(current.collectives);
  for (const auto& found : search.found) {
    if (!is_wanted(wanted, found->report.provider)) continue;
    advance(search, *found);
    if (found->refused() || !joins_by_tickets(found->open->ops)) continue;
    if ((found->open->info.memory_handles >> handle & 1) != 0) return &*found->open;
  }
  return nullptr;
}

std::vector<Candidate> explain_collectives() {
  static_cast<void>(settings());
  Search& search = the_search();
  const std::lock_guard lock(search.mutex);
  std::vector<Candidate> reports;
  if (search.shut_down) return reports;
  find(search);
  for (const auto& found : search.found) {
    advance(search, *found);
    reports.push_back(found->report);
  }
  return reports;
}

void register_collectives(std::string name, ep_collectives_query_fn query) {
  Search& search = the_search();
  const std::lock_guard lock(search.mutex);
  auto found = std::make_unique<Found>();
  found->report.provider = std::move(name);
  found->report.source = "registered by the application";
  found->report.kind = EP_PLUGIN_KIND_COLLECTIVES;
  found->registered = query;
  auto& list = search.searched ? search.found : search.registered;
  list.insert(list.begin(), std::move(found));
}

void shut_down_collectives(bool forget) {
  Search& search = the_search();
  const std::lock_guard lock(search.mutex);
  for (const auto& found : search.found) shut_down(*found);
  search.shut_down = !forget;
  if (!forget) return;
  search.found.clear();
  search.registered.clear();
  search.searched = false;
}

}  // namespace tenon::loader
