/* device_kind.h - what a kind of device implements behind the seam, and the list it is given. */
#ifndef TEC_KERNELS_DEVICE_KIND_H
#define TEC_KERNELS_DEVICE_KIND_H

#include "kernels/device.h"

#include <stdatomic.h>

/* One step of a recorded list. */
enum tec_capture_step_kind { TEC_RUN, TEC_REPEAT, TEC_REPEAT_END, TEC_MARK };

struct tec_capture_step {
    enum tec_capture_step_kind kind;
    enum tec_kernel_id kernel;
    const void *args;
    const char *label;
    const int *count, *stop; /* REPEAT */
    int other;               /* REPEAT: its end; REPEAT_END: its REPEAT; MARK: the mark */
    bool barrier;
    bool passes;  /* RUN: only the next command reads what it writes */
    bool branch;  /* of the branch */
    bool joins;   /* waits for the branch */
    uint64_t key; /* RUN: of commands that take the same time; 0 = like no other */
    double work;  /* RUN: FLOP and bytes */
};

struct tec_capture {
    struct tec_device *device;
    enum tec_stream stream;
    struct tec_arena *arena;
    struct tec_capture_step *commands;
    int n, capacity;
    int open;           /* index of the REPEAT in progress, -1 = none */
    bool branch, joins; /* of the next command */
    int *lanes;         /* of a replay on the main stream (lanes.c); 0: all that there are */
    int kernels, nodes;
    size_t bytes;
    enum tec_status status; /* the first failure */
    void *compiled;         /* the kind's own */
    uint64_t *stamps; /* device: the clock twice in front of all, then behind each command that
                       * starts anything; NULL: it is not timed */
};

/* Stamps in front of the first command's. */
enum { TEC_STAMPS_BEFORE = 2 };

/* The members of every device; a kind's own struct begins with it. */
struct tec_device {
    const struct tec_device_kind *kind;
    struct tec_heap *heap;
    struct tec_heap memory; /* device memory, counted apart */
    int lanes, beside;
    bool branches;
    bool chooses;                      /* the lanes of small captures: nobody has said how many */
    int64_t workspace, rows;           /* taken; what take_rows will take, 0 when it has */
    enum tec_matrix_layout layout;     /* set by the kind's open */
    const char *computes;              /* the same */
    const struct tec_kernels *kernels; /* the same; NULL: replays run on no table */
    struct tec_team *team;             /* its threads; NULL: it has none. The kind's, who ends it */
    bool measures;                     /* hands out addresses without memory behind them */
    uintptr_t address;                 /* the next one */
    _Atomic bool failed;               /* `failure` is set before, once */
    struct tec_error failure;
};

/* Sample a capture (sampled.c); false: it is to be run as it is. */
bool tec_device_sample(struct tec_device *device, const struct tec_capture *capture,
                       struct tec_replay *replay);

/* Behind a run that does not count: the replay's tables are again what they were before it. */
void tec_device_renew(struct tec_device *device, const struct tec_capture *capture,
                      const struct tec_replay *replay);

/* FLOP and bytes of a replay, all turns of its loops included (sampled.c). */
double tec_capture_work(const struct tec_capture *capture);

/* In the warm-up: try how many lanes a small capture is best replayed with (lanes.c). */
void tec_device_choose_lanes(struct tec_device *device, const struct tec_capture *capture,
                             struct tec_replay *replay);

/* Members are those of device.h by name. A kind embeds struct tec_device as its first member. */
struct tec_device_kind {
    const char *name;
    bool reads_host;
    bool stamps; /* compile knows captures with stamps */
    /* Refuse options that this kind of device cannot have, before anything is allocated. */
    enum tec_status (*check)(const struct tec_device_options *options, struct tec_error *err);
    enum tec_matrix_layout (*layout)(const struct tec_device_options *options);
    int (*lanes)(const struct tec_device_options *options);
    int64_t (*workspace)(const struct tec_device_options *options);
    int64_t (*rows)(const struct tec_device_options *options);  /* NULL: take_rows takes nothing */
    bool (*branches)(const struct tec_device_options *options); /* NULL: never */
    size_t (*scratch)(int lanes, int head_dim);
    /* Make the kind's struct; the caller fills what struct tec_device has in common. */
    enum tec_status (*open)(struct tec_device **out, const struct tec_device_options *options,
                            struct tec_heap *heap, struct tec_error *err);
    void (*close)(struct tec_device *device);
    /* Take what `rows` said, and count it. Not called where that was nothing. */
    enum tec_status (*take_rows)(struct tec_device *device, struct tec_error *err);
    void *(*get)(struct tec_device *device, size_t size);
    void (*put)(struct tec_device *device, void *memory);
    void *(*pin)(struct tec_device *device, size_t size); /* NULL, with all below: plain memory */
    void (*unpin)(struct tec_device *device, void *memory);
    void (*send)(struct tec_device *device, void *to, const void *from, size_t size);
    void (*note)(struct tec_device *device, int note);
    void (*await)(struct tec_device *device, enum tec_stream stream, int note);
    int64_t (*room)(const struct tec_device *device);
    bool (*address)(const struct tec_device *device, char address[32]); /* NULL: it is no card */
    void (*upload)(struct tec_device *device, enum tec_stream stream, void *to, const void *from,
                   size_t size);
    void (*download)(struct tec_device *device, enum tec_stream stream, void *to, const void *from,
                     size_t size);
    void (*fetch)(struct tec_device *device, void *to, const void *from, size_t size);
    /* Make `compiled` of the recorded list; NULL: the list is run as it is. */
    enum tec_status (*compile)(struct tec_capture *capture, struct tec_error *err);
    void (*discard)(struct tec_capture *capture);
    void (*replay)(struct tec_device *device, const struct tec_capture *capture,
                   struct tec_replay *replay);
    void (*fork)(struct tec_device *device, void (*work)(void *user), void *user);
    void (*join)(struct tec_device *device);
};

#define DEVICE(name) extern const struct tec_device_kind tec_device_kind_##name;
#include "kernels/devices.def"
#undef DEVICE

#endif
