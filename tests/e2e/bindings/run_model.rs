// Runs a model through the bindings that bindgen makes of tenon_c.h:  run_model MODEL.onnx
#![allow(non_camel_case_types, non_upper_case_globals, dead_code)]
use std::ffi::{CStr, CString};

mod tenon {
    include!("tenon_c.rs");
}

// Ends the program if a call has failed.
fn check(status: tenon::tenon_status, error: *mut tenon::tenon_error) {
    if status == 0 {
        return;
    }
    let message = unsafe { CStr::from_ptr(tenon::tenon_error_message(error)) };
    eprintln!("{}", message.to_string_lossy());
    std::process::exit(1);
}

fn main() {
    let path = CString::new(std::env::args().nth(1).expect("usage: run_model MODEL.onnx")).unwrap();
    let mut error = std::ptr::null_mut();
    unsafe {
        let mut model = std::ptr::null_mut();
        let status = tenon::tenon_model_load(path.as_ptr(), std::ptr::null(), &mut model, &mut error);
        check(status, error);

        let mut info: tenon::tenon_value_info = std::mem::zeroed();
        info.size = std::mem::size_of::<tenon::tenon_value_info>() as _;
        let status = tenon::tenon_model_describe(model, tenon::TENON_INPUTS as i32, 0, &mut info, &mut error);
        check(status, error);
        let declared = std::slice::from_raw_parts(info.dims, info.rank as usize);
        let dims: Vec<i64> = declared.iter().map(|dim| dim.size.max(1)).collect();
        let ones = vec![1.0f32; dims.iter().product::<i64>() as usize];

        let mut input = std::ptr::null_mut();
        let status = tenon::tenon_tensor_copy(
            ones.as_ptr() as *const _, (4 * ones.len()) as _, tenon::TENON_F32 as i32, info.rank, dims.as_ptr(),
            std::ptr::null(), &mut input, &mut error);
        check(status, error);
        let (inputs, mut output) = ([input as *const _], std::ptr::null_mut());
        let status = tenon::tenon_model_run(
            model, std::ptr::null(), inputs.as_ptr(), 1, &mut output, 1, std::ptr::null(), &mut error);
        check(status, error);

        let mut facts: tenon::tenon_tensor_info = std::mem::zeroed();
        facts.size = std::mem::size_of::<tenon::tenon_tensor_info>() as _;
        check(tenon::tenon_tensor_describe(output, &mut facts, &mut error), error);
        let mut values = vec![0f32; facts.elements as usize];
        let status = tenon::tenon_tensor_read(output, values.as_mut_ptr() as *mut _, facts.bytes as _, &mut error);
        check(status, error);
        println!("{}", values.iter().map(|value| format!("{:.5}", value)).collect::<Vec<_>>().join(" "));
        tenon::tenon_tensor_free(output);
        tenon::tenon_tensor_free(input);
        tenon::tenon_model_free(model);
    }
}
