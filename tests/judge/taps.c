/* taps.c - finds the tap that holds a tensor: patterns of names with numbers. */
#include "tests/judge/taps.h"

#include <stdio.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the digits at `from`; their count, 0 where there are none or too many. */
static size_t read_number(const char *from, int *number)
{
    size_t n = 0;
    for (*number = 0; is_digit(from[n]) && n < 9; n++)
        *number = *number * 10 + (from[n] - '0');
    return is_digit(from[n]) ? 0 : n;
}

/* Whether `name` is of the form `pattern`; its numbers, and where the text of '*' begins. */
static bool match(const char *pattern, const char *name, int number[TEC_TAP_NUMBERS],
                  const char **rest)
{
    int numbers = 0, ignored;
    *rest = "";
    for (; *pattern && *pattern != '*'; pattern++) {
        size_t taken = 1;
        if (*pattern == '#')
            taken = read_number(name, numbers < TEC_TAP_NUMBERS ? &number[numbers++] : &ignored);
        else if (*pattern != *name)
            return false;
        if (taken == 0)
            return false;
        name += taken;
    }
    if (*pattern == '*')
        *rest = name;
    return *pattern == '*' || *name == '\0';
}

/* Writes `pattern` with the number and the text in place of '#' and '*'; false: it does not fit. */
static bool fill(char out[TEC_TAP_BYTES], const char *pattern, int number, const char *rest)
{
    size_t at = 0;
    out[0] = '\0';
    for (; *pattern; pattern++) {
        size_t room = TEC_TAP_BYTES - at;
        int n = *pattern == '#'   ? snprintf(out + at, room, "%d", number)
                : *pattern == '*' ? snprintf(out + at, room, "%s", rest)
                                  : snprintf(out + at, room, "%c", *pattern);
        if (n < 0 || (size_t)n >= room)
            return false;
        at += (size_t)n;
    }
    return true;
}

bool tec_tap_find(const struct tec_tap_name *names, size_t n, const char *name,
                  struct tec_tap_found *found)
{
    for (size_t i = 0; i < n; i++) {
        const char *rest;
        *found = (struct tec_tap_found){.form = names[i].form};
        if (match(names[i].theirs, name, found->number, &rest))
            return fill(found->ours, names[i].ours, found->number[0], rest) &&
                   fill(found->step, names[i].step ? names[i].step : "", found->number[0], rest);
    }
    return false;
}
