/* tokenizers_prompts.c - judges the prompts of openpi, built by the shipped templates and encoded
 * by the case's tokenizers. */
#include "base/lua.h"
#include "graph/transform/prompt.h"
#include "graph/transform/template.h"
#include "tests/judge/tokenizers_case.h"

/* A tokenizer with the two prompts of openpi. */
struct prompts {
    struct tec_verify *v;
    struct tec_tokenizer *tokenizer;
    struct tec_template *plain, *with_state;
};

static int *read_bins(struct tec_verify *v, const json_t *list, size_t *n)
{
    *n = json_array_size(list);
    int *bins = TEC_NEW(v->arena, *n + 1, int);
    for (size_t i = 0; bins && i < *n; i++) {
        double x = json_number_value(json_array_get(list, i));
        tec_prompt_state_bins(&x, 1, &bins[i]);
    }
    return bins;
}

/* Judge one prompt: -1 if it cannot be built, else the number of wrong ids, where a wrong n_valid
 * counts as one. */
static int judge(const struct prompts *p, const json_t *one, struct tec_error *err)
{
    const json_t *prompt = json_object_get(one, "prompt"), *state = json_object_get(one, "state");
    size_t n_state, n_want, count = 0;
    json_int_t max = json_integer_value(json_object_get(one, "max_len"));
    size_t most = max > 0 ? (size_t)max : 0;
    int *bins = read_bins(p->v, state, &n_state);
    int *want = tec_case_ids(p->v, json_object_get(one, "ids"), &n_want);
    int *ids = most ? TEC_NEW(p->v->arena, most, int) : NULL;
    if (!bins || !want || !ids || !json_is_string(prompt) || n_want != most) {
        tec_fail(err, TEC_MALFORMED, "openpi_prompts.json: a case is not complete");
        return -1;
    }
    const struct tec_template *t = json_is_array(state) ? p->with_state : p->plain;
    const struct tec_template_values values = {
        {{.text = json_string_value(prompt), .n = json_string_length(prompt)}},
        1,
        bins,
        (int)n_state};
    if (tec_template_encode(t, p->tokenizer, &values, ids, most, &count, p->v->arena, err) !=
        TEC_OK)
        return -1;
    if (count > most)
        count = most; /* openpi truncates on the right */
    for (size_t i = count; i < most; i++)
        ids[i] = tec_tokenizer_pad(p->tokenizer);
    int wrong = (json_int_t)count != json_integer_value(json_object_get(one, "n_valid"));
    for (size_t i = 0; i < most; i++)
        wrong += ids[i] != want[i];
    return wrong;
}

static void judge_all(const struct prompts *p, const json_t *cases)
{
    struct tec_tally plain = {0}, with_state = {0}, cut = {0};
    struct tec_error err;
    size_t i;
    const json_t *one;
    json_array_foreach(cases, i, one)
    {
        int wrong = judge(p, one, &err);
        bool full = json_integer_value(json_object_get(one, "n_valid")) ==
                    json_integer_value(json_object_get(one, "max_len"));
        struct tec_tally *tally = full                                           ? &cut
                                  : json_is_array(json_object_get(one, "state")) ? &with_state
                                                                                 : &plain;
        tec_tally_add(tally, (int)i, wrong == 0);
        if (wrong < 0)
            tec_verify_cannot(p->v, "prompt", &err);
    }
    tec_tally_report(p->v, "prompt without state", &plain);
    tec_tally_report(p->v, "prompt with state", &with_state);
    tec_tally_report(p->v, "prompt cut on the right", &cut);
}

static enum tec_status judge_file(struct prompts *p, struct tec_error *err)
{
    struct tec_verify *v = p->v;
    json_t *templates = NULL;
    TEC_TRY(tec_lua_read(&templates, tec_verify_shipped(v, "models/prompts.lua"),
                         tec_verify_shipped(v, "models"), v->heap, err));
    enum tec_status status =
        tec_template_parse(&p->plain, templates, "plain", "prompts.lua", v->arena, err);
    if (status == TEC_OK)
        status = tec_template_parse(&p->with_state, templates, "with_state", "prompts.lua",
                                    v->arena, err);
    json_decref(templates);
    TEC_TRY(status);
    json_t *file = tec_case_json(v, "openpi_prompts.json");
    const json_t *cases = json_object_get(file, "cases");
    if (json_is_array(cases))
        judge_all(p, cases);
    else
        status = tec_fail(err, TEC_MALFORMED, "%s/openpi_prompts.json: cannot be read", v->dir);
    json_decref(file);
    return status;
}

enum tec_status tec_verify_tokenizers_prompts(struct tec_verify *v, struct tec_error *err)
{
    struct prompts p = {.v = v};
    const char *path = tec_case_path(v, "gemma_like/tokenizer.model");
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    TEC_TRY(tec_tokenizer_open(&p.tokenizer, path, v->heap, err));
    enum tec_status status = judge_file(&p, err);
    tec_tokenizer_close(p.tokenizer);
    return status;
}
