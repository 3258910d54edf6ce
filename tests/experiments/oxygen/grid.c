/* grid.c - the points of OxyGen's figures 4 to 7 and table 2. */
#include "tests/experiments/oxygen/oxygen.h"

#include <string.h>

const char *const tec_oxygen_settings[TEC_OXYGEN_SETTINGS] = {
    "baseline", "shared_kv", "continuous_batching", "parallel_mps"};
const char *const tec_oxygen_policies[TEC_OXYGEN_SETTINGS] = {"isolated", "shared_kv", "oxygen",
                                                              "two_engines"};
const char *const tec_oxygen_inputs[TEC_OXYGEN_INPUTS] = {"compact", "padded"};

const struct tec_oxygen_robot tec_oxygen_robots[TEC_OXYGEN_ROBOTS] = {
    {"libero", "pipelines/pi05_libero.lua", "pi05_o2_libero", "LIBERO"},
    {"droid", "pipelines/pi05_droid.lua", "pi05_o2_droid", "DROID"},
    {"aloha", "pipelines/pi05_aloha.lua", "pi05_o2_aloha", "ALOHA"},
};

const int tec_oxygen_s[] = {5, 10, 15, 20, 0};
const int tec_oxygen_n[] = {5, 10, 15, 20, 30, 0};
const int tec_oxygen_k[] = {1, 2, 3, 5, 6, 10, 15, 30, 0};

#define UNIFORM(text, interval, rate)                                                          \
    {                                                                                          \
        "uniform", text, "uniform:" interval, "uniform_arrivals(rate=" interval ", t_max=30)", \
            "uniform_" interval "_30", rate                                                    \
    }
#define POISSON(lambda, rate)                                                               \
    {                                                                                       \
        "poisson", lambda, "poisson:" lambda, "poisson_arrivals(lam=" lambda ", t_max=30)", \
            "poisson_" lambda "_30", rate                                                   \
    }
#define LENGTHS(text, some, many, rate)                                             \
    {                                                                               \
        "random_length", text, "lengths:5,20," many,                                \
            "random_length_arrivals(t_max_values=[5, 20], weights=[" some ", " many \
            "], rate=1, seed=42)",                                                  \
            "random_length_v5_20_w" some "_" many "_1_42", rate                     \
    }
const struct tec_oxygen_load tec_oxygen_loads[] = {
    UNIFORM("1/4", "4", 0.25),
    UNIFORM("1/2", "2", 0.5),
    UNIFORM("1", "1", 1.0),
    UNIFORM("2", "0.5", 2.0),
    UNIFORM("4", "0.25", 4.0),
    POISSON("0.5", 0.5),
    POISSON("1.0", 1.0),
    POISSON("1.5", 1.5),
    POISSON("2.0", 2.0),
    LENGTHS("1/9", "0.9", "0.1", 0.1),
    LENGTHS("3/7", "0.7", "0.3", 0.3),
    LENGTHS("5/5", "0.5", "0.5", 0.5),
    LENGTHS("7/3", "0.3", "0.7", 0.7),
    LENGTHS("9/1", "0.1", "0.9", 0.9),
    {0},
};

enum { FRAMES_QUICK = 4, FRAMES_SMALL = 6, FRAMES_FULL = 3, FRAMES_LOAD = 44, LOAD_QUICK = 8 };

/* A point, unless the suite is full or has it already. */
static void add(struct tec_oxygen *s, int robot, enum tec_oxygen_input input,
                enum tec_oxygen_setting setting, int S, int N, int k)
{
    if (tec_oxygen_find(s, robot, setting, input, S, N, k ? k : -1) ||
        s->n_points == TEC_OXYGEN_POINTS)
        return;
    struct tec_oxygen_point *p = &s->points[s->n_points++];
    int frames = s->full ? FRAMES_FULL : s->quick ? FRAMES_QUICK : FRAMES_SMALL;
    *p = (struct tec_oxygen_point){.robot = robot,
                                   .S = S,
                                   .N = N,
                                   .k = k,
                                   .setting = setting,
                                   .input = input,
                                   .warmup = k ? (N + k - 1) / k : 1,
                                   .frames = s->frames ? s->frames : frames};
    p->frames = (p->frames + s->rounds - 1) / s->rounds;
}

static bool wanted(const struct tec_oxygen *s, const char *experiment)
{
    return s->only ? strcmp(s->only, experiment) == 0 : strcmp(experiment, "headline") != 0;
}

/* What --quick, the full size and the headline leave of the sweeps. */
static bool taken(const struct tec_oxygen *s, const int *of, int value)
{
    static const int some[3][4] = {{5, 10}, {5, 15, 30}, {1, 5, 30}}, one[3][2] = {{10}, {30}, {5}};
    int which = of == tec_oxygen_s ? 0 : of == tec_oxygen_n ? 1 : 2;
    bool headline = s->full || wanted(s, "headline");
    const int *kept = headline ? one[which] : s->quick ? some[which] : of;
    while (*kept && *kept != value)
        kept++;
    return *kept;
}

/* Fig 4, 5 and 6 of a robot: N at k = 5, k at N = 30. The parallel baseline of LIBERO and of the
 * padded input, at S = 10. */
