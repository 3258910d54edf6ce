/* skills.c - verbs with the things they are said of: all are found and gone to, what is no
 * furniture nor appliance is carried, rinsed and looked at, the rest is opened and closed. */
#include "tests/experiments/keep/skills.h"

#include "tests/experiments/keep/trace_words.h"

#include <stdio.h>

enum { LONGEST = 24 };

/* The verb, and the nouns of the trace (first .. last - 1) that it goes with. */
static const struct {
    const char *verb;
    int first, last;
} verbs[] = {{"find a", 0, 40},        {"go to the", 0, 40},  {"pick up the", 16, 40},
             {"put down the", 16, 40}, {"rinse the", 16, 40}, {"look at the", 16, 40},
             {"open the", 0, 16},      {"close the", 0, 16},  {"turn on the", 13, 16},
             {"turn off the", 13, 16}};

enum tec_status tec_keeping_skills_make(struct tec_keeping_skills *skills, int vocab,
                                        struct tec_arena *arena, struct tec_error *err)
{
    struct tec_token_text *texts = TEC_NEW(arena, TEC_KEEPING_SKILLS, struct tec_token_text);
    int *ids = TEC_NEW(arena, (size_t)TEC_KEEPING_SKILLS * LONGEST, int), n = 0;
    for (size_t v = 0; texts && ids && v < sizeof verbs / sizeof verbs[0]; v++)
        for (int i = verbs[v].first; i < verbs[v].last && n < TEC_KEEPING_SKILLS; i++, n++) {
            char text[64];
            int *to = ids + (size_t)n * LONGEST;
            snprintf(text, sizeof text, "%s %s", verbs[v].verb, tec_trace_nouns[i].word);
            int tokens = tec_trace_tokens(text, vocab, to, LONGEST);
            if (tokens > LONGEST)
                return tec_fail(err, TEC_INVALID, "skill '%s' has %d tokens", text, tokens);
            texts[n] = (struct tec_token_text){to, tokens};
        }
    if (n < TEC_KEEPING_SKILLS)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for skills");
    TEC_TRY(tec_token_tree_create(&skills->tree, texts, n, (struct tec_tree_end){-1, false}, arena,
                                  err));
    skills->likely = TEC_NEW(arena, (size_t)skills->tree.n_entries, float);
    skills->sums = TEC_NEW(arena, (size_t)n, double);
    skills->scratch = TEC_NEW(arena, (size_t)skills->tree.n_nodes, double);
    return skills->likely && skills->sums && skills->scratch
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for skills");
}
