/* parse_words.c - options of words that are tables, as structs, every number checked. */
#include "graph/model/parse_words.h"
#include "graph/model/unpack.h"

#include <string.h>

enum tec_status tec_parse_packing(struct tec_packing *p, json_t *json, struct tec_error *err)
{
    const char *kind;
    int minus = 0, ordered = 0;
    TEC_UNPACK(json, "packing", "{s:s, s:i, s?b, s?b}", "kind", &kind, "group", &p->group, "minus",
               &minus, "ordered", &ordered);
    if (strcmp(kind, "awq") != 0 && strcmp(kind, "gptq") != 0)
        return tec_fail(err, TEC_MALFORMED, "packing: '%s' is not awq or gptq", kind);
    p->kind = kind[0] == 'a' ? TEC_PACKING_AWQ : TEC_PACKING_GPTQ;
    p->minus = minus != 0;
    p->ordered = ordered != 0;
    if (p->group < 0 || p->group % 8 != 0 || p->group > TEC_PARSE_MAX)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "packing: groups of %d; must be a multiple of 8, or 0 for all", p->group);
    return TEC_OK;
}

static enum tec_status parse_stretch(struct tec_stretch *s, json_t *json, struct tec_error *err)
{
    const char *kind;
    TEC_UNPACK(json, "rotation.stretch", "{s:s, s:F, s?F, s?F, s?F}", "kind", &kind, "factor",
               &s->factor, "low", &s->low, "high", &s->high, "original", &s->original);
    bool llama3 = strcmp(kind, "llama3") == 0;
    if (!llama3 && strcmp(kind, "linear") != 0)
        return tec_fail(err, TEC_MALFORMED, "rotation.stretch: '%s' is not linear or llama3", kind);
    s->kind = llama3 ? TEC_STRETCH_LLAMA3 : TEC_STRETCH_LINEAR;
    bool blend = s->low > 0.0 && s->high > s->low && s->original > 0.0;
    if (!(s->factor > 0.0) || (llama3 && !blend))
        return tec_fail(err, TEC_MALFORMED,
                        "rotation.stretch: factor %g must be above 0, low %g above 0 and below "
                        "high %g, original %g above 0",
                        s->factor, s->low, s->high, s->original);
    return TEC_OK;
}

enum tec_status tec_parse_rotation(struct tec_rotation *r, json_t *json, struct tec_error *err)
{
    json_t *stretch = NULL, *sections = NULL;
    int f32 = 0, *s = r->sections;
    TEC_UNPACK(json, "rotation", "{s:F, s?b, s?o, s?o}", "theta", &r->theta, "f32", &f32, "stretch",
               &stretch, "sections", &sections);
    r->f32 = f32 != 0;
    if (sections) {
        TEC_UNPACK(sections, "rotation.sections", "[i, i, i]", &s[0], &s[1], &s[2]);
        for (int i = 0; i < 3; i++)
            TEC_TRY(tec_parse_positive(s[i], "rotation.sections", "each", err));
    }
    if (!(r->theta > 1.0))
        return tec_fail(err, TEC_MALFORMED, "rotation: theta must be above 1, is %g", r->theta);
    return stretch ? parse_stretch(&r->stretch, stretch, err) : TEC_OK;
}

enum tec_status tec_parse_relative(struct tec_relative *r, json_t *json, struct tec_error *err)
{
    TEC_UNPACK(json, "relative", "{s:s, s:i, s:i, s:i}", "name", &r->name, "rows", &r->rows,
               "buckets", &r->buckets, "distance", &r->distance);
    if (r->buckets < 4 || r->buckets % 4 != 0 || r->rows < r->buckets || r->rows > TEC_PARSE_MAX ||
        r->distance <= r->buckets / 4 || r->distance > 1 << 16)
        return tec_fail(
            err, TEC_MALFORMED,
            "relative: %d buckets of %d rows, the last from distance %d on; must be a "
            "multiple of 4, at most as many as rows, and farther than a quarter of them",
            r->buckets, r->rows, r->distance);
    return TEC_OK;
}
