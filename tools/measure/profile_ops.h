/* profile_ops.h - where the time of a pipeline's launches goes: by op, or by layer, next to what
 * the machine could do. */
#ifndef TEC_TOOLS_MEASURE_PROFILE_OPS_H
#define TEC_TOOLS_MEASURE_PROFILE_OPS_H

#include "tools/measure/op_times.h"
#include "tools/measure/profile.h"

enum { TEC_PROFILE_PARTS = 64 };

/* A part that was timed, one launch of it: of a decode a step of a full batch. */
struct tec_profiled_part {
    const char *name;
    int chain;
    double launch_us, sum_us; /* the launch whole; the sum of its calls, each by itself */
};

/* Calls that count together: of a part and stage, by op or by layer. */
struct tec_profiled_op {
    int part;
    enum tec_stage stage;
    const char *node; /* whose time it is */
    const char *op;   /* the calls' label; "" = of all ops of the layer */
    int layer;        /* -1 = of all layers */
    int64_t calls;
    double us, roof_us; /* roof: the least that the measured rates allow */
    struct tec_cost cost;
};

/* FLOP a second of the products of a kernel; `used`: that some call is one. The first is also what
 * attention's products are held against. */
struct tec_profiled_rate {
    const char *name;
    enum tec_kernel_id kernel;
    bool rounded, used;
    double flop_s;
};
enum { TEC_PROFILE_RATES = 6 };

struct tec_profiled_ops {
    int n_parts, n, room;
    struct tec_profiled_part parts[TEC_PROFILE_PARTS];
    struct tec_profiled_op *ops;                       /* [n] in the order of the launch */
    struct tec_profiled_rate rates[TEC_PROFILE_RATES]; /* measured here: the roof; 0 on a GPU */
    double bytes_s;
    double frame_us, sum_us;             /* of all parts */
    char left_out[120];                  /* a part whose work nobody counts; "" = none */
    const struct tec_pipeline *pipeline; /* of which the models' settings are told; borrowed */
    const char *dtype;                   /* of all models, NULL: as the pipeline says */
    const char *settings;                /* as costs_settings.h has them, in the call's arena */
};

/* Behind tec_profile_prepare. With `layers` by layer, with `both` by op and layer. TEC_UNSUPPORTED
 * where the device cannot be timed call by call. */
struct tec_profile_ops_options {
    bool layers, both;
    int passes;
};
enum tec_status tec_profile_time_ops(struct tec_profiled_ops *out, struct tec_profile *p,
                                     const struct tec_profile_ops_options *options,
                                     struct tec_error *err);

/* As a table, the longest first; as JSON {ops, parts, frame_us, ...} (a new reference); as CSV; as
 * a flame graph of ops in layers in nodes, which needs both. */
void tec_profile_print_ops(const struct tec_profiled_ops *ops, FILE *out);
json_t *tec_profile_ops_json(const struct tec_profiled_ops *ops);
void tec_profile_ops_csv(const struct tec_profiled_ops *ops, FILE *out);
enum tec_status tec_profile_flame(const struct tec_profiled_ops *ops, const char *title,
                                  const char **text, size_t *n, struct tec_arena *arena,
                                  struct tec_error *err);

#endif
