/* int4.c - rounds weights to 4 bits, a scale and a zero for each group of k, and packs them into
 * panels.
 *
 * Of the range that a group's weights span it tries some parts: a smaller one has finer steps, and
 * cuts off the outermost weights. The one with the least squared error is taken (a search for the
 * step of least squared error: Shin, Hwang, Sung 2016, arXiv 1512.01322). All of it is float32
 * arithmetic in an order that is written down here, so that another program can give the same
 * bits. */
#include "kernels/int4.h"

enum {
    PANEL = 16,
    PARTS = 32, /* of the range; the last so many are cut off at most: */
    CUTS = 12,
    TOGETHER = 64,         /* weights whose squared errors are made at a time */
    CHAINS = TEC_INT4_DEEP /* of squared errors: element j of a group belongs to j % CHAINS */
};

/* How a group is rounded: nibble = round(w * per + zero), w = (nibble - zero) * scale. */
struct steps {
    float scale, per, zero;
    uint16_t half; /* the scale as it is stored */
};

/* float32 of 0 .. 65504 to float16 bits, to nearest even. */
static uint16_t half_bits(float value)
{
    uint32_t bits;
    if (value < 0x1p-14F)
        value = value * 0x1p24F + 0x1p23F; /* the mantissa becomes the number of 2^-24 */
    memcpy(&bits, &value, sizeof bits);
    if (value >= 0x1p23F)
        return (uint16_t)(bits & 0x7ffU);
    return (uint16_t)((bits + 0xfffU + ((bits >> 13) & 1U) - (112U << 23)) >> 13);
}

/* The whole number next to x, to nearest even; |x| is below 2^22. */
static inline int whole(float x)
{
    float raised = x + 0x1.8p23F;
    int32_t bits;
    memcpy(&bits, &raised, sizeof bits);
    return bits - 0x4b400000;
}

/* Compilers make vectors of comparisons of whole numbers, not of floats. */
static inline int nibble_of(float w, struct steps s)
{
    int x = whole(w * s.per + s.zero);
    x = x < 0 ? 0 : x;
    return x > 15 ? 15 : x;
}

/* Steps that reach from `low` <= 0 to `high` >= 0. Where float16 has no scale so small it is 0, and
 * so is every weight. */
static struct steps steps_over(float low, float high)
{
    struct steps s = {.zero = 0.0F, .half = half_bits((high - low) / 15.0F)};
    s.scale = tec_half_float(s.half);
    s.per = s.scale > 0.0F ? 1.0F / s.scale : 0.0F;
    s.zero = (float)nibble_of(-low, s);
    return s;
}

/* The squared error of a group that is rounded so, in CHAINS sums, which join in pairs. */
static float error_of(const float *w, int count, struct steps s)
{
    float sums[CHAINS] = {0.0F}, squares[TOGETHER];
    for (int first = 0; first < count; first += TOGETHER) {
        int n = count - first < TOGETHER ? count - first : TOGETHER;
        for (int i = 0; i < n; i++) {
            float left = w[first + i] - ((float)nibble_of(w[first + i], s) - s.zero) * s.scale;
            squares[i] = left * left;
        }
        for (int i = 0; i < n; i += CHAINS)
            for (int j = 0; j < CHAINS; j++)
                sums[j] += squares[i + j];
    }
    for (int n = CHAINS / 2; n > 0; n /= 2)
        for (int j = 0; j < n; j++) {
            const float *two = sums + (ptrdiff_t)2 * j;
            sums[j] = two[0] + two[1];
        }
    return sums[0];
}

/* The best of the ranges; of equal ones the largest. */
static struct steps choose(const float *w, int count)
{
    float low = 0.0F, high = 0.0F, least = 0.0F;
    struct steps best = {0};
    for (int i = 0; i < count; i++) {
        low = w[i] < low ? w[i] : low;
        high = w[i] > high ? w[i] : high;
    }
    for (int cut = 0; cut <= CUTS; cut++) {
        float part = (float)(PARTS - cut) / (float)PARTS;
        struct steps s = steps_over(low * part, high * part);
        float error = error_of(w, count, s);
        if (cut == 0 || error < least) {
            best = s;
            least = error;
        }
    }
    return best;
}

/* One group of column c of a panel, at the group's line of scales. */
static void put_group(unsigned char *at, int c, const float *w, int count)
{
    struct steps s = choose(w, count);
    memcpy(at + 2 * (size_t)c, &s.half, sizeof s.half);
    at[TEC_INT4_ZEROS + c] = (unsigned char)s.zero;
    for (int k = 0; k < count; k += TEC_INT4_DEEP) {
        uint32_t word = 0;
        for (int j = 0; j < TEC_INT4_DEEP; j++)
            word |= (uint32_t)nibble_of(w[k + j], s) << (4 * j);
        at += TEC_INT4_LINE;
        memcpy(at + 4 * (size_t)c, &word, sizeof word);
    }
}

void tec_int4_pack(void *packed, int rows, int k, int group, int first, int n, const float *src)
{
    int room = (rows + PANEL - 1) / PANEL * PANEL - first;
    n = n < room ? n : room;
    for (int r = 0; r < n; r++) {
        unsigned char *panel =
            (unsigned char *)packed + (size_t)((first + r) / PANEL) * tec_int4_panel(k, group);
        for (int at = 0; at < k; at += group)
            put_group(panel + tec_int4_group(at / group, group), (first + r) % PANEL,
                      src + (size_t)r * (size_t)k + at, k - at < group ? k - at : group);
    }
}
