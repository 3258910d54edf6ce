/* nearest.c - edit distance between words, to suggest the known name that somebody probably meant.
 *
 * Words are short (LONGEST bytes), so the rows of the distance table lie on the stack and nothing
 * is allocated. */
#include "base/nearest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 40 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Restricted Damerau-Levenshtein distance (optimal string alignment): three rows of the table are
 * enough, because a swap of neighbours looks back two rows. */
int tec_word_distance(const char *a, const char *b, int limit)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST)
        return strcmp(a, b) == 0 ? 0 : limit + 1;
    if ((int)na - (int)nb > limit || (int)nb - (int)na > limit) /* each byte more costs one */
        return limit + 1;
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++)
        above[j] = before[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int d = above[j - 1] + (a[i - 1] != b[j - 1]);
            d = smaller(d, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = smaller(d, before[j - 2] + 1);
            row[j] = d;
        }
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return smaller(above[nb], limit + 1);
}

int tec_near_limit(const char *word)
{
    int third = (int)(strlen(word) / 3);
    return third < 1 ? 1 : third > 4 ? 4 : third;
}

/* A word with capitals of ASCII as small letters, cut where it is too long to be near anything. */
static const char *lower(char out[LONGEST + 2], const char *word)
{
    size_t n = 0;
    for (; word[n] && n <= LONGEST; n++)
        out[n] = (char)(word[n] >= 'A' && word[n] <= 'Z' ? word[n] - 'A' + 'a' : word[n]);
    out[n] = '\0';
    return out;
}

const char *tec_nearest(const char *word, const char *const *names, int n)
{
    char mine[LONGEST + 2] = "", other[LONGEST + 2] = "";
    const char *best = NULL;
    int limit = tec_near_limit(word);
    for (int i = 0; i < n; i++) {
        int d = names[i] && strlen(names[i]) <= LONGEST && strlen(word) <= LONGEST
                    ? tec_word_distance(lower(mine, word), lower(other, names[i]), limit)
                    : limit + 1;
        bool common = names[i] && (d < (int)strlen(word) || d < (int)strlen(names[i]));
        if (d > limit || !common)
            continue;
        best = names[i];
        limit = d - 1; /* only a nearer name replaces it */
    }
    return best;
}

struct tec_meant tec_meant(char mark, const char *near)
{
    struct tec_meant meant = {""};
    if (near)
        snprintf(meant.text, sizeof meant.text, "%c did you mean '%.60s'?", mark, near);
    return meant;
}
