// oneDNN as a guest that is not isolated like a plug-in: its weak symbols bind to definitions that were loaded before.
#include <dnnl.hpp>

extern "C" __attribute__((visibility("default"))) int coexist_run() {
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    using Format = dnnl::memory::format_tag;
    const dnnl::memory::desc image({1, 8, 12, 12}, dnnl::memory::data_type::f32, Format::nchw);
    dnnl::memory from(image, engine), to({{1, 8, 12, 12}, dnnl::memory::data_type::f32, Format::nhwc}, engine);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return 0;
  } catch (const dnnl::error&) {
    return 1;
  }
}
