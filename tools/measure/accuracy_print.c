/* accuracy_print.c - what a comparison with float32 found, as a table or as JSON. */
#include "base/escape.h"
#include "base/json_text.h"
#include "tools/measure/accuracy.h"

#include <stdlib.h>
#include <string.h>

static double share(int64_t part, int64_t all)
{
    return all ? (double)part / (double)all : 1.0;
}

static void print_text(const struct tec_accuracy *a, FILE *out)
{
    fprintf(out, "against float32, %lld frames, %lld observations\n", (long long)a->frames,
            (long long)a->observed);
    for (int i = 0; i < a->n_actions; i++) {
        const struct tec_accuracy_action *of = &a->actions[i];
        tec_escape_print(out, of->node);
        fprintf(out, ": %lld chunks, %lld rows\n", (long long)of->chunks, (long long)of->rows);
        if (of->rows)
            fprintf(out, "  element   largest       p99       rms   float32 from .. to\n");
        for (int k = 0; of->rows && k < of->n_elements; k++) {
            const struct tec_accuracy_element *e = &of->elements[k];
            fprintf(out, "  %7d %9.3g %9.3g %9.3g   %.4g .. %.4g\n", k, e->largest, e->p99, e->rms,
                    e->low, e->high);
        }
    }
    if (a->texts)
        fprintf(out, "texts: %lld of %lld equal; tokens: %lld of %lld equal (%.2f %%)\n",
                (long long)a->texts_equal, (long long)a->texts, (long long)a->tokens_equal,
                (long long)a->tokens, 100.0 * share(a->tokens_equal, a->tokens));
    if (a->alone)
        fprintf(out, "%lld chunks or texts are of one run alone\n", (long long)a->alone);
}

/* A word stands in quotes in a file; a number, true and false do not. */
static bool is_word(const char *value)
{
    char *end = NULL;
    (void)strtod(value, &end);
    bool number = end != value && *end == '\0';
    return !number && strcmp(value, "true") != 0 && strcmp(value, "false") != 0;
}

/* What was tried of the model, as its lines in the pipeline. */
static void print_lines(const struct tec_words *set, FILE *out)
{
    static const char of_model[] = "model.";
    const size_t before = strlen(of_model);
    for (int i = 0; i < set->n; i++) {
        const char *path = set->item[i], *equals = strchr(path, '=');
        if (!equals || strncmp(path, of_model, before) != 0 ||
            strcspn(path + before, ".=[") != (size_t)(equals - path) - before)
            continue;
        const char *field = path + before;
        const char *quote = is_word(equals + 1) ? "\"" : "";
        fprintf(out, "within the bound; in the pipeline's model { } it is: %.*s = %s",
                (int)(equals - field), field, quote);
        tec_escape_print(out, equals + 1);
        fprintf(out, "%s\n", quote);
    }
}

static json_t *json_of(const struct tec_accuracy *a)
{
    json_t *actions = json_array();
    for (int i = 0; i < a->n_actions; i++) {
        const struct tec_accuracy_action *of = &a->actions[i];
        json_t *elements = json_array();
        for (int k = 0; of->rows && k < of->n_elements; k++) {
            const struct tec_accuracy_element *e = &of->elements[k];
            json_array_append_new(elements, json_pack("{s:f, s:f, s:f, s:f, s:f}", "largest",
                                                      e->largest, "p99", e->p99, "rms", e->rms,
                                                      "low", e->low, "high", e->high));
        }
        json_array_append_new(actions, json_pack("{s:s, s:I, s:I, s:o}", "node", of->node, "chunks",
                                                 (json_int_t)of->chunks, "rows",
                                                 (json_int_t)of->rows, "elements", elements));
    }
    return json_pack("{s:{s:I, s:I, s:o, s:{s:I, s:I}, s:{s:I, s:I, s:f}, s:I}}", "accuracy",
                     "frames", (json_int_t)a->frames, "observed", (json_int_t)a->observed,
                     "actions", actions, "texts", "compared", (json_int_t)a->texts, "equal",
                     (json_int_t)a->texts_equal, "tokens", "compared", (json_int_t)a->tokens,
                     "equal", (json_int_t)a->tokens_equal, "share",
                     share(a->tokens_equal, a->tokens), "alone", (json_int_t)a->alone);
}

bool tec_accuracy_holds(const struct tec_accuracy *a, double within)
{
    return tec_accuracy_whole(a) && tec_accuracy_largest(a) <= within &&
           (a->n_actions > 0 || a->texts_equal == a->texts);
}

static json_t *bound_json(const struct tec_accuracy *a, double within)
{
    return json_pack("{s:f, s:o, s:b}", "within", within, "largest",
                     a->n_actions > 0 && tec_accuracy_whole(a)
                         ? tec_json_number(tec_accuracy_largest(a))
                         : json_null(),
                     "holds", (int)tec_accuracy_holds(a, within));
}

static void print_bound(const struct tec_accuracy *a, const struct tec_invocation *call,
                        double within)
{
    if (tec_accuracy_holds(a, within))
        print_lines(&call->shared.set, call->out);
    else if (tec_accuracy_whole(a) && a->n_actions == 0)
        fprintf(call->out,
                "beyond the bound: %lld of %lld texts differ, and there are no actions\n",
                (long long)(a->texts - a->texts_equal), (long long)a->texts);
    else if (tec_accuracy_whole(a))
        fprintf(call->out, "beyond the bound: the largest difference is %.4g, not at most %g\n",
                tec_accuracy_largest(a), within);
    else
        fputs("there was nothing to compare\n", call->out);
}

enum tec_status tec_accuracy_print(const struct tec_accuracy *a, struct tec_invocation *call,
                                   double within, struct tec_error *err)
{
    if (call->shared.format == TEC_FORMAT_TEXT) {
        print_text(a, call->out);
        if (within > 0.0)
            print_bound(a, call, within);
        return TEC_OK;
    }
    json_t *json = json_of(a);
    if (within > 0.0)
        json_object_set_new(json_object_get(json, "accuracy"), "bound", bound_json(a, within));
    enum tec_status status =
        tec_json_print(call->out, json, JSON_COMPACT | JSON_REAL_PRECISION(6), "the accuracy", err);
    json_decref(json);
    return status;
}
