// The extension module tenon._tenon. The package (tenon/__init__.py) re-exports its names.
#include "core/tensor/version.h"
#include "sdk/python/objects.h"

NB_MODULE(_tenon, m) {
  using namespace tenon::python;
  namespace nb = nanobind;
  nanobind::set_leak_warnings(false);  // a daemon thread that still computes keeps its objects at exit
  add_errors(m);
  add_dtypes(m);
  add_devices(m);
  add_generators(m);
  add_autocast(m);
  const nb::object tensor_type = add_tensor(m);
  add_factories(m);
  add_ops(m, tensor_type);
  add_gradients(m);
  add_compile(m);
  add_control_flow(m);
  add_files(m);
  add_global(m);
  add_report(m);
  add_interrupt();
  m.attr("__version__") = tenon::version();
  m.attr("_max_rank") = EP_MAX_RANK;
}
