// convolution_weight over f32 on oneDNN's own kernels, in pieces of output channels.
//
// Within a primitive for several threads, oneDNN adds their sums behind a barrier that hangs where a region has fewer
// threads. So each piece is a primitive for one thread, and threads share the pieces, which have no sums in common.
// Pieces are cut by shapes alone: results do not depend on the number of threads.
#include <algorithm>
#include <atomic>

#include "providers/cpu/gradients/gradients.h"
#include "providers/cpu/onednn/program.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

using dnnl::memory;

constexpr int64_t block = 16;        // channels that a kernel computes at once
constexpr int64_t most_pieces = 16;  // a piece reads all of SRC

int64_t channels_of_piece(int64_t channels) {
  return (channels + block * most_pieces - 1) / (block * most_pieces) * block;
}

// A primitive and the memories that it takes. A reorder between equal layouts is no step.
struct Step {
  Step() = default;
  explicit Step(const dnnl::primitive_desc_base& desc) : primitive(desc.get()) {}
  static Step reorder(const dnnl::engine& engine, const memory::desc& from, const memory::desc& to) {
    return from == to ? Step() : Step(make_reorder(engine, from, to));
  }

  bool empty() const { return primitive.get(true) == nullptr; }
  bool run(const dnnl::stream& stream, std::initializer_list<dnnl_exec_arg_t> arguments) const {
    return dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arguments.size()),
                                  arguments.begin()) == dnnl_success;
  }

  dnnl::primitive primitive;
};

// What computes a piece of some number of channels.
struct Piece {
  memory::desc given_gradient, given_dst;    // as they lie in the operands
  memory::desc src, gradient, dst, scratch;  // as the kernel wants them
  Step lay_out, compute, hand_out;
};

uint64_t room_of(const memory::desc& desc) { return (desc.get_size() + 255) / 256 * 256; }

Window window_of(const ep_primitive_desc& desc) {
  const ep_convolution_weight_attributes& at = desc.attributes.convolution_weight;
  const ep_operand_desc& src = *operand(desc, EP_ROLE_SRC);
  const ep_operand_desc& gradient = *operand(desc, EP_ROLE_GRADIENT);
  Window window;
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    const int64_t kernel = desc.operands[0].dims[2 + i];
    window.kernel.push_back(kernel);
    window.stride.push_back(at.stride[i]);
    window.dilation.push_back(at.dilation[i] - 1);
    window.pad_low.push_back(at.pad_low[i]);
    // What makes the sizes agree: the attribute may leave a rest.
    window.pad_high.push_back((gradient.dims[2 + i] - 1) * at.stride[i] + (kernel - 1) * at.dilation[i] + 1 -
                              src.dims[2 + i] - at.pad_low[i]);
  }
  return window;
}

// The first `channels` along `axis`.
ep_operand_desc part_of(ep_operand_desc operand, int32_t axis, int64_t channels) {
  operand.dims[axis] = channels;
  return operand;
}

memory::desc any_layout(const ep_operand_desc& operand) {
  return memory::desc(memory::dims(operand.dims, operand.dims + operand.rank), memory::data_type::f32,
                      memory::format_tag::any);
}

// Returns why oneDNN has no kernel. To be called where oneDNN's regions have one thread.
std::string make_piece(const dnnl::engine& engine, const ep_primitive_desc& desc, int64_t channels, Piece* piece) {
  const ep_operand_desc gradient = part_of(*operand(desc, EP_ROLE_GRADIENT), 1, channels);
  const ep_operand_desc dst = part_of(desc.operands[0], 0, channels);
  const dnnl::primitive_desc_base made =
      make_convolution_weight(engine, window_of(desc), any_layout(*operand(desc, EP_ROLE_SRC)), any_layout(dst),
                              any_layout(gradient), user_scratchpad());
  if (!made) return "nothing";
  if (is_reference(made) || implementation_of(made).rfind("gemm", 0) == 0) return implementation_of(made);
  piece->given_gradient = layout_of(gradient);
  piece->given_dst = layout_of(dst);
  piece->src = made.query_md(dnnl::query::src_md);
  piece->gradient = made.query_md(dnnl::query::diff_dst_md);
  piece->dst = made.query_md(dnnl::query::diff_weights_md);
  piece->scratch = made.query_md(dnnl::query::scratchpad_md);
  piece->lay_out = Step::reorder(engine, piece->given_gradient, piece->gradient);
  piece->compute = Step(made);
  piece->hand_out = Step::reorder(engine, piece->dst, piece->given_dst);
  return {};
}

