#include "core/compiler/artifact/artifact.h"

#include <charconv>

#include "core/compiler/emit/prelude_c.h"
#include "core/compiler/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
namespace {

// Rows of so many numbers of four bytes fit into local memory, with another row beside them.
constexpr int64_t kShortRow = 8192;
constexpr std::string_view kFirstLine = "tenon artifact 1";

Result<Variant> make_variant(Kernel kernel, std::span<const Condition> conditions) {
  {
    const symbolic::ArenaScope scope(kernel.arena);
    for (const Condition& condition : conditions) kernel.arena.assume(condition);
  }
  Variant variant;
  TENON_ASSIGN_OR_RETURN(variant.holds, Program::all(kernel, conditions));
  TENON_RETURN_IF_ERROR(schedule_for_cpu(&kernel));
  TENON_ASSIGN_OR_RETURN(const Program extent, Program::of(kernel, kernel.axes[kernel.body[0].axis].extent));
  variant.items = extent.chunks(kernel.body[0].step);
  TENON_ASSIGN_OR_RETURN(variant.text, emit_c(kernel));
  return variant;
}

// Lines of an artifact, one after another.
class Lines {
 public:
  explicit Lines(std::string_view bytes) : rest_(bytes) {}

  // What follows `word` on the next line. Errors: invalid_argument, if the line does not begin with it.
  Result<std::string_view> after(std::string_view word) {
    ++number_;
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    if (!line.starts_with(word)) return wrong(fmt::format("'{}' is expected", word));
    rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
    return line.substr(word.size());
  }
  Result<uint64_t> number_after(std::string_view word, uint64_t most) {
    TENON_ASSIGN_OR_RETURN(const std::string_view digits, after(word));
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number > most) {
      return wrong(fmt::format("a number up to {} is expected after '{}'", most, word));
    }
    return number;
  }
  Result<std::string_view> bytes(uint64_t count) {
    if (count > rest_.size()) return wrong(fmt::format("{} more bytes are expected, not {}", count, rest_.size()));
    const std::string_view result = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return result;
  }
  bool empty() const { return rest_.empty(); }
  Status wrong(std::string_view what) const {
    return {Code::invalid_argument, fmt::format("Line {} of an artifact: {}.", number_, what)};
  }

 private:
  std::string_view rest_;
  size_t number_ = 0;
};

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_letter(text[i]) && (i == 0 || text[i] < '0' || text[i] > '9')) return false;
  }
  return !text.empty() && text.size() <= 128;
}

Result<Variant> read_variant(Lines& lines) {
  Variant variant;
  TENON_ASSIGN_OR_RETURN(const std::string_view holds, lines.after("holds "));
  TENON_ASSIGN_OR_RETURN(variant.holds, Program::parse(holds));
  TENON_ASSIGN_OR_RETURN(const std::string_view items, lines.after("items "));
  TENON_ASSIGN_OR_RETURN(variant.items, Program::parse(items));
  TENON_ASSIGN_OR_RETURN(const std::string_view entry, lines.after("entry "));
  if (!is_name(entry)) return lines.wrong("a C identifier is expected after 'entry '");
  variant.text.entry = entry;
  TENON_ASSIGN_OR_RETURN(const uint64_t dialect, lines.number_after("dialect ", EP_DIALECT_GLSL));
  TENON_ASSIGN_OR_RETURN(const uint64_t buffers, lines.number_after("buffers ", 1 << 16));
  TENON_ASSIGN_OR_RETURN(const uint64_t parameters, lines.number_after("parameter_bytes ", 1 << 20));
  TENON_ASSIGN_OR_RETURN(const uint64_t shared, lines.number_after("shared_bytes ", 1 << 30));
  TENON_ASSIGN_OR_RETURN(variant.text.flags, lines.number_after("flags ", EP_ENTRY_FLAG_FAULTS));
  TENON_ASSIGN_OR_RETURN(const uint64_t count, lines.number_after("text ", uint64_t{1} << 30));
  TENON_ASSIGN_OR_RETURN(const std::string_view text, lines.bytes(count));
  variant.text.dialect = static_cast<int32_t>(dialect);
  variant.text.buffer_count = static_cast<uint32_t>(buffers);
  variant.text.parameter_bytes = static_cast<uint32_t>(parameters);
  variant.text.shared_bytes = static_cast<uint32_t>(shared);
  variant.text.text = text;
  return variant;
}

}  // namespace

Result<size_t> Artifact::choose(std::span<const int64_t> sizes) const {
  for (size_t i = 0; i + 1 < variants.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const int64_t holds, variants[i].holds.run(sizes));
    if (holds != 0) return i;
  }
  return variants.size() - 1;
}

