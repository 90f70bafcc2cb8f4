// Runs an ONNX model on a device, with ones as inputs:  run_model MODEL.onnx [DEVICE]
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon_c.h>

#define MOST 16  // inputs or outputs

static tenon_error* error = NULL;

// Ends the program if a call has failed.
static void check(tenon_status status) {
  if (status == TENON_OK) return;
  fprintf(stderr, "%s\n%s\n", tenon_error_message(error), tenon_error_remedy(error));
  tenon_error_free(error);
  exit(1);
}

// A tensor of ones. An open size becomes 1.
static tenon_tensor* ones(const tenon_value_info* info) {
  int64_t dims[TENON_MAX_RANK] = {0};
  tenon_tensor *floats = NULL, *tensor = NULL;
  size_t elements = 1;
  for (int32_t axis = 0; axis < info->rank; ++axis) {
    dims[axis] = info->dims[axis].size < 0 ? 1 : info->dims[axis].size;
    elements *= (size_t)dims[axis];
  }
  float* values = malloc((elements + 1) * sizeof(float));
  for (size_t i = 0; i < elements; ++i) values[i] = 1.0f;
  check(tenon_tensor_copy(values, elements * sizeof(float), TENON_F32, info->rank, dims, "cpu", &floats, &error));
  check(tenon_tensor_to_dtype(floats, info->dtype, &tensor, &error));
  tenon_tensor_free(floats);
  free(values);
  return tensor;
}

// Prints the type of an output, and its first element as a number.
static void print_output(const tenon_value_info* info, const tenon_tensor* output) {
  tenon_tensor* floats = NULL;
  tenon_tensor_info facts = TENON_INIT(tenon_tensor_info);
  check(tenon_tensor_to_dtype(output, TENON_F32, &floats, &error));
  check(tenon_tensor_describe(floats, &facts, &error));
  float* values = malloc((size_t)facts.bytes + 1);
  check(tenon_tensor_read(floats, values, (size_t)facts.bytes, &error));
  printf("%s: %s on %s, begins with %g\n", info->name, info->text, facts.device, facts.elements > 0 ? values[0] : 0);
  free(values);
  tenon_tensor_free(floats);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: run_model MODEL.onnx [DEVICE]\n");
    return 2;
  }
  tenon_model* model = NULL;
  tenon_model_options options = TENON_INIT(tenon_model_options);
  options.device = argc > 2 ? argv[2] : NULL;
  check(tenon_model_load(argv[1], &options, &model, &error));

  const tenon_tensor* inputs[MOST] = {NULL};
  tenon_tensor* outputs[MOST] = {NULL};
  const size_t input_count = tenon_model_count(model, TENON_INPUTS);
  const size_t output_count = tenon_model_count(model, TENON_OUTPUTS);
  tenon_value_info info = TENON_INIT(tenon_value_info);
  if (input_count > MOST || output_count > MOST) return 2;
  for (size_t i = 0; i < input_count; ++i) {
    check(tenon_model_describe(model, TENON_INPUTS, i, &info, &error));
    inputs[i] = ones(&info);
  }
  check(tenon_model_run(model, NULL, inputs, input_count, outputs, output_count, NULL, &error));
  for (size_t i = 0; i < output_count; ++i) {
    check(tenon_model_describe(model, TENON_OUTPUTS, i, &info, &error));
    print_output(&info, outputs[i]);
    tenon_tensor_free(outputs[i]);
  }
  for (size_t i = 0; i < input_count; ++i) tenon_tensor_free((tenon_tensor*)inputs[i]);
  tenon_model_free(model);
  return 0;
}