class ConvolutionWeightPieces final : public ep_primitive {
 public:
  // `last` computes the channels that are left over, or as many as the others.
  ConvolutionWeightPieces(const ep_primitive_desc& desc, const dnnl::engine& engine, Piece piece, Piece last,
                          int64_t nanoseconds)
      : desc_(desc),
        engine_(engine),
        piece_(std::move(piece)),
        last_(std::move(last)),
        src_(find_operand(desc, EP_ROLE_SRC)),
        gradient_(find_operand(desc, EP_ROLE_GRADIENT)),
        channels_(channels_of_piece(desc.operands[0].dims[0])),
        pieces_((desc.operands[0].dims[0] + channels_ - 1) / channels_),
        nanoseconds_(nanoseconds),
        given_src_(layout_of(desc.operands[src_])),
        lay_out_(Step::reorder(engine, given_src_, piece_.src)) {}

  // SRC as the kernels want it; and for each thread its piece of GRADIENT and DST, and a scratchpad.
  uint64_t workspace(const ep_shape*) const override {
    return room_of_src() + static_cast<uint64_t>(std::min<int64_t>(device->threads, pieces_)) * room_of_thread();
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    std::atomic<bool> failed = false;
    if (!lay_out_.empty() && !lay_out_src(launch)) failed = true;
    parallel(static_cast<int32_t>(std::min<int64_t>(device->threads, pieces_)), nanoseconds_,
             [&](int32_t part, int32_t parts) {
               const OpenMpWidth alone(1);
               for (int64_t i = pieces_ * part / parts; i < pieces_ * (part + 1) / parts; ++i) {
                 if (!run_piece(launch, i)) failed = true;
               }
             });
    if (!failed) return EP_STATUS_OK;
    return fail_text(host, error, EP_STATUS_INTERNAL,
                     "oneDNN failed to compute the gradient of a convolution's weight.");
  }

 private:
  uint64_t room_of_src() const { return lay_out_.empty() ? 0 : room_of(piece_.src); }
  uint64_t room_of_thread() const {
    return room_of(piece_.gradient) + room_of(piece_.dst) + std::max(room_of(piece_.scratch), room_of(last_.scratch));
  }

  char* src_of(const ep_launch& launch) const {
    return address_of(lay_out_.empty() ? launch.operands[src_] : launch.workspace);
  }

