// The command line of the tool.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>

#include "loader/host/plugin_call.h"
#include "loader/settings/settings.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/completion.h"
#include "sdk/cli/refusal.h"

namespace {

using namespace tenon::cli;

struct CommandLine {
  CLI::App app{"Runs tensor programs on any device a plug-in describes.", "tenon"};
  RunOptions run;
  ProfileOptions profile;
  TuneModelOptions tune;
  CompareOptions compare;
  CheckOptions check;
  GraphOptions graph;
  KernelOptions compile;
  PlanOptions plan;
  ReportOptions devices, doctor;
  OpsOptions ops;
  OnnxTestOptions onnx_test;
  ConformOptions conform;
  NewProviderOptions new_provider;
  std::string topic, shell;
  std::function<int()> chosen;

  CommandLine() {
    app.require_subcommand(0, 1);
    app.set_help_all_flag("--help-all", "Help of every command");
    app.add_flag_callback(
        "--version", [this] { chosen = [] { return std::fputs(version_text().c_str(), stdout) < 0 ? 1 : 0; }; },
        "Version, commit, libraries and providers");
    add_run();
    add_profile();
    add_tune();
    add_compare();
    add_check();
    add_graph();
    add_compile();
    add_plan();
    add_reports();
    add_onnx_test();
    add_conform();
    add_new_provider();
    // Allows an empty value: --device "$DEVICE" without DEVICE set.
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
      if (CLI::Option* device = command->get_option_no_throw("--device")) device->check(is_not_empty());
    }
    CLI::App* completion = app.add_subcommand("completion", "Print a script that completes commands and options");
    completion->add_option("SHELL", shell, "The shell")->required()->check(CLI::IsMember(completion_shells()));
    completion->callback(
        [this] { chosen = [this] { return std::fputs(completion_script(app, shell).c_str(), stdout) < 0 ? 1 : 0; }; });
    app.failure_message([this](const CLI::App*, const CLI::Error& error) { return refusal(app, error); });
    CLI::App* help = app.add_subcommand("help", "Help on a command or a topic; without one, the topics");
    help->add_option("TOPIC", topic, "A command, or env: the TENON_* variables");
    help->callback([this] { chosen = [this] { return help_on(topic); }; });
  }

  std::vector<const CLI::App*> commands() const {
    return app.get_subcommands([](const CLI::App*) { return true; });
  }

  // NULL if no command has that name.
  const CLI::App* command_called(const std::string& name) const {
    for (const CLI::App* command : commands()) {
      if (command->get_name() == name) return command;
    }
    return nullptr;
  }

  std::vector<std::string> command_names() const {
    std::vector<std::string> names;
    for (const CLI::App* command : commands()) names.push_back(command->get_name());
    return names;
  }

  // Returns an exit code, as main does.
  int help_on(const std::string& word) {
    if (word == "conform") {
      conform.words = {"--help"};
      return tenon::cli::conform(conform);
    }
    std::string text;
    if (word.empty()) text = help_topics();
    if (word == "env") text = tenon::loader::settings_help();
    if (const CLI::App* command = command_called(word)) text = command->help("tenon");
    if (!text.empty()) return std::fputs(text.c_str(), stdout) < 0 ? 1 : 0;
    std::vector<std::string> topics = command_names();
    topics.emplace_back("env");
    return refuse_word("command or topic", word, topics, help_topics());
  }

  // Refuses a word that is not a command.
  int refuse_command(const std::string& word) {
    std::vector<std::string> names = command_names();
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    names.emplace_back("--version");
    return refuse_word("command", word, names, fmt::format("The commands are {}.\n", list));
  }

