/* arrivals.c - when language is asked for. */
#include "tools/measure/arrivals.h"

#include "kernels/philox.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Purposes that separate the streams of random numbers; they differ from those of
 * graph/run/launch/noise.h. */
enum draw { DRAW_COUNT = 0x41525231, DRAW_LENGTH, DRAW_CANCEL };

enum { MAX_FIELDS = 3, MAX_TOKENS = 65536, MAX_FRAMES = 1000000 };

/* One number of a specification and its range. */
struct field {
    const char *what;
    double low, high;
    bool whole;
};

struct part {
    const char *name;
    int n;
    struct field fields[MAX_FIELDS];
};

enum { UNIFORM, POISSON, BURSTY, LENGTHS, CANCEL, N_PARTS };
static const struct part parts[N_PARTS] = {
    [UNIFORM] = {"uniform", 1, {{"the interval in frames", 1.0 / 64.0, MAX_FRAMES, false}}},
    [POISSON] = {"poisson", 1, {{"requests a frame", 0.0, 32.0, false}}},
    [BURSTY] = {"bursty",
                2,
                {{"requests at once", 1.0, TEC_MAX_ARRIVALS, true},
                 {"frames between bursts", 1.0, MAX_FRAMES, true}}},
    [LENGTHS] = {"lengths",
                 3,
                 {{"tokens of a short request", 1.0, MAX_TOKENS, true},
                  {"tokens of a long request", 1.0, MAX_TOKENS, true},
                  {"the share of long ones", 0.0, 1.0, false}}},
    [CANCEL] = {"cancel",
                2,
                {{"the share of cancelled requests", 0.0, 1.0, false},
                 {"frames until then", 1.0, MAX_FRAMES, true}}},
};

/* The state of parsing a specification. */
struct reader {
    const char *text, *at;
    struct tec_error *err;
};

static enum tec_status refuse(const struct reader *r, const char *wanted)
{
    return tec_fail(r->err, TEC_INVALID, "arrivals '%.80s': at %d: %s, found '%.20s'", r->text,
                    (int)(r->at - r->text) + 1, wanted, *r->at ? r->at : "the end");
}

/* Digits with at most one point: no signs, exponents, hexadecimals or names. The value is exact to
 * a rounding: an integer of up to 15 digits over a power of ten. */
static bool read_number(struct reader *r, double *value, bool *whole)
{
    const char *s = r->at;
    double digits = 0.0, unit = 1.0;
    int n = 0;
    for (; *s >= '0' && *s <= '9' && n < 15; n++)
        digits = digits * 10.0 + (*s++ - '0');
    *whole = *s != '.';
    if (*s == '.' && n > 0)
        for (s++; *s >= '0' && *s <= '9' && n < 15; n++, unit *= 10.0)
            digits = digits * 10.0 + (*s++ - '0');
    if (n == 0 || s[-1] == '.' || (*s >= '0' && *s <= '9'))
        return false;
    *value = digits / unit;
    r->at = s;
    return true;
}

static enum tec_status read_field(struct reader *r, const struct field *f, double *value)
{
    const struct reader before = *r;
    bool whole;
    if (read_number(r, value, &whole) && *value >= f->low && *value <= f->high &&
        (whole || !f->whole))
        return TEC_OK;
    char wanted[120];
    snprintf(wanted, sizeof wanted, "%s must be %s from %g to %g", f->what,
             f->whole ? "a whole number" : "a number", f->low, f->high);
    return refuse(&before, wanted);
}

static enum tec_status read_fields(struct reader *r, const struct part *p, double *values)
{
    for (int i = 0; i < p->n; i++) {
        if (*r->at != (i ? ',' : ':'))
            return refuse(r, i ? "',' and another number must follow" : "':' must follow");
        r->at++;
        TEC_TRY(read_field(r, &p->fields[i], &values[i]));
    }
    return TEC_OK;
}

static void keep_part(struct tec_arrivals *a, int part, const double *v)
{
    switch (part) {
    case UNIFORM:
        a->kind = TEC_ARRIVE_UNIFORM;
        a->interval = v[0];
        break;
    case POISSON:
        a->kind = TEC_ARRIVE_POISSON;
        a->lambda = v[0];
        break;
    case BURSTY:
        a->kind = TEC_ARRIVE_BURSTY;
        a->burst = (int)v[0];
        a->burst_every = (int)v[1];
        break;
    case LENGTHS:
        a->lengths[0] = (int)v[0];
        a->lengths[1] = (int)v[1];
        a->long_share = v[2];
        break;
    default:
        a->cancel_share = v[0];
        a->cancel_after = (int)v[1];
    }
}

