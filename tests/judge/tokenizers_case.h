/* tokenizers_case.h - what the judges of tokenizer cases share: reading their files. */
#ifndef TEC_TESTS_JUDGE_TOKENIZERS_CASE_H
#define TEC_TESTS_JUDGE_TOKENIZERS_CASE_H

#include "base/text/tokenizer.h"
#include "tests/judge/verify.h"

/* dir/name parsed; NULL when it cannot be read. The caller gives it back with json_decref. */
json_t *tec_case_json(struct tec_verify *v, const char *name);

/* "dir/name" in the case's arena, NULL without memory; whether such a file is there. */
const char *tec_case_path(struct tec_verify *v, const char *name);
bool tec_case_has(struct tec_verify *v, const char *name);

/* A list of integers in the case's arena; NULL when the value is no such list. */
int *tec_case_ids(struct tec_verify *v, const json_t *list, size_t *n);

/* Whether two lists agree. */
bool tec_case_same(const int *a, size_t n_a, const int *b, size_t n_b);

/* Encode into the case's arena. */
enum tec_status tec_case_encode(struct tec_verify *v, const struct tec_tokenizer *t,
                                const char *text, size_t n, struct tec_encode how, int **ids,
                                size_t *n_ids);

/* Counts what is wrong and remembers the first place. */
struct tec_tally {
    int wrong, n;
    int first; /* index of the first wrong one */
};

void tec_tally_add(struct tec_tally *tally, int index, bool good);

/* One report line: the number of wrong ones of a check, not ok when nothing was compared. */
void tec_tally_report(struct tec_verify *v, const char *check, const struct tec_tally *tally);

#endif
