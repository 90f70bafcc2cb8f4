// The engine that links clang and lld, so that a warm helper need not start a compiler process.
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Driver/Compilation.h>
#include <clang/Driver/Driver.h>
#include <clang/Driver/Job.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <lld/Common/Driver.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "providers/cpu/modules/helper/options.h"
#include "sdk/provider/modules/helper/engine.h"

namespace tenon::provider::helper {
namespace {

constexpr const char* source_name = "/tenon/kernel.c";  // in memory; the text's own #line sets the name in messages
constexpr const char* triple =
#if defined(__x86_64__)
    "x86_64-pc-linux-gnu";
#elif defined(__aarch64__)
    "aarch64-pc-linux-gnu";
#else
    "";
#endif

Outcome failed(std::string sentence) { return {Result::failed, std::move(sentence), {}}; }

// The options for clang's -cc1 command, which the driver derives from ours.
std::vector<std::string> inner_options(uint32_t vector_bytes, clang::DiagnosticsEngine& diagnostics) {
  std::vector<std::string> words = {"clang"};
  const std::vector<std::string> ours = code_options(vector_bytes);
  words.insert(words.end(), ours.begin(), ours.end());
  words.insert(words.end(), {"-resource-dir", TENON_CLANG_RESOURCES, "-c", "-x", "c", source_name, "-o", "-"});
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  clang::driver::Driver driver("clang", triple, diagnostics);
  driver.setCheckInputsExist(false);
  const std::unique_ptr<clang::driver::Compilation> compilation(driver.BuildCompilation(pointers));
  std::vector<std::string> inner;
  if (compilation == nullptr || compilation->getJobs().empty()) return inner;
  for (const char* word : compilation->getJobs().begin()->getArguments()) inner.emplace_back(word);
  return inner;
}

// Compiles `text` to an object file. If it is empty, compilation failed, and `output` says why.
llvm::SmallVector<char, 0> compile_object(const std::string& text, uint32_t vector_bytes, std::string* output) {
  llvm::raw_string_ostream said(*output);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  options->ShowPresumedLoc = 1;
  clang::TextDiagnosticPrinter printer(said, options.get());
  clang::DiagnosticsEngine diagnostics(new clang::DiagnosticIDs, options, &printer, false);
  const std::vector<std::string> inner = inner_options(vector_bytes, diagnostics);
  std::vector<const char*> pointers;
  // The first word is -cc1, which the front end does not accept.
  for (size_t i = 1; i < inner.size(); ++i) pointers.push_back(inner[i].c_str());
  clang::CompilerInstance instance;
  if (inner.empty() || !clang::CompilerInvocation::CreateFromArgs(instance.getInvocation(), pointers, diagnostics))
    return {};
  instance.createDiagnostics(&printer, false);
  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> memory(new llvm::vfs::InMemoryFileSystem);
  memory->addFile(source_name, 0, llvm::MemoryBuffer::getMemBuffer(text, source_name));
  llvm::IntrusiveRefCntPtr<llvm::vfs::OverlayFileSystem> files(
      new llvm::vfs::OverlayFileSystem(llvm::vfs::getRealFileSystem()));
  files->pushOverlay(memory);
  instance.createFileManager(files);
  instance.setVerboseOutputStream(said);
  llvm::SmallVector<char, 0> object;
  instance.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(object));
  llvm::LLVMContext context;
  clang::EmitObjAction action(&context);
  const bool made = instance.ExecuteAction(action);
  instance.setOutputStream(nullptr);
  said.flush();
  if (!made) object.clear();
  return object;
}

int memory_file(const char* name) { return memfd_create(name, MFD_CLOEXEC); }

bool write_file(int file, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t count = write(file, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

template <class Bytes>
Bytes contents(int file) {
  const off_t size = lseek(file, 0, SEEK_END);
  Bytes bytes(size > 0 ? static_cast<size_t>(size) : 0, char{});
  if (pread(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) bytes.clear();
  return bytes;
}

// The path of libm, which this program has loaded too.
std::string math_library() {
  Dl_info info{};
  return dladdr(dlsym(RTLD_DEFAULT, "fmodf"), &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Links the file `object` to a shared object on standard output. lld writes nothing next to its output file only if the
// output is "-".
bool link_library(int object, std::string* output) {
  llvm::raw_string_ostream said(*output);
  const std::string input = fmt::format("/proc/self/fd/{}", object);
  const std::string mathematics = math_library();
  const std::vector<const char*> words = {"ld.lld",          "-shared",     "-Bsymbolic",        "-z", "noexecstack",
                                          "--build-id=none", input.c_str(), mathematics.c_str(), "-o", "-"};
  const bool linked = lld::elf::link(words, said, said, false, false);
  llvm::outs().flush();
  if (llvm::outs().has_error()) said << llvm::outs().error().message();
  return linked && !llvm::outs().has_error();
}

// System resources of a compilation, created before it begins.
struct Files {
  int object = memory_file("tenon-compile object");
  int library = memory_file("tenon-compile library");
  int output = memory_file("tenon-compile output");

  Files() = default;
  ~Files() {
    for (int file : {object, library, output}) close(file);
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
};

// Exit statuses begin here, because LLVM itself exits with small numbers.
constexpr int status_of = 100;

// Runs in a process of its own.
Result compile_here(const std::string& text, uint32_t vector_bytes, const Files& files) {
  std::string output;
  Result result = Result::done;
  const llvm::SmallVector<char, 0> code = compile_object(text, vector_bytes, &output);
  if (code.empty()) {
    result = output.find("error: ") != std::string::npos ? Result::refused : Result::failed;
    if (result == Result::failed) output = "clang failed to compile the text and gave no reason.";
  } else {
    std::string linking;
    dup2(files.library, STDOUT_FILENO);
    if (!write_file(files.object, code.data(), code.size()) || !link_library(files.object, &linking)) {
      result = Result::failed;
      output = fmt::format("The linker failed: {}", linking);
    }
  }
  return write_file(files.output, output.data(), std::min<size_t>(output.size(), most_output_bytes)) ? result
                                                                                                     : Result::failed;
}

}  // namespace

Outcome identify(const std::string&) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::InitializeNativeTargetAsmParser();
  return {Result::done, "clang " TENON_CLANG_VERSION "\nlinked", {}};
}

// Compiles each text in a fork of the warm process, because lld can link only once per process, and a crash or leftover
// state ends with the fork.
Outcome compile(const std::string& text, const Question& question) {
  const Files files;
  const pid_t child = fork();
  if (child < 0) return failed("No process could be made for the compiler.");
  if (child == 0) {
    alarm(question.seconds);
    _exit(status_of + static_cast<int>(compile_here(text, question.target, files)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return failed(fmt::format("The compiler ended with signal {}.", WTERMSIG(status)));
  const int result = WEXITSTATUS(status) - status_of;
  if (result < 0 || result > static_cast<int>(Result::failed)) {
    return failed(fmt::format("The compiler ended with status {}.", WEXITSTATUS(status)));
  }
  Outcome outcome;
  outcome.result = static_cast<Result>(result);
  outcome.output = contents<std::string>(files.output);
  if (outcome.result == Result::done) outcome.binary = contents<std::vector<char>>(files.library);
  return outcome;
}

}  // namespace tenon::provider::helper