  void add_run() {
    CLI::App* command = app.add_subcommand("run", "Run an ONNX model");
    command->add_option("MODEL", run.model, "The model.onnx")->required();
    command->add_option("--input,-i", run.inputs,
                        "NAME=FILE.npy, NAME=FILE.pb, NAME=FILE.txt (strings, one per line), NAME=random or "
                        "NAME=random:1x3x224x224; once per input");
    command->add_option("--dim", run.dims, "NAME=NUMBER: a named dynamic dim of random inputs (1 unless given)");
    command->add_option("--output,-o", run.output, "Folder for the outputs");
    command->add_option("--format", run.format, "Kind of output files")
        ->check(CLI::IsMember({"npy", "pb"}))
        ->capture_default_str();
    command->add_option("--device,-d", run.device,
                        "cpu, cuda:1, vulkan:uuid=...; without it TENON_DEVICE, the config file, or the best device");
    command
        ->add_option("--external-data", run.external_data,
                     "Folder of the weights outside the model file (default: the model's folder)")
        ->check(is_folder());
    command->add_option("--repeat", run.repeat, "Runs, of which all but the first are timed together")
        ->check(CLI::Range(1u, 1000000u));
    command->add_option("--seed", run.seed, "Seed of random inputs")->capture_default_str();
    command->add_flag("--report", run.report,
                      "Print for each node where and how it ran, and why no better way was possible");
    add_precision(command, run.precision);
    command->add_flag("--eager", run.eager, "Run node after node instead of a recorded program");
    command->add_flag("--no-fuse", run.no_fuse, "Launch no kernels that compute several ops in one");
    command->add_flag("--json", run.json, "Print JSON");
    command->callback([this] { chosen = [this] { return run_model(run); }; });
  }

  void add_check() {
    CLI::App* command =
        app.add_subcommand("check", "List the nodes of an ONNX model that cannot run, without its external data");
    command->add_option("MODEL", check.model, "The model.onnx")->required();
    command->add_option("--device,-d", check.device, "As for `tenon run`");
    command->add_flag("--json", check.json, "Print JSON");
    command->callback([this] { chosen = [this] { return check_model(check); }; });
  }

  void add_profile() {
    CLI::App* command = app.add_subcommand("profile", "Show where an ONNX model spends its time");
    command->add_option("MODEL", profile.model, "The model.onnx")->required();
    command->add_option("--input,-i", profile.inputs, "As for `tenon run`; inputs that are not given are random");
    command->add_option("--dim", profile.dims, "As for `tenon run`");
    command->add_option("--device,-d", profile.device, "As for `tenon run`");
    command->add_option("--external-data", profile.external_data, "As for `tenon run`")->check(is_folder());
    command->add_option("--warm-up", profile.warm_up, "Runs before the timed ones")
        ->check(CLI::Range(0u, 1000000u))
        ->capture_default_str();
    command->add_option("--repeat", profile.repeat, "Timed runs (default: as many as fit in two seconds)")
        ->check(CLI::Range(1u, 1000000u));
    command->add_option("--top", profile.top, "Nodes in the table, the slowest first")->capture_default_str();
    command->add_option("--plot", profile.plot, "An SVG file to write: a picture of where the time goes");
    command->add_option("--trace", profile.trace, "A file to write: one run as a trace for chrome://tracing, Perfetto");
    command->add_option("--seed", profile.seed, "Seed of random inputs")->capture_default_str();
    add_precision(command, profile.precision);
    command->add_flag("--no-fuse", profile.no_fuse, "As for `tenon run`");
    command->add_flag("--json", profile.json, "Print JSON");
    command->callback([this] { chosen = [this] { return profile_model(profile); }; });
  }

  void add_tune() {
    CLI::App* command =
        app.add_subcommand("tune", "Search for faster loops of an ONNX model's kernels, and store them");
    command->add_option("MODEL", tune.model, "The model.onnx")->required();
    command->add_option("--input,-i", tune.inputs, "As for `tenon run`; inputs that are not given are random");
    command->add_option("--dim", tune.dims, "As for `tenon run`; kernels are timed for these sizes");
    command->add_option("--device,-d", tune.device, "As for `tenon run`");
    command->add_option("--external-data", tune.external_data, "As for `tenon run`")->check(is_folder());
    command
        ->add_option("--budget", tune.budget_ms,
                     "Milliseconds that launches of one kernel may take (500 on a CPU, 200 elsewhere)")
        ->check(number_that([](double value) { return value > 0 && value <= 1e7; }, "above 0 and at most 10000000"));
    command->add_option("--seed", tune.seed, "Seed of random inputs")->capture_default_str();
    command->add_flag("--json", tune.json, "Print JSON");
    command->callback([this] { chosen = [this] { return tune_model(tune); }; });
  }