  bool lay_out_src(const ep_launch& launch) const try {
    const WideLease lease(device->threads, static_cast<int64_t>(piece_.src.get_size() / 4));
    const OpenMpWidth width(lease.width());
    const dnnl::stream stream(engine_);
    const memory from(given_src_, engine_, address_of(launch.operands[src_]));
    const memory to(piece_.src, engine_, address_of(launch.workspace));
    return lay_out_.run(stream, {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}});
  } catch (const dnnl::error&) {
    return false;
  }

  bool run_piece(const ep_launch& launch, int64_t i) const try {
    const Piece& piece = i + 1 == pieces_ ? last_ : piece_;
    char* const room =
        address_of(launch.workspace) + room_of_src() + static_cast<uint64_t>(runner()) * room_of_thread();
    const int64_t first = i * channels_ * static_cast<int64_t>(sizeof(float));
    char* const given = address_of(launch.operands[gradient_]) + first * desc_.operands[gradient_].strides[1];
    char* const result = address_of(launch.operands[0]) + first * desc_.operands[0].strides[0];
    char* const blocked = room + room_of(piece_.gradient);
    const dnnl::stream stream(engine_);
    const memory src(piece.src, engine_, src_of(launch));
    const memory gradient(piece.gradient, engine_, piece.lay_out.empty() ? given : room);
    const memory dst(piece.dst, engine_, piece.hand_out.empty() ? result : blocked);
    const memory scratch(piece.scratch, engine_, blocked + room_of(piece_.dst));
    if (!piece.lay_out.empty()) {
      const memory from(piece.given_gradient, engine_, given);
      if (!piece.lay_out.run(stream, {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, gradient.get()}})) return false;
    }
    if (!piece.compute.run(stream, {{DNNL_ARG_SRC, src.get()},
                                    {DNNL_ARG_DIFF_DST, gradient.get()},
                                    {DNNL_ARG_DIFF_WEIGHTS, dst.get()},
                                    {DNNL_ARG_SCRATCHPAD, scratch.get()}})) {
      return false;
    }
    if (piece.hand_out.empty()) return true;
    const memory to(piece.given_dst, engine_, result);
    return piece.hand_out.run(stream, {{DNNL_ARG_FROM, dst.get()}, {DNNL_ARG_TO, to.get()}});
  } catch (const dnnl::error&) {
    return false;
  }

  ep_primitive_desc desc_;
  dnnl::engine engine_;
  Piece piece_, last_;
  int32_t src_;
  int32_t gradient_;
  int64_t channels_;
  int64_t pieces_;
  int64_t nanoseconds_;
  memory::desc given_src_;
  Step lay_out_;
};

// Each weight meets every position of GRADIENT.
int64_t work_of(const ep_primitive_desc& desc) {
  const ep_operand_desc& gradient = *operand(desc, EP_ROLE_GRADIENT);
  int64_t work = 2 * gradient.dims[0];
  for (int32_t axis = 0; axis < gradient.rank; ++axis) work *= desc.operands[0].dims[axis];
  for (int32_t axis = 2; axis < gradient.rank; ++axis) work *= gradient.dims[axis];
  return work;
}

}  // namespace

Refusal ConvolutionWeight::onednn_why_not(const ep_device& device, const ep_primitive_desc& desc,
                                          ep_support_info& info) {
  if (Refusal refusal = why_not(device, desc, info)) return refusal;
  info.flags &= ~static_cast<uint64_t>(EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES);
  if (is_dynamic(desc)) return Refusal::because("oneDNN's convolution is made for static dims");
  if (is_huge(desc)) return Refusal::because("an operand of 2^31 elements or more");
  const int64_t groups = desc.attributes.convolution_weight.groups;
  if (groups != 1) return Refusal::because("%lld groups", static_cast<long long>(groups));
  if (desc.operands[0].dims[0] < block) return Refusal::because("few output channels");
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.dtype != EP_DTYPE_f32)
      return Refusal::because("operand %u is %s, not f32", i, dtype_name(operand.dtype));
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if (operand.dims[axis] == 0) return Refusal::because("operand %u is empty", i);
      if (operand.strides[axis] == 0 && operand.dims[axis] != 1)
        return Refusal::because("operand %u is repeated by stride 0", i);
    }
  }
  return {};
}

Refusal ConvolutionWeight::onednn_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                       ep_primitive_info& info) {
  const OpenMpWidth alone(1);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const int64_t all = desc.operands[0].dims[0];
  const int64_t channels = channels_of_piece(all);
  Piece piece, last;
  std::string refused = make_piece(engine, desc, channels, &piece);
  if (refused.empty() && all % channels != 0) refused = make_piece(engine, desc, all % channels, &last);
  if (!refused.empty()) return Refusal::because("oneDNN has only '%s' for this gradient", refused.c_str());
  if (all % channels == 0) last = piece;
  if (last.src != piece.src) return Refusal::because("oneDNN wants two layouts of SRC");
  info.host_bytes = static_cast<uint64_t>(7) * 160 * 1024;
  *out = make_primitive<ConvolutionWeightPieces>(device, desc, engine, std::move(piece), std::move(last),
                                                 work_of(desc) / 60);
  return {};
}

}  // namespace tenon::provider::cpu
