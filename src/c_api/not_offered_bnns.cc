// Functions of the BNNS C API that the library does not offer yet: exported, so that programs link, and failing with a
// reason (report_not_offered of src/core/error.h). Each leaves this file when its family of operators arrives;
// src/c_api/symbols.h is the list. There are none at present: all functions of bnns.h are offered.
