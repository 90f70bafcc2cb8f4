#include "sdk/provider/modules/compiler.h"

#include <fmt/core.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "sdk/provider/error.h"
#include "sdk/provider/modules/compile_helper.h"
#include "sdk/provider/modules/source.h"
#include "sdk/provider/modules/store.h"

namespace tenon::provider {
namespace {

using End = CompileHelper::End;

constexpr uint32_t longest_seconds = 3600;

bool stops(const void* host) { return wants_to_stop(static_cast<const ep_host*>(host)); }

// True if only users who can write the plug-in can write `file`. The host has checked the folders of the plug-in.
bool is_as_safe(const struct stat& file, const struct stat& plugin) {
  const bool owned = file.st_uid == 0 || file.st_uid == plugin.st_uid;
  const mode_t writers = file.st_mode & (S_IWGRP | S_IWOTH);
  const bool same_group = file.st_gid == plugin.st_gid || (writers & S_IWGRP) == 0;
  return S_ISREG(file.st_mode) && owned && same_group && (writers & ~plugin.st_mode) == 0;
}

}  // namespace

Compiler::Compiler(const ep_host* host, const char* provider, uint32_t target)
    : host_(host), provider_(provider), target_(target) {}

Compiler::~Compiler() = default;

std::string Compiler::setting(std::string_view key) const {
  ep_string text{};
  if (host_->config_get(host_, to_ep_string(key), &text) != EP_STATUS_OK) return {};
  return std::string(to_view(text));
}

// libexec is two folders above lib/tenon, or three above lib/<machine>/tenon.
std::string Compiler::find_helper(const char* name) const {
  const std::string plugin(to_view(host_->plugin_path(host_)));
  struct stat ours {};
  if (plugin.empty() || stat(plugin.c_str(), &ours) != 0) return {};
  const std::string folder = plugin.substr(0, plugin.rfind('/'));
  for (const char* up : {"../..", "../../.."}) {
    const std::string path = fmt::format("{}/{}/" TENON_LIBEXEC_FOLDER "/tenon/{}", folder, up, name);
    struct stat file {};
    if (stat(path.c_str(), &file) == 0 && is_as_safe(file, ours) && access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

void Compiler::identify(Toolchain* found, const char* remedy, const std::string& depends) {
  const auto take_from = [found](const std::string& said) {
    const size_t cut = std::min(said.find('\n'), said.size());
    found->name = said.substr(0, cut);
    found->identity = said.substr(std::min(cut + 1, said.size()));
  };
  const std::string asked = fmt::format("which compiler\n{}\n{}\n{}", state_of(found->helper), found->chosen, depends);
  if (!depends.empty()) {
    const std::string kept = kept_binary(host_, asked);
    if (!kept.empty()) return take_from(kept);
  }
  bool fresh = false;
  std::unique_ptr<CompileHelper> helper = take(&fresh, &found->sentence);
  if (helper == nullptr) return;
  const helper::Question question{helper::Ask::identify, target_, seconds_, 0, 0};
  const auto never = [](const void*) { return false; };
  const End end =
      helper->ask(question, {}, CompileHelper::Clock::now() + std::chrono::seconds(seconds_), never, nullptr);
  if (end != End::answered) {
    found->sentence = "The compile helper did not say which compiler it has.";
    return;
  }
  const std::string& said = helper->output();
  if (helper->answer().result != helper::Result::done) {
    found->sentence = said;
    found->remedy = remedy;
    return;
  }
  take_from(said);
  if (!depends.empty()) keep_binary(host_, asked, said);
  give_back(std::move(helper));
}

void Compiler::find_toolchain() {
  Toolchain& found = toolchain_;
  const std::string choice = setting("compiler");
  const std::string seconds = setting("compile_seconds");
  const auto read = std::from_chars(seconds.data(), seconds.data() + seconds.size(), seconds_);
  if (!seconds.empty() && (read.ec != std::errc() || read.ptr != seconds.data() + seconds.size() || seconds_ == 0 ||
                           seconds_ > longest_seconds)) {
    found.sentence = fmt::format("The setting compile_seconds of provider {} is '{}'; 1 to {} are possible.", provider_,
                                 seconds, longest_seconds);
    return;
  }
  if (getauxval(AT_SECURE) != 0) {
    found.sentence = "A privileged process starts no compiler.";
    return;
  }
  if (choice == "none") {
    found.sentence = fmt::format("The setting compiler of provider {} is 'none'.", provider_);
    found.remedy = fmt::format("Leave compiler out of [provider.{}].", provider_);
    return;
  }
  find(choice, &found);
}

const Toolchain& Compiler::toolchain() {
  std::call_once(found_, [this] { find_toolchain(); });
  return toolchain_;
}

std::unique_ptr<CompileHelper> Compiler::take(bool* fresh, std::string* why_not) {
  *fresh = false;
  {
    std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
      std::unique_ptr<CompileHelper> helper = std::move(idle_.back());
      idle_.pop_back();
      if (!helper->is_foreign()) return helper;
    }
  }
  *fresh = true;
  std::string why;
  std::unique_ptr<CompileHelper> helper = CompileHelper::start(toolchain_.helper, toolchain_.chosen, &why);
  if (helper == nullptr) *why_not = fmt::format("The helper '{}' could not be started: {}.", toolchain_.helper, why);
  if (helper != nullptr) {
    log_line(host_, EP_LOG_DEBUG, "compile", "starts the compile helper %s", toolchain_.helper.c_str());
  }
  return helper;
}

void Compiler::give_back(std::unique_ptr<CompileHelper> helper) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(helper));
}

// An idle helper may have been killed in the meantime; then a new one is used.
CompileResult Compiler::compile(const std::string& text) {
  CompileResult compiled;
  const auto refuse = [&](ep_status status, std::string sentence) {
    compiled.status = status;
    compiled.sentence = std::move(sentence);
    return std::move(compiled);
  };
  if (const Toolchain& tools = toolchain(); !tools.sentence.empty()) {
    compiled.remedy = tools.remedy;
    return refuse(EP_STATUS_UNSUPPORTED, tools.sentence);
  }
  if (wants_to_stop(host_)) return refuse(EP_STATUS_CANCELLED, "The host cancelled the compilation.");
  const auto deadline = CompileHelper::Clock::now() + std::chrono::seconds(seconds_);
  const helper::Question question{helper::Ask::compile, target_, seconds_ + 5, 0, text.size()};
  while (true) {
    bool fresh = false;
    std::unique_ptr<CompileHelper> helper = take(&fresh, &compiled.sentence);
    if (helper == nullptr) return refuse(EP_STATUS_UNSUPPORTED, std::move(compiled.sentence));
    const End end = helper->ask(question, text, deadline, stops, host_);
    if (end == End::broke && !fresh) continue;
    if (end == End::broke) return refuse(EP_STATUS_UNSUPPORTED, "The compile helper ended while it compiled.");
    if (end == End::stopped) return refuse(EP_STATUS_CANCELLED, "The host cancelled the compilation.");
    if (end == End::overran) {
      return refuse(EP_STATUS_UNSUPPORTED, fmt::format("The compiler ({}) did not end within {} s and was killed.",
                                                       toolchain_.name, seconds_));
    }
    compiled.output = std::move(helper->output());
    compiled.binary = std::move(helper->binary());
    const helper::Result result = helper->answer().result;
    give_back(std::move(helper));
    if (result == helper::Result::done) return compiled;
    if (result == helper::Result::refused) return refuse(EP_STATUS_INVALID_ARGUMENT, first_error(compiled.output));
    return refuse(EP_STATUS_UNSUPPORTED, compiled.output);
  }
}

std::string Compiler::everything_of(const std::string& source) {
  const Toolchain& tools = toolchain();
  return fmt::format("{}\n{}\n{}\n{}", tools.name, tools.identity, target_, source);
}

std::string state_of(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return path;
  return fmt::format("{} {} {} {}.{}", path, file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

}  // namespace tenon::provider
