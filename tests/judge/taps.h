/* taps.h - which tap of the engine holds a tensor of a golden case. The names are data: one table a
 * family in tests/judge/taps/. */
#ifndef TEC_TESTS_JUDGE_TAPS_H
#define TEC_TESTS_JUDGE_TAPS_H

#include <stdbool.h>
#include <stddef.h>

enum { TEC_TAP_NUMBERS = 2, TEC_TAP_BYTES = 96 };

/* How the values of a tensor come from its tap. Each family's judge takes those of its table. */
enum tec_tap_form {
#define FORM(name, text) TEC_TAP_##name,
#include "tests/judge/taps/forms.def"
#undef FORM
};

/* A line of a table. In `theirs`, '#' stands for a number and a '*' at the end for any text. In
 * `ours` and `step`, '#' is the first of those numbers and '*' that text. */
struct tec_tap_name {
    const char *theirs; /* the tensor of the case */
    const char *ours;   /* the tap; "" where the values are no tap's */
    const char *step;   /* the tap of a decode step that holds further rows; NULL: there is none */
    enum tec_tap_form form;
};

struct tec_tap_found {
    enum tec_tap_form form;
    char ours[TEC_TAP_BYTES], step[TEC_TAP_BYTES]; /* numbers and text filled in */
    int number[TEC_TAP_NUMBERS];
};

/* Finds the first line whose `theirs` is the whole of `name`. False: there is none, or the name of
 * the tap is too long. */
bool tec_tap_find(const struct tec_tap_name *names, size_t n, const char *name,
                  struct tec_tap_found *found);

#endif
