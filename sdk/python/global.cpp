// Global tensors: the functions below tenon/global_.py.
#include "core/global/global.h"

#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "core/global/checkpoint.h"
#include "core/global/pipeline.h"
#include "primitives/text/format.h"
#include "sdk/python/objects.h"

namespace tenon::python {
namespace {

using global::NdSbp;
using global::Placement;
using global::Sbp;
using Numbers = std::vector<int64_t>;

NdSbp list_of(const std::vector<Sbp>& sbp) {
  NdSbp list;
  for (const Sbp each : sbp) list.push_back(each);
  return list;
}

Numbers numbers_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

// Runs `call` without the interpreter lock, since every rank takes part in it and waits for the others.
template <class Call>
auto unlocked(const Call& call) {
  const Unlocked scope;
  return call();
}

template <class Make>
void add_factory(nb::module_& m, const char* name, const Make& make) {
  m.def(
      name,
      [make](const Numbers& size, const Placement& placement, const std::vector<Sbp>& sbp, nb::handle dtype) {
        const DType of = dtype.is_none() ? DType::f32 : require_dtype(dtype.ptr(), "a global factory");
        return object_of(unlocked([&] { return make(size, placement, list_of(sbp), of); }));
      },
      nb::arg("size"), nb::arg("placement"), nb::arg("sbp"), nb::arg("dtype").none());
}

}  // namespace

void add_global(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_global", "What tenon.global_ is made of.");
  nb::class_<Sbp>(m, "Sbp", "How a tensor is spread along one axis of the grid of a placement.")
      .def("__repr__", [](Sbp sbp) { return to_string(sbp); })
      .def(nb::self == nb::self)
      .def("__hash__", [](Sbp sbp) { return std::hash<std::string>()(to_string(sbp)); });
  m.def("split", [](int64_t axis) { return global::sbp_from(fmt::format("S({})", axis)); });
  m.attr("broadcast") = Sbp::broadcast();
  m.attr("partial_sum") = Sbp::partial();

  nb::class_<Placement>(m, "Placement", "The ranks that hold a tensor, as a grid, and the device of each.")
      .def_prop_ro("device_type", &Placement::device_type)
      .def_prop_ro("grid", [](const Placement& p) { return nb::tuple(nb::cast(numbers_of(p.grid()))); })
      .def_prop_ro("ranks", [](const Placement& p) { return std::vector<int32_t>(p.ranks().begin(), p.ranks().end()); })
      .def_prop_ro("here", &Placement::here, "True if this rank is in the placement.")
      .def("__repr__", [](const Placement& p) { return fmt::format("tenon.placement({})", p.to_string()); })
      .def(nb::self == nb::self)
      .def("__hash__", [](const Placement& p) { return std::hash<std::string>()(p.to_string()); });
  m.def("placement", [](const std::string& device, const Numbers& grid, const std::vector<int32_t>& ranks) {
    return unlocked([&] { return Placement(device, Dims(grid), ranks); });
  });
  m.def("rank", [] { return unlocked([] { return global::rank(); }); });
  m.def("world_size", [] { return unlocked([] { return global::world_size(); }); });

  const auto given = [](nb::handle tensor, const char* caller) -> Tensor& {
    Tensor* held = tensor_in(tensor.ptr());
    if (held == nullptr) throw nb::type_error(fmt::format("{}: the argument is not a Tensor.", caller).c_str());
    return *held;
  };
  m.def("is_global", [given](nb::handle x) { return global::is_global(given(x, "is_global")); });
  m.def("placement_of", [given](nb::handle x) { return global::layout_of(given(x, "placement")).placement; });
  m.def("sbp_of", [given](nb::handle x) {
    const NdSbp sbp = global::layout_of(given(x, "sbp")).sbp;
    return nb::tuple(nb::cast(std::vector<Sbp>(sbp.begin(), sbp.end())));
  });
  m.def("to_global", [given](nb::handle x, const Placement& placement, const std::vector<Sbp>& sbp) {
    const Tensor tensor = given(x, "to_global");
    return object_of(unlocked([&] { return global::to_global(tensor, placement, list_of(sbp)); }));
  });
  m.def("to_local", [given](nb::handle x) {
    const Tensor tensor = given(x, "to_local");
    return object_of(unlocked([&] { return global::to_local(tensor); }));
  });
  m.def("micro_batches", [](int64_t count, nb::handle batch, nb::handle loss) {
    const TensorList given = tensors_of(batch, "micro_batches()");
    const auto call = [function = kept(loss.ptr())](const TensorList& part) -> Tensor {
      const nb::gil_scoped_acquire locked;
      const CalledBack called(grad_enabled());
      nb::list list;
      for (const Tensor& each : part) list.append(object_of(each));
      const nb::object result = nb::borrow(function.get())(*list);
      if (const Tensor* tensor = tensor_in(result.ptr())) return *tensor;
      refuse(PyExc_TypeError, fmt::format("micro_batches: expected a Tensor as the result of the loss, not {}.",
                                          Py_TYPE(result.ptr())->tp_name));
    };
    return object_of(unlocked([&] { return global::micro_batches(count, given, call); }));
  });
  m.def("save", [](const std::string& folder, const nb::dict& tensors, const Metadata& texts) {
    const NamedTensors named = named_tensors(tensors, "save()");
    unlocked([&] { global::save(folder, named, texts); });
  });
  m.def("load", [](const std::string& path, const nb::dict& tensors, const std::vector<std::string>& texts) {
    const NamedTensors named = named_tensors(tensors, "load()");
    Metadata wanted;
    for (const std::string& name : texts) wanted.emplace(name, "");
    const std::vector<std::string> unread = unlocked([&] { return global::load(path, named, &wanted); });
    return nb::make_tuple(wanted, unread);
  });
  add_factory(m, "zeros", [](const Numbers& size, const Placement& p, const NdSbp& sbp, DType dtype) {
    return global::zeros(size, p, sbp, dtype);
  });
  add_factory(m, "ones", [](const Numbers& size, const Placement& p, const NdSbp& sbp, DType dtype) {
    return global::ones(size, p, sbp, dtype);
  });
  add_factory(m, "rand", [](const Numbers& size, const Placement& p, const NdSbp& sbp, DType dtype) {
    return global::rand(size, p, sbp, dtype);
  });
  add_factory(m, "randn", [](const Numbers& size, const Placement& p, const NdSbp& sbp, DType dtype) {
    return global::randn(size, p, sbp, dtype);
  });
}

}  // namespace tenon::python
