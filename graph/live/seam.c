/* seam.c - compares a chunk with the one before it at the moment at which it takes over. */
#include "graph/live/seam.h"

#include <math.h>
#include <string.h>

int64_t tec_seam_row_ns(const struct tec_engine *engine, int action)
{
    const struct tec_session *session = tec_engine_session(engine, action);
    const struct tec_robot *robot = session ? tec_session_robot(session) : NULL;
    int64_t period_ns = engine->topology.period_us * 1000;
    if (robot && robot->rate_hz > 0.0)
        return (int64_t)(1e9 / robot->rate_hz);
    int executed = session ? tec_session_executed(session) : 0;
    return executed > 0 ? period_ns / executed : period_ns;
}

enum tec_status tec_seam_create(struct tec_seam *seam, const struct tec_engine *engine, int action,
                                struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_flow *flow = tec_engine_flow(engine, action);
    size_t chunk = tec_engine_chunk(engine, action);
    *seam = (struct tec_seam){.row_ns = tec_seam_row_ns(engine, action),
                              .captured_ns = -1,
                              .before = TEC_NEW(arena, chunk + 1, float)};
    if (!seam->before)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a chunk");
    seam->columns = flow && flow->dim > 0 && chunk % (size_t)flow->dim == 0 ? flow->dim : 0;
    seam->rows = seam->columns ? (int)(chunk / (size_t)seam->columns) : 0;
    return TEC_OK;
}

/* The row of a moment; the last one stands for those behind the end. */
static const float *row_at(const struct tec_seam *s, const float *chunk, int64_t captured_ns,
                           int64_t now_ns)
{
    int64_t row = now_ns > captured_ns ? (now_ns - captured_ns) / s->row_ns : 0;
    row = row < s->rows ? row : s->rows - 1;
    return chunk + (ptrdiff_t)row * s->columns;
}

float tec_seam_join(struct tec_seam *s, const float *chunk, int64_t captured_ns, int64_t now_ns)
{
    float jump = -1.0F;
    if (s->rows == 0 || s->row_ns <= 0)
        return jump;
    if (s->captured_ns >= 0) {
        const float *was = row_at(s, s->before, s->captured_ns, now_ns);
        const float *is = row_at(s, chunk, captured_ns, now_ns);
        jump = 0.0F;
        for (int i = 0; i < s->columns; i++)
            jump = fmaxf(jump, fabsf(is[i] - was[i]));
    }
    memcpy(s->before, chunk, (size_t)s->rows * (size_t)s->columns * sizeof *chunk);
    s->captured_ns = captured_ns;
    return jump;
}