  void add_graph() {
    CLI::App* command = app.add_subcommand("graph", "Print the graph of an ONNX model, or run one that was printed");
    command->add_option("FILE", graph.file, "A model.onnx, or a graph.txt that --output has written")->required();
    command->add_option("--pass,-p", graph.pass, "The last pass to run (none: no pass; default: all of them)");
    command->add_flag("--exact", graph.exact, "Only passes that keep every bit");
    command->add_option("--sizes", graph.sizes,
                        "NAME=NUMBER: a named dynamic dim as a number; without any they are symbols");
    command->add_option("--dim", graph.dims, "NAME=NUMBER: the hint of a named dynamic dim");
    command->add_option("--input,-i", graph.inputs, "As for `tenon run`; inputs that are not given are random");
    command->add_option("--device,-d", graph.device, "As for `tenon run`");
    command->add_option("--external-data", graph.external_data, "As for `tenon run`")->check(is_folder());
    command->add_option("--output,-o", graph.output, "A folder for graph.txt and constants.bin");
    command->add_option("--seed", graph.seed, "Seed of random inputs")->capture_default_str();
    command->add_flag("--run", graph.run, "Run it on random inputs and print the results in short");
    command->callback([this] { chosen = [this] { return show_graph(graph); }; });
  }

  void add_compile() {
    CLI::App* command = app.add_subcommand("compile", "Print the kernels that ops of an ONNX model become");
    command->add_option("FILE", compile.graph.file, "A model.onnx, or a graph.txt that `graph --output` has written")
        ->required();
    command
        ->add_option("--stage", compile.stage,
                     "graph: before fusion; fuse: each decision, and the graph; loop: kernels without loops; schedule: "
                     "with loops; text: for the device's compiler")
        ->check(CLI::IsMember({"graph", "fuse", "loop", "schedule", "text"}))
        ->capture_default_str();
    command->add_option("--emit", compile.emit, "The dialect of the text: C, CUDA C, OpenCL C or GLSL")
        ->check(CLI::IsMember({"c", "cu", "cl", "glsl"}))
        ->capture_default_str();
    command->add_option("--sizes", compile.graph.sizes, "As for graph");
    command->add_option("--dim", compile.graph.dims, "As for graph");
    command->add_option("--input,-i", compile.graph.inputs, "As for `tenon run`; inputs that are not given are random");
    command->add_option("--device,-d", compile.graph.device, "As for `tenon run`");
    command->add_option("--external-data", compile.graph.external_data, "As for `tenon run`")->check(is_folder());
    command->callback([this] { chosen = [this] { return show_kernels(compile); }; });
  }

