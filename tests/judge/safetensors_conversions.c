/* safetensors_conversions.c - judges the conversions between float32 and the narrow float types
 * against every code and value of the case. */
#include "base/store/safetensors.h"
#include "tests/judge/verify.h"

#include <math.h>
#include <string.h>

/* The state of judging; the case is small, so everything is read whole. */
struct conversions {
    struct tec_verify *v;
    const struct tec_tensors *t;
};

static void *load(struct conversions *c, const char *name, enum tec_dtype dtype, size_t *n)
{
    const struct tec_stored *s = tec_tensors_find(c->t, name);
    if (!s || s->dtype != dtype)
        return NULL;
    *n = (size_t)tec_stored_count(s);
    void *data = tec_arena_push(c->v->arena, (size_t)s->bytes, 1, 16);
    bool read = data && tec_tensors_read(c->t, s, 0, data, (size_t)s->bytes, NULL) == TEC_OK;
    return read ? data : NULL;
}

static void report(struct conversions *c, const char *name, size_t wrong)
{
    tec_verify_compared(c->v, name);
    tec_verify_report(c->v, name, (double)wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
}

static void missing(struct conversions *c, const char *name)
{
    tec_verify_report(c->v, name, 1.0, 0.0, 0.0, false, NULL, "the case lacks it, or its input");
}

/* Judge a widening: n codes of `dtype` must give the float values, bit for bit except for NaN. */
static void judge_widening(struct conversions *c, const char *name, enum tec_dtype dtype,
                           const void *codes, size_t n)
{
    size_t n_want = 0, wrong = 0;
    const float *want = load(c, name, TEC_F32, &n_want);
    float *got = TEC_NEW(c->v->arena, n, float);
    if (!want || !codes || !got || n_want != n) {
        missing(c, name);
        return;
    }
    if (tec_to_f32(dtype, codes, got, n, NULL) != TEC_OK)
        wrong = n;
    for (size_t i = 0; i < n; i++)
        wrong += !(isnan(got[i]) && isnan(want[i])) &&
                 tec_f32_to_bits(got[i]) != tec_f32_to_bits(want[i]);
    report(c, name, wrong);
}

static uint16_t to_bf16(float x)
{
    return tec_f32_to_bf16(x);
}

static uint16_t to_e5m2(float x)
{
    return tec_f32_to_f8_e5m2(x);
}

static uint16_t to_e4m3(float x)
{
    return tec_f32_to_f8_e4m3(x);
}

/* Judge a narrowing by bit patterns; where NaN is due, any NaN is right. */
static void judge_narrowing(struct conversions *c, const char *name, enum tec_dtype stored,
                            enum tec_dtype dtype, uint16_t (*narrow)(float))
{
    size_t n = 0, n_want = 0, wrong = 0;
    const float *x = load(c, "f32", TEC_F32, &n);
    const unsigned char *want = load(c, name, stored, &n_want);
    size_t size = (size_t)tec_dtype_bits(stored) / 8;
    if (!x || !want || n_want != n) {
        missing(c, name);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t got = narrow(x[i]);
        float a = 0.0F, b = 0.0F;
        if (tec_to_f32(dtype, &got, &a, 1, NULL) || tec_to_f32(dtype, want + i * size, &b, 1, NULL))
            wrong++;
        else
            wrong += !(isnan(a) && isnan(b)) && memcmp(&got, want + i * size, size) != 0;
    }
    report(c, name, wrong);
}

static void judge_all(struct conversions *c)
{
    size_t n = 0;
    uint8_t bytes[256];
    const void *words = load(c, "u16.bits", TEC_I16, &n);
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    judge_widening(c, "f8_e5m2.to_f32", TEC_F8_E5M2, bytes, 256);
    judge_widening(c, "f8_e4m3.to_f32", TEC_F8_E4M3, bytes, 256);
    judge_widening(c, "f8_e5m2fnuz.to_f32", TEC_F8_E5M2FNUZ, bytes, 256);
    judge_widening(c, "f8_e4m3fnuz.to_f32", TEC_F8_E4M3FNUZ, bytes, 256);
    judge_widening(c, "f16.to_f32", TEC_F16, words, n);
    judge_widening(c, "bf16.to_f32", TEC_BF16, words, n);
    judge_narrowing(c, "f32.to_bf16", TEC_I16, TEC_BF16, to_bf16);
    judge_narrowing(c, "f32.to_f16", TEC_I16, TEC_F16, tec_f32_to_f16);
    judge_narrowing(c, "f32.to_f8_e5m2", TEC_U8, TEC_F8_E5M2, to_e5m2);
    judge_narrowing(c, "f32.to_f8_e4m3", TEC_U8, TEC_F8_E4M3, to_e4m3);
}

enum tec_status tec_verify_safetensors_conversions(struct tec_verify *v, struct tec_error *err)
{
    struct tec_tensors *t = NULL;
    const char *path = tec_arena_printf(v->arena, "%s/expected.safetensors", v->dir);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the path of the case");
    TEC_TRY(tec_tensors_open(&t, path, v->heap, err));
    struct conversions c = {v, t};
    judge_all(&c);
    tec_tensors_close(t);
    return TEC_OK;
}
