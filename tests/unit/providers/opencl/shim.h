// The shim: an ICD loader of OpenCL between the provider and the real one, whose device is lost on request. The
// provider's setting `library` names it; a test reaches it by dlopen and `opencl_shim_control`.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct OpenclShimControl {
  int32_t lost;       // commands and programs return CL_DEVICE_NOT_AVAILABLE
  int32_t load_lost;  // only clCreateProgramWithBinary loses the device
};

struct OpenclShimControl* opencl_shim_control(void);

#ifdef __cplusplus
}
#endif