  void add_plan() {
    CLI::App* command =
        app.add_subcommand("plan", "Plan how to spread a model over the ranks of a cluster, and print the cost");
    command->footer(
        "A topology is a line for the rank and one per level, from inside:\n"
        "  rank: 400 TFLOP/s, 3 TB/s, 80 GB, 4 us    arithmetic, memory and its size, the start of an op\n"
        "  node: 8 ranks, 5 us, 300 GB/s             the time of a step, what a rank sends\n"
        "  cluster: 512 nodes, 10 us, 50 GB/s        # behind this sign is a comment");
    command->add_option("FILE", plan.graph.file, "A model.onnx, or a graph.txt that `graph --output` has written")
        ->required();
    command->add_option("--topology,-t", plan.topology,
                        "A file that describes the cluster; with --measure this launch");
    command->add_option("--ranks,-n", plan.ranks, "Number of ranks (default: all of the topology)")
        ->check(CLI::Range(1, 1 << 24));
    command->add_option("--grid", plan.grid, "512x8: the ranks as a grid (default: the best grid of one or two axes)");
    command->add_option(
        "--spread", plan.spreads,
        "0=S(0),B: how input 0 is spread, one of S(axis) and B per axis of the grid; %17=... a constant");
    command->add_flag("--train", plan.train, "A step of training: gradients of the first result, and new parameters");
    command->add_option("--parameter", plan.parameters,
                        "The number of an input that training changes (floating constants always change)");
    command->add_flag("--measure", plan.measure,
                      "Run the plan on the ranks of this launch too (mpirun -n 2 tenon plan)");
    command->add_option("--pass,-p", plan.graph.pass, "The last pass to run first (batch_norm; of a graph.txt none)");
    command->add_option("--sizes", plan.graph.sizes, "As for graph");
    command->add_option("--dim", plan.graph.dims, "As for graph");
    command->add_option("--input,-i", plan.graph.inputs, "As for `tenon run`; inputs that are not given are random");
    command->add_option("--device,-d", plan.graph.device, "As for `tenon run`");
    command->add_option("--external-data", plan.graph.external_data, "As for `tenon run`")->check(is_folder());
    command->add_option("--seed", plan.graph.seed, "Seed of random inputs")->capture_default_str();
    command->add_flag("--json", plan.json, "Print JSON");
    command->callback([this] { chosen = [this] { return plan_model(plan); }; });
  }

  void add_compare() {
    CLI::App* command = app.add_subcommand("compare", "Run an ONNX model on two devices and find where they differ");
    command->add_option("MODEL", compare.model, "The model.onnx")->required();
    CLI::Option* devices = command->add_option("--device,-d", compare.devices,
                                               "Given twice: the reference device, then the device to check");
    devices->required()->allow_extra_args(false);
    command->add_option("--input,-i", compare.inputs, "As for `tenon run`; inputs that are not given are random");
    command->add_option("--dim", compare.dims, "As for `tenon run`");
    command->add_option("--external-data", compare.external_data, "As for `tenon run`")->check(is_folder());
    command->add_option("--seed", compare.seed, "Seed of random inputs")->capture_default_str();
    command
        ->add_option(
            "--tolerance", compare.tolerance,
            "Largest relative error of floats (by type, on tier full: f64 1e-12, f32 1e-4, f16 1e-2, bf16 5e-2)")
        ->check(number_that([](double value) { return value >= 0; }, "of at least 0"));
    add_precision(command, compare.precision);
    command->add_flag("--isolate", compare.isolate,
                      "Give each node of the second device what the first computed, so that errors do not add up");
    command->add_flag("--json", compare.json, "Print JSON");
    command->callback([this] {
      if (compare.devices.size() != 2) throw CLI::ValidationError("--device", "must be given twice");
      chosen = [this] { return compare_devices(compare); };
    });
  }

  static void add_precision(CLI::App* command, tenon::Precision& precision) {
    const auto set = [&precision](const std::string& name) { precision = tenon::precision_from_name(name).value(); };
    std::vector<std::string> names;
    for (tenon::Precision each : tenon::precisions) names.emplace_back(tenon::precision_name(each));
    command
        ->add_option_function<std::string>(
            "--precision", set,
            "stated: each device computes as exactly as it states. relaxed: products of f32 may round their factors to "
            "bf16 or TF32, where the device can. portable, full: the tier that every op demands; a device below it is "
            "passed over (default: stated)")
        ->check(CLI::IsMember(names));
  }

  static void add_report_flags(CLI::App* command, ReportOptions& options) {
    command->add_flag("--json", options.json, "Print JSON");
    command->add_flag("--probe", options.probe,
                      "Load every plug-in in a child process first, and leave out those that crash or hang there");
  }