static void add_sweeps(struct tec_oxygen *s, int robot, enum tec_oxygen_input input, int S)
{
    bool pair = (robot == 0 || input == TEC_OXYGEN_PADDED) && S == 10 && !s->full;
    for (const int *n = tec_oxygen_n; *n; n++) {
        if (!taken(s, tec_oxygen_n, *n))
            continue;
        add(s, robot, input, TEC_OXYGEN_BASELINE, S, *n, 0);
        add(s, robot, input, TEC_OXYGEN_SHARED, S, *n, 0);
        add(s, robot, input, TEC_OXYGEN_BATCHING, S, *n, 5);
        if (pair)
            add(s, robot, input, TEC_OXYGEN_PARALLEL, S, *n, 0);
    }
    for (const int *k = tec_oxygen_k; *k; k++)
        if (taken(s, tec_oxygen_k, *k))
            add(s, robot, input, TEC_OXYGEN_BATCHING, S, 30, *k);
}

/* Table 2 of LIBERO: N = 20, batches of 2 and 4. */
static void add_table(struct tec_oxygen *s)
{
    add(s, 0, TEC_OXYGEN_COMPACT, TEC_OXYGEN_BASELINE, 10, 20, 0);
    add(s, 0, TEC_OXYGEN_COMPACT, TEC_OXYGEN_SHARED, 10, 20, 0);
    add(s, 0, TEC_OXYGEN_COMPACT, TEC_OXYGEN_PARALLEL, 10, 20, 0);
    add(s, 0, TEC_OXYGEN_COMPACT, TEC_OXYGEN_BATCHING, 10, 20, 10);
    add(s, 0, TEC_OXYGEN_COMPACT, TEC_OXYGEN_BATCHING, 10, 20, 5);
}

static void add_load(struct tec_oxygen *s, const struct tec_oxygen_load *load, bool together)
{
    if (s->n_points == TEC_OXYGEN_POINTS)
        return;
    struct tec_oxygen_point *p = &s->points[s->n_points++];
    *p = (struct tec_oxygen_point){.S = 10,
                                   .N = 30,
                                   .k = 5,
                                   .setting = TEC_OXYGEN_BATCHING,
                                   .load = load,
                                   .together = together,
                                   .warmup = 6,
                                   .frames = s->quick ? LOAD_QUICK : FRAMES_LOAD};
    p->frames = (p->frames + s->rounds - 1) / s->rounds;
}

/* Fig 7: LIBERO, S = 10, N = 30, k = 5, 50 frames of which 6 are warm-up. Requests of random length
 * come one a frame, so there is nothing to put together. */
static void add_loads(struct tec_oxygen *s)
{
    for (int i = 0; tec_oxygen_loads[i].category; i++) {
        if (s->quick && i != 0 && i != 4 && i != 7 && i != 11)
            continue;
        add_load(s, &tec_oxygen_loads[i], false);
        if (strcmp(tec_oxygen_loads[i].category, "random_length") != 0)
            add_load(s, &tec_oxygen_loads[i], true);
    }
}

static void add_robots(struct tec_oxygen *suite, int S)
{
    add_sweeps(suite, 0, TEC_OXYGEN_COMPACT, S);
    if (suite->quick && S != 10)
        return;
    for (int robot = 1; robot < TEC_OXYGEN_ROBOTS; robot++)
        add_sweeps(suite, robot, TEC_OXYGEN_COMPACT, S);
    add_sweeps(suite, TEC_OXYGEN_ROBOTS - 1, TEC_OXYGEN_PADDED, S);
}

enum tec_status tec_oxygen_grid(struct tec_oxygen *suite, struct tec_error *err)
{
    suite->n_points = 0;
    for (const int *S = tec_oxygen_s; *S; S++)
        if (taken(suite, tec_oxygen_s, *S) &&
            (wanted(suite, "sweeps") || wanted(suite, "headline")))
            add_robots(suite, *S);
    if (!suite->full && wanted(suite, "table"))
        add_table(suite);
    if (!suite->full && wanted(suite, "loads"))
        add_loads(suite);
    return suite->n_points < TEC_OXYGEN_POINTS
               ? TEC_OK
               : tec_fail(err, TEC_INVALID, "the suite has more than %d points", TEC_OXYGEN_POINTS);
}

const struct tec_oxygen_point *tec_oxygen_find(const struct tec_oxygen *suite, int robot,
                                               enum tec_oxygen_setting setting,
                                               enum tec_oxygen_input input, int S, int N, int k)
{
    for (int i = 0; i < suite->n_points; i++) {
        const struct tec_oxygen_point *p = &suite->points[i];
        if ((p->robot == robot || input == TEC_OXYGEN_PADDED) && p->setting == setting &&
            p->input == input && p->S == S && p->N == N && (k < 0 || p->k == k) && !p->load)
            return p;
    }
    return NULL;
}

const struct tec_oxygen_point *tec_oxygen_load_point(const struct tec_oxygen *suite,
                                                     const struct tec_oxygen_load *load,
                                                     bool together)
{
    for (int i = 0; i < suite->n_points; i++)
        if (suite->points[i].load == load && suite->points[i].together == together)
            return &suite->points[i];
    return NULL;
}
