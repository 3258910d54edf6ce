#include "graph/transform/prompt.h"
#include "tools/verify/tokenizers_case.h"

/* The two prompts of spec 8.2, as data. */
static const struct tec_prompt_part plain_parts[] = {
    {TEC_PROMPT_CLEAN, false, NULL},
    {TEC_PROMPT_LITERAL, true, "\n"},
};
static const struct tec_prompt_part state_parts[] = {
    {TEC_PROMPT_LITERAL, false, "Task: "},      {TEC_PROMPT_CLEAN, false, NULL},
    {TEC_PROMPT_LITERAL, false, ", State: "},   {TEC_PROMPT_STATE, false, NULL},
    {TEC_PROMPT_LITERAL, false, ";\nAction: "},
};

static double *read_state(struct tec_verify *v, const json_t *list, size_t *n)
{
    *n = json_array_size(list);
    double *state = TEC_NEW(v->arena, *n, double);
    for (size_t i = 0; state && i < *n; i++)
        state[i] = json_number_value(json_array_get(list, i));
    return state;
}

/* -1: the prompt cannot be built; else the number of wrong ids, a wrong n_valid counting as one. */
static int judge(struct tec_verify *v, const struct tec_tokenizer *t, const json_t *one,
                 struct tec_error *err)
{
    const json_t *prompt = json_object_get(one, "prompt"), *state = json_object_get(one, "state");
    size_t n_state, n_want;
    bool has_state = json_is_array(state);
    int max = (int)json_integer_value(json_object_get(one, "max_len"));
    struct tec_prompt_template how = {.parts = has_state ? state_parts : plain_parts,
                                      .n_parts = has_state ? 5 : 2,
                                      .bos = true,
                                      .max_tokens = max,
                                      .pad = tec_tokenizer_pad(t)};
    struct tec_prompt got;
    double *values = read_state(v, state, &n_state);
    int *want = tec_case_ids(v, json_object_get(one, "ids"), &n_want);
    int *ids = max > 0 ? TEC_NEW(v->arena, (size_t)max, int) : NULL;
    if (!values || !want || !ids || !json_is_string(prompt) || n_want != (size_t)max) {
        tec_fail(err, TEC_MALFORMED, "openpi_prompts.json: a case is not complete");
        return -1;
    }
    if (tec_prompt_build(&how, t, json_string_value(prompt), json_string_length(prompt), values,
                         (int)n_state, ids, &got, v->arena, err) != TEC_OK)
        return -1;
    int wrong = got.n_valid != (int)json_integer_value(json_object_get(one, "n_valid"));
    for (int i = 0; i < max; i++)
        wrong += ids[i] != want[i];
    return wrong;
}

static void judge_all(struct tec_verify *v, const struct tec_tokenizer *t, const json_t *cases)
{
    struct tec_tally plain = {0}, with_state = {0}, cut = {0};
    struct tec_error err;
    size_t i;
    const json_t *one;
    json_array_foreach(cases, i, one)
    {
        int wrong = judge(v, t, one, &err);
        bool full = json_integer_value(json_object_get(one, "n_valid")) ==
                    json_integer_value(json_object_get(one, "max_len"));
        struct tec_tally *tally = full                                           ? &cut
                                  : json_is_array(json_object_get(one, "state")) ? &with_state
                                                                                 : &plain;
        tec_tally_add(tally, (int)i, wrong == 0);
        if (wrong < 0)
            tec_verify_cannot(v, "prompt", &err);
    }
    tec_tally_report(v, "prompt without state", &plain);
    tec_tally_report(v, "prompt with state", &with_state);
    tec_tally_report(v, "prompt cut on the right", &cut);
}

enum tec_status tec_verify_tokenizers_prompts(struct tec_verify *v, struct tec_error *err)
{
    struct tec_tokenizer *t;
    const char *path = tec_case_path(v, "gemma_like/tokenizer.model");
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    TEC_TRY(tec_tokenizer_open(&t, path, v->heap, err));
    json_t *file = tec_case_json(v, "openpi_prompts.json");
    const json_t *cases = json_object_get(file, "cases");
    if (json_is_array(cases))
        judge_all(v, t, cases);
    else
        tec_fail(err, TEC_MALFORMED, "%s/openpi_prompts.json: cannot be read", v->dir);
    enum tec_status status = json_is_array(cases) ? TEC_OK : TEC_MALFORMED;
    json_decref(file);
    tec_tokenizer_close(t);
    return status;
}
