/* certificate.h - what a verification showed, to be kept: which program and files, on which
 * machine, each comparison with its error and bound. */
#ifndef TEC_TESTS_JUDGE_CERTIFICATE_H
#define TEC_TESTS_JUDGE_CERTIFICATE_H

#include "base/arena.h"
#include "base/error.h"
#include "kernels/device.h"
#include "tests/judge/stage_times.h"

#include <jansson.h>
#include <stdio.h>

/* Zero-initialise. */
struct tec_certificate {
    json_t *checks, *files, *latency;
};

/* The lines that a case printed, as `verify` does with JSON; how long its launches took, which is
 * taken; and the files of its folder, hashed. */
enum tec_status tec_certificate_add(struct tec_certificate *c, const char *folder,
                                    const char *lines, size_t n, struct tec_stage_times *times,
                                    struct tec_error *err);

/* Write certificate.json and certificate.html into the folder `path`, which is made where it is not
 * there. `device` is opened for its facts. TEC_IO, TEC_NO_MEMORY, TEC_DEVICE. */
struct tec_certificate_facts {
    const char *path, *dtype;
    const struct tec_device_options *device;
    int checks, failed, unjudged, not_compared, in_part;
    struct tec_heap *heap;
};
enum tec_status tec_certificate_write(const struct tec_certificate *c,
                                      const struct tec_certificate_facts *facts,
                                      struct tec_error *err);
void tec_certificate_free(struct tec_certificate *c);

#endif
