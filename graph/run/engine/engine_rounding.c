/* engine_rounding.c - what a model of the engine is rounded to: what its pipeline says, and nothing
 * where the engine is asked to be exact. */
#include "graph/run/engine/engine_own.h"

#include <string.h>

bool tec_engine_bf16(const struct tec_engine *e, const struct tec_engine_model *m)
{
    if (e->options.dtype)
        return strcmp(e->options.dtype, "bf16") == 0;
    return tec_engine_declared(e, m)->dtype == TEC_DECL_BF16;
}

enum tec_quantize tec_engine_quantize(const struct tec_engine *e, const struct tec_engine_model *m)
{
    return e->options.exact ? TEC_QUANTIZE_NONE
                            : (enum tec_quantize)tec_engine_declared(e, m)->quantize;
}

enum tec_quantize tec_engine_quantize_head(const struct tec_engine *e,
                                           const struct tec_engine_model *m)
{
    return e->options.exact ? TEC_QUANTIZE_NONE
                            : (enum tec_quantize)tec_engine_declared(e, m)->quantize_head;
}

enum tec_round tec_engine_round(const struct tec_engine *e, const struct tec_engine_model *m)
{
    return e->options.exact ? TEC_ROUND_NONE : (enum tec_round)tec_engine_declared(e, m)->round;
}