static enum tec_status read_part(struct reader *r, struct tec_arrivals *a, unsigned *seen)
{
    size_t n = strcspn(r->at, ":+,");
    double values[MAX_FIELDS] = {0};
    for (int i = 0; i < N_PARTS; i++) {
        if (strlen(parts[i].name) != n || strncmp(parts[i].name, r->at, n) != 0)
            continue;
        unsigned same = i <= BURSTY ? 1u << UNIFORM | 1u << POISSON | 1u << BURSTY : 1u << i;
        if (*seen & same)
            return refuse(r, i <= BURSTY ? "arrivals are said once" : "it is said once");
        *seen |= 1u << i;
        r->at += n;
        TEC_TRY(read_fields(r, &parts[i], values));
        keep_part(a, i, values);
        return TEC_OK;
    }
    return refuse(r, "one of uniform, poisson, bursty, lengths, cancel is wanted");
}

enum tec_status tec_arrivals_parse(struct tec_arrivals *arrivals, const char *text, int max_tokens,
                                   uint64_t seed, struct tec_error *err)
{
    struct reader r = {text, text, err};
    unsigned seen = 0;
    struct tec_arrivals a = {
        .kind = TEC_ARRIVE_UNIFORM, .interval = 1.0, .max_tokens = max_tokens, .seed = seed};
    if (max_tokens < 1 || max_tokens > MAX_TOKENS)
        return tec_fail(err, TEC_INVALID, "arrivals: %d tokens a request, 1 to %d are allowed",
                        max_tokens, MAX_TOKENS);
    for (;;) {
        TEC_TRY(read_part(&r, &a, &seen));
        if (*r.at == '\0')
            break;
        if (*r.at != '+')
            return refuse(&r, "'+' and another part, or the end must follow");
        r.at++;
    }
    *arrivals = a;
    return TEC_OK;
}

/* Uniform in [0, 1), of 53 bits: draw `index` of a frame. */
static double draw(const struct tec_arrivals *a, enum draw purpose, int64_t frame, int index)
{
    const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)purpose, (uint32_t)frame,
                                 (uint32_t)((uint64_t)frame >> 32)};
    uint32_t words[4];
    tec_philox_words(counter, key, words);
    return (double)((uint64_t)(words[0] >> 5) << 26 | words[1] >> 6) * 0x1p-53;
}

/* The number whose cumulative probability first passes the draw. */
static int poisson(double lambda, double u)
{
    double p = exp(-lambda), sum = p;
    int n = 0;
    while (u >= sum && n < TEC_MAX_ARRIVALS) {
        n++;
        p *= lambda / n;
        sum += p;
    }
    return n;
}

/* Request i comes at i * interval. The quotients of short decimals are whole or far from it; what
 * rounding adds to a whole one is taken away. */
static int64_t came_before(double interval, int64_t frame)
{
    return (int64_t)ceil((double)frame / interval * (1.0 - 1e-12));
}

static int count_at(const struct tec_arrivals *a, int64_t frame)
{
    int64_t n = 0;
    if (a->kind == TEC_ARRIVE_POISSON)
        n = poisson(a->lambda, draw(a, DRAW_COUNT, frame, 0));
    else if (a->kind == TEC_ARRIVE_BURSTY)
        n = frame % a->burst_every == 0 ? a->burst : 0;
    else
        n = came_before(a->interval, frame + 1) - came_before(a->interval, frame);
    return (int)(n > TEC_MAX_ARRIVALS ? TEC_MAX_ARRIVALS : n);
}

int tec_arrivals_at(const struct tec_arrivals *arrivals, int64_t frame,
                    struct tec_arrival out[TEC_MAX_ARRIVALS])
{
    int n = frame < 0 ? 0 : count_at(arrivals, frame);
    for (int i = 0; i < n; i++) {
        out[i] = (struct tec_arrival){.max_tokens = arrivals->max_tokens};
        if (arrivals->lengths[0])
            out[i].max_tokens =
                arrivals->lengths[draw(arrivals, DRAW_LENGTH, frame, i) < arrivals->long_share];
        if (arrivals->cancel_after &&
            draw(arrivals, DRAW_CANCEL, frame, i) < arrivals->cancel_share)
            out[i].cancel_after = arrivals->cancel_after;
    }
    return n;
}
