/* stand_in.h - what a test may change in the stand-in for NVML, by its symbol `nvml_stand_in`. */
#ifndef TEC_TESTS_NVML_STAND_IN_H
#define TEC_TESTS_NVML_STAND_IN_H

struct nvml_stand_in {
    int begun;                   /* inits that no shutdown has ended */
    int init_answer, answer;     /* of nvmlInit_v2, of the counter; 0 = all is well */
    unsigned long long mj, more; /* the counter, and what each look adds to it */
};

extern struct nvml_stand_in nvml_stand_in;

#endif
