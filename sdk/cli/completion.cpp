#include "sdk/cli/completion.h"

#include "primitives/text/format.h"

namespace tenon::cli {
namespace {

struct Flag {
  std::vector<std::string> names;  // "--device", "-d"
  std::string said;
  bool takes_value = false;
};

struct Command {
  std::string name, said;
  std::vector<Flag> flags;
};

Command described(const CLI::App& app) {
  Command command{app.get_name(), app.get_description(), {}};
  for (const CLI::Option* option : app.get_options()) {
    Flag flag{{}, option->get_description(), option->get_items_expected_max() > 0};
    for (const std::string& name : option->get_lnames()) flag.names.push_back(fmt::format("--{}", name));
    for (const std::string& name : option->get_snames()) flag.names.push_back(fmt::format("-{}", name));
    if (!flag.names.empty()) command.flags.push_back(std::move(flag));
  }
  return command;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(described(*command));
  }
  return commands;
}

// `text` in single quotes for a shell.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string words_of(const Command& command) {
  std::string words;
  for (const Flag& flag : command.flags) {
    for (const std::string& name : flag.names) words += fmt::format("{}{}", words.empty() ? "" : " ", name);
  }
  return words;
}

// Completes options after a dash, commands as the first word, and files otherwise.
std::string bash(const CLI::App& app) {
  std::string names, cases;
  for (const Command& command : commands_of(app)) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
    cases += fmt::format("    {}) words={} ;;\n", command.name, shell_quoted(words_of(command)));
  }
  return fmt::format(R"(# Completion of tenon for bash: source <(tenon completion bash)
_tenon() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W {0}' '{1} -- "$current"))
    return
  fi
  if [ "${{COMP_WORDS[1]}}" = help ]; then
    COMPREPLY=($(compgen -W {0}' env' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{2}  esac
  [[ "$current" = -* ]] && COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -o bashdefault -F _tenon tenon
)",
                     shell_quoted(names), shell_quoted(words_of(described(app))), cases);
}

// Escapes a text for zsh's _arguments, where brackets and colons are special.
std::string zsh_said(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string zsh(const CLI::App& app) {
  std::string names, cases;
  for (const Command& command : commands_of(app)) {
    names += fmt::format("    {}\n", shell_quoted(fmt::format("{}:{}", command.name, zsh_said(command.said))));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const Flag& flag : command.flags) {
      for (const std::string& name : flag.names) {
        cases += fmt::format(" \\\n        {}", shell_quoted(fmt::format("*{}[{}]{}", name, zsh_said(flag.said),
                                                                         flag.takes_value ? ":value:_files" : "")));
      }
    }
    cases += " \\\n        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef tenon
# Completion of tenon for zsh: source <(tenon completion zsh), or a file _tenon in a folder of $fpath
_tenon() {{
  local -a commands=(
{})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=${{words[2]}}
  shift words
  (( CURRENT-- ))
  case $command in
{}    *) _files ;;
  esac
}}
compdef _tenon tenon
)",
                     names, cases);
}

std::string fish(const CLI::App& app) {
  std::string text = "# Completion of tenon for fish: tenon completion fish | source\n";
  for (const Command& command : commands_of(app)) {
    text += fmt::format("complete -c tenon -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        shell_quoted(command.said));
    for (const Flag& flag : command.flags) {
      text += fmt::format("complete -c tenon -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : flag.names) {
        text += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2)) : fmt::format(" -s {}", name.substr(1));
      }
      text += fmt::format("{} -d {}\n", flag.takes_value ? " -r" : "", shell_quoted(flag.said));
    }
  }
  return text;
}

}  // namespace

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  return shell == "bash" ? bash(app) : shell == "zsh" ? zsh(app) : fish(app);
}

}  // namespace tenon::cli
