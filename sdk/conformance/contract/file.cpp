// The library file: its exports and links, and every stage of the loader.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "loader/library/library.h"
#include "loader/note/note.h"
#include "loader/registry/plugin.h"
#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

// Returns the provider's name from a path: "foo" for ".../libtenon_foo.so".
std::string provider_name(const std::string& path) {
  std::string name = std::filesystem::path(path).stem();
  constexpr std::string_view head = "libtenon_";
  return name.starts_with(head) ? name.substr(head.size()) : name;
}

Status at_stage(const char* stage, const Status& status) {
  if (status.ok()) return status;
  const std::string remedy = status.remedy().empty() ? "" : fmt::format("\n  What to do: {}", status.remedy());
  return status.with_context(
      fmt::format("  refused at the stage '{}', code '{}'{}", stage, code_name(status.code()), remedy));
}

struct Dynamic {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* gnu_hash = nullptr;
  std::vector<uint64_t> needed;
};

Dynamic dynamic_of(const link_map& map) {
  Dynamic found;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto address = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) found.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) found.strings = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH) found.gnu_hash = reinterpret_cast<const uint32_t*>(address);
    if (entry->d_tag == DT_NEEDED) found.needed.push_back(entry->d_un.d_val);
  }
  return found;
}

// Returns the defined symbols, which the GNU hash table lists.
std::vector<std::string> exported(const Dynamic& dynamic) {
  std::vector<std::string> names;
  const uint32_t* hash = dynamic.gnu_hash;
  const uint32_t bucket_count = hash[0], first = hash[1], bloom_words = hash[2];
  const uint32_t* buckets = hash + 4 + bloom_words * sizeof(ElfW(Addr)) / 4;
  const uint32_t* chains = buckets + bucket_count;
  for (uint32_t bucket = 0; bucket < bucket_count; ++bucket) {
    if (buckets[bucket] < first) continue;
    for (uint32_t index = buckets[bucket];; ++index) {
      names.emplace_back(dynamic.strings + dynamic.symbols[index].st_name);
      if (chains[index - first] & 1) break;
    }
  }
  return names;
}

// The index of the first symbol that the library defines. The undefined symbols come before it.
uint32_t first_defined(const Dynamic& dynamic) { return dynamic.gnu_hash[1]; }

// True if a library that the plug-in links looks up `name`, and so may find it in the plug-in.
bool is_looked_up(const link_map& plugin, const Dynamic& dynamic, std::string_view name) {
  for (const link_map* map = &plugin; map != nullptr; map = map->l_next) {
    const std::string_view path = map->l_name;
    const bool linked = std::any_of(dynamic.needed.begin(), dynamic.needed.end(), [&](uint64_t at) {
      return path.ends_with("/" + std::string(dynamic.strings + at));
    });
    const Dynamic theirs = linked ? dynamic_of(*map) : Dynamic();
    if (theirs.gnu_hash == nullptr) continue;
    for (uint32_t index = 1; index < first_defined(theirs); ++index) {
      if (name == theirs.strings + theirs.symbols[index].st_name) return true;
    }
  }
  return false;
}

}  // namespace

Status loader_accepts(Subject& subject) {
  const Target& target = subject.target;
  const std::string name = provider_name(target.path);
  auto file = loader::open_checked(target.path, false);
  TENON_RETURN_IF_ERROR(at_stage("found", file.status()));
  const auto note = loader::read_note(file->descriptor.get(), file->identity.size);
  TENON_RETURN_IF_ERROR(at_stage("note", note.status()));
  TENON_RETURN_IF_ERROR(at_stage("note", loader::check_note(note.value(), name)));
  auto library = loader::Library::load(file.value());
  TENON_RETURN_IF_ERROR(at_stage("loaded", library.status()));
  const ep_plugin_query_fn query = library.value()->query();
  const std::map<std::string, std::string> values(target.settings.begin(), target.settings.end());
  auto plugin = loader::Plugin::make(name, std::move(library).value(), query, target.path, values);
  TENON_RETURN_IF_ERROR(at_stage("negotiated", plugin.status()));
  TENON_RETURN_IF_ERROR(at_stage("enumerated", plugin.value()->enumerate()));
  if (target.device >= plugin.value()->devices().size()) {
    return skipped("there are {} devices.", plugin.value()->devices().size());
  }
  return at_stage("device usable", plugin.value()->open(target.device).status());
}

Status file_symbols(Subject& subject) {
  link_map* map = nullptr;
  Dl_info where{};
  if (dladdr1(reinterpret_cast<void*>(subject.query), &where, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
    return skipped("the dynamic linker does not say what it mapped.");
  }
  const Dynamic dynamic = dynamic_of(*map);
  if (dynamic.gnu_hash == nullptr) return skipped("the library has no DT_GNU_HASH.");
  for (const std::string& name : exported(dynamic)) {
    if (name != EP_PLUGIN_QUERY_SYMBOL && !is_looked_up(*map, dynamic, name)) {
      return broken(
          "N04", "it exports '{}' beside " EP_PLUGIN_QUERY_SYMBOL ", and no library that it links looks that up", name);
    }
  }
  for (uint64_t at : dynamic.needed) {
    const std::string_view name = dynamic.strings + at;
    if (name.starts_with("libtenon")) return broken("N04", "it links {}, which is the host's", name);
  }
  return {};
}

}  // namespace tenon::conformance