Result<Artifact> make_artifact(const Kernel& kernel, const std::vector<SymDims>& dims) {
  try {
    Artifact artifact;
    artifact.name = kernel.name;
    artifact.parameters = static_cast<uint32_t>(kernel.parameters.size());
    TENON_ASSIGN_OR_RETURN(Variant general, make_variant(kernel, {}));
    std::vector<Condition> conditions;
    for (const Axis& axis : kernel.axes) {
      const bool is_long = kernel.arena.range(axis.extent).hi > kShortRow;
      bool in_rows = false;
      for (const Stage& stage : kernel.stages) {
        for (const Id reduced : stage.reduce_axes) in_rows = in_rows || &kernel.axes[reduced] == &axis;
      }
      if (is_long && in_rows && !axis.extent.is_number()) conditions.push_back(axis.extent <= SymDim(kShortRow));
    }
    if (!conditions.empty()) {
      TENON_ASSIGN_OR_RETURN(Variant of_short_rows, make_variant(kernel, conditions));
      if (of_short_rows.text.text != general.text.text) artifact.variants.push_back(std::move(of_short_rows));
    }
    artifact.variants.push_back(std::move(general));
    for (const SymDims& output : dims) {
      artifact.dims.emplace_back();
      for (const SymDim size : output) {
        TENON_ASSIGN_OR_RETURN(Program program, Program::of(kernel, size));
        artifact.dims.back().push_back(std::move(program));
      }
    }
    return artifact;
  } catch (const Error& error) {
    return error.status();
  }
}

std::string to_bytes(const Artifact& artifact) {
  std::string bytes = fmt::format("{}\nname {}\nparameters {}\nvariants {}\n", kFirstLine, artifact.name,
                                  artifact.parameters, artifact.variants.size());
  for (const Variant& variant : artifact.variants) {
    const KernelText& text = variant.text;
    bytes += fmt::format(
        "holds {}\nitems {}\nentry {}\ndialect {}\nbuffers {}\nparameter_bytes {}\nshared_bytes {}\nflags {}\ntext "
        "{}\n",
        variant.holds.text(), variant.items.text(), text.entry, text.dialect, text.buffer_count, text.parameter_bytes,
        text.shared_bytes, text.flags, text.text.size());
    bytes += text.text;
  }
  bytes += fmt::format("outputs {}\n", artifact.dims.size());
  for (const std::vector<Program>& output : artifact.dims) {
    bytes += fmt::format("rank {}\n", output.size());
    for (const Program& size : output) bytes += fmt::format("size {}\n", size.text());
  }
  return bytes;
}

Result<Artifact> from_bytes(std::string_view bytes) {
  Lines lines(bytes);
  Artifact artifact;
  TENON_ASSIGN_OR_RETURN(const std::string_view rest, lines.after(kFirstLine));
  if (!rest.empty()) return lines.wrong("nothing more is expected");
  TENON_ASSIGN_OR_RETURN(const std::string_view name, lines.after("name "));
  if (!is_name(name)) return lines.wrong("a C identifier is expected after 'name '");
  artifact.name = name;
  TENON_ASSIGN_OR_RETURN(const uint64_t parameters, lines.number_after("parameters ", 1 << 16));
  artifact.parameters = static_cast<uint32_t>(parameters);
  TENON_ASSIGN_OR_RETURN(const uint64_t variants, lines.number_after("variants ", 64));
  if (variants == 0) return lines.wrong("at least one variant is expected");
  for (uint64_t i = 0; i < variants; ++i) {
    TENON_ASSIGN_OR_RETURN(Variant variant, read_variant(lines));
    artifact.variants.push_back(std::move(variant));
  }
  TENON_ASSIGN_OR_RETURN(const uint64_t outputs, lines.number_after("outputs ", 1 << 16));
  for (uint64_t i = 0; i < outputs; ++i) {
    TENON_ASSIGN_OR_RETURN(const uint64_t rank, lines.number_after("rank ", 64));
    artifact.dims.emplace_back();
    for (uint64_t d = 0; d < rank; ++d) {
      TENON_ASSIGN_OR_RETURN(const std::string_view size, lines.after("size "));
      TENON_ASSIGN_OR_RETURN(Program program, Program::parse(size));
      artifact.dims.back().push_back(std::move(program));
    }
  }
  if (!lines.empty()) return lines.wrong("nothing more is expected");
  return artifact;
}

std::string infer_shape_c(const Artifact& artifact) {
  std::string text(prelude_c_types());
  text += fmt::format("int {}_infer_shape(const int64_t* p, int64_t* out);\n", artifact.name);
  text += fmt::format("int {}_infer_shape(const int64_t* p, int64_t* out) {{\n  (void)p;\n", artifact.name);
  size_t at = 0;
  for (const std::vector<Program>& output : artifact.dims) {
    for (const Program& size : output) text += fmt::format("  out[{}] = {};\n", at++, size.c_text());
  }
  return text + "  return 0;\n}\n";
}

}  // namespace tenon::compiler
