// Runs a model through cgo, which reads tenon_c.h:  run_model MODEL.onnx
package main

/*
#include <stdlib.h>
#include <tenon/tenon_c.h>

static tenon_value_info value_info(void) { return TENON_INIT(tenon_value_info); }
static tenon_tensor_info tensor_info(void) { return TENON_INIT(tenon_tensor_info); }
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// Ends the program if a call has failed.
func check(status C.tenon_status, failure *C.tenon_error) {
	if status == C.TENON_OK {
		return
	}
	fmt.Fprintln(os.Stderr, C.GoString(C.tenon_error_message(failure)))
	os.Exit(1)
}

func main() {
	path := C.CString(os.Args[1])
	defer C.free(unsafe.Pointer(path))
	var failure *C.tenon_error
	var model *C.tenon_model
	status := C.tenon_model_load(path, nil, &model, &failure)
	check(status, failure)

	info := C.value_info()
	status = C.tenon_model_describe(model, C.TENON_INPUTS, 0, &info, &failure)
	check(status, failure)
	elements := 1
	dims := make([]C.int64_t, int(info.rank))
	for axis, dim := range unsafe.Slice(info.dims, int(info.rank)) {
		dims[axis] = dim.size
		if dim.size < 1 {
			dims[axis] = 1
		}
		elements *= int(dims[axis])
	}
	ones := make([]float32, elements)
	for i := range ones {
		ones[i] = 1
	}

	var input, output *C.tenon_tensor
	status = C.tenon_tensor_copy(unsafe.Pointer(&ones[0]), C.size_t(4*elements), C.TENON_F32, info.rank, &dims[0], nil,
		&input, &failure)
	check(status, failure)
	status = C.tenon_model_run(model, nil, &input, 1, &output, 1, nil, &failure)
	check(status, failure)

	facts := C.tensor_info()
	status = C.tenon_tensor_describe(output, &facts, &failure)
	check(status, failure)
	values := make([]float32, int(facts.elements))
	status = C.tenon_tensor_read(output, unsafe.Pointer(&values[0]), C.size_t(facts.bytes), &failure)
	check(status, failure)
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprintf("%.5f", value)
	}
	fmt.Println(strings.Join(texts, " "))
	C.tenon_tensor_free(output)
	C.tenon_tensor_free(input)
	C.tenon_model_free(model)
}
