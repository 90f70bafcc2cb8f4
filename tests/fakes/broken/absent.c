__attribute__((visibility("default"))) int tenon_test_absent_function(void);
int tenon_test_absent_function(void) { return 0; }
