// tenon.Generator: the source of random numbers.
#include "core/tensor/generator.h"

#include "sdk/python/objects.h"

namespace tenon::python {

void add_generators(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", "A source of random numbers: tenon.rand((2,), generator=tenon.Generator(7)).")
      .def(nb::init<uint64_t>(), nb::arg("seed") = 0)
      .def(
          "manual_seed",
          [](nb::handle self, uint64_t seed) {
            nb::inst_ptr<Generator>(self)->manual_seed(seed);
            return nb::borrow(self);
          },
          nb::arg("seed"), "Sets the seed and returns the generator.")
      .def(
          "initial_seed", [](const Generator& g) { return g.state().seed; }, "The last seed that was set.")
      .def("get_state",
           [](const Generator& g) {
             const RandomRange state = g.state();
             return nb::make_tuple(state.seed, state.offset);
           })
      .def(
          "set_state",
          [](Generator& g, const nb::tuple& state) {
            g.set_state({nb::cast<uint64_t>(state[0]), nb::cast<uint64_t>(state[1])});
          },
          nb::arg("state"));
  m.attr("default_generator") = nb::cast(&default_generator(), nb::rv_policy::reference);
}

}  // namespace tenon::python
