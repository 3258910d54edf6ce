/* engine_rounding.c - what a model of the engine is rounded to: what its pipeline says, and nothing
 * where the engine is asked to be exact. */
#include "graph/run/engine/engine_own.h"

#include <string.h>

static const struct tec_decl_model *declared(const struct tec_engine *e,
                                             const struct tec_engine_model *m)
{
    return &e->options.pipeline->models[m->index];
}

bool tec_engine_bf16(const struct tec_engine *e, const struct tec_engine_model *m)
{
    if (e->options.dtype)
        return strcmp(e->options.dtype, "bf16") == 0;
    return declared(e, m)->dtype == TEC_DECL_BF16;
}

enum tec_quantize tec_engine_quantize(const struct tec_engine *e, const struct tec_engine_model *m)
{
    return e->options.exact ? TEC_QUANTIZE_NONE : (enum tec_quantize)declared(e, m)->quantize;
}

enum tec_quantize tec_engine_quantize_head(const struct tec_engine *e,
                                           const struct tec_engine_model *m)
{
    return e->options.exact ? TEC_QUANTIZE_NONE : (enum tec_quantize)declared(e, m)->quantize_head;
}

enum tec_round tec_engine_round(const struct tec_engine *e, const struct tec_engine_model *m)
{
    return e->options.exact ? TEC_ROUND_NONE : (enum tec_round)declared(e, m)->round;
}