  void add_reports() {
    CLI::App* list = app.add_subcommand("devices", "List every device, with the reason if it cannot be used");
    add_report_flags(list, devices);
    list->callback([this] { chosen = [this] { return list_devices(devices); }; });
    CLI::App* doc = app.add_subcommand(
        "doctor", "Report how far each plug-in was loaded and why, and where each setting comes from");
    add_report_flags(doc, doctor);
    doc->callback([this] { chosen = [this] { return tenon::cli::doctor(doctor); }; });
    CLI::App* all = app.add_subcommand("ops", "List the ops, or describe one");
    all->add_option("NAME", ops.name, "An op, or with --onnx an ONNX operator");
    all->add_option("--device,-d", ops.devices, "A device to ask; may be repeated (default: one of each provider)");
    all->add_option("--ops", ops.libraries, "A library of ops to load first; those in TENON_OPS_PATH are loaded");
    all->add_flag("--onnx", ops.onnx, "The ONNX operators that models may use instead");
    all->add_flag("--json", ops.json, "Print JSON");
    all->callback([this] { chosen = [this] { return list_ops(ops); }; });
  }

  void add_onnx_test() {
    CLI::App* command =
        app.add_subcommand("onnx-test", "Run ONNX test cases: folders with model.onnx and test_data_set_*");
    command->add_option("DIR", onnx_test.folders, "Test cases, or folders of them")->required();
    command->add_option("--device,-d", onnx_test.device, "As for `tenon run`");
    CLI::Option* rtol =
        command->add_option("--rtol", onnx_test.rtol, "Relative tolerance (1e-3, or what the case's data.json says)");
    CLI::Option* atol =
        command->add_option("--atol", onnx_test.atol, "Absolute tolerance (1e-7, or what the case's data.json says)");
    command->add_option("--jobs,-j", onnx_test.jobs, "Cases that run at once (default: one per thread)");
    command->add_option("--time-limit", onnx_test.time_limit, "Seconds a case may take")
        ->check(number_that([](double value) { return value > 0; }, "above 0"))
        ->capture_default_str();
    command->add_flag("--json", onnx_test.json, "A JSON object per line for each case");
    command->add_flag("--quiet,-q", onnx_test.quiet, "Print failed cases only");
    command->callback([this, rtol, atol] {
      onnx_test.tolerance_given = rtol->count() + atol->count() > 0;
      chosen = [this] { return tenon::cli::onnx_test(onnx_test); };
    });
  }

  // The conformance kit parses the arguments of `conform`, --help included.
  void add_conform() {
    CLI::App* command =
        app.add_subcommand("conform", "Check a provider's library against the contract and the reference");
    command->prefix_command()->set_help_flag();
    command->callback([this, command] {
      conform.words = command->remaining();
      chosen = [this] { return tenon::cli::conform(conform); };
    });
  }

  void add_new_provider() {
    CLI::App* command =
        app.add_subcommand("new-provider", "Write a project for a provider of your own, which builds and runs");
    command->add_option("NAME", new_provider.name, "Name of the provider: libtenon_NAME.so, NAME:0")->required();
    command->add_option("--to", new_provider.to, "The folder to write, which must be empty or missing (default: NAME)");
    command->add_flag("--async", new_provider.async,
                      "In C++, for a device with queues (a GPU, an NPU): streams, events and faults");
    command->add_flag("--force", new_provider.force, "Use NAME even if a provider of that name exists");
    command->callback([this] { chosen = [this] { return tenon::cli::new_provider(new_provider); }; });
  }
};

int fail(const std::string& message, const std::string& remedy) {
  std::fprintf(stderr, "tenon: %s\n", tenon::visible_lines(message).c_str());
  if (!remedy.empty()) std::fprintf(stderr, "  What to do: %s\n", tenon::visible_lines(remedy).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  if (argc > 1 && argv[1][0] != '-' && !line.command_called(argv[1])) return line.refuse_command(argv[1]);
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return line.app.exit(error) == 0 ? 0 : 2;
  }
  if (!line.chosen) {
    std::fputs(line.app.help().c_str(), stdout);
    return 2;
  }
  tenon::loader::name_ended_calls();
  try {
    return line.chosen();
  } catch (const tenon::Error& error) {
    return fail(error.what(), error.remedy());
  } catch (const std::bad_alloc&) {
    return fail("There is not enough memory on the host.", "");
  } catch (const std::exception& error) {
    return fail(error.what(), "");
  }
}
