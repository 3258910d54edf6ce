/* nearest.h - which known name somebody probably meant. */
#ifndef TEC_BASE_NEAREST_H
#define TEC_BASE_NEAREST_H

/* Edits (insert, delete, replace, swap of neighbours) between two words, at most `limit` + 1. Words
 * longer than 40 bytes count as `limit` + 1 apart unless equal. */
int tec_word_distance(const char *a, const char *b, int limit);

/* The name with the fewest edits from `word`, if that is at most a third of its length (but 1 for
 * short words); NULL when none is near: one that shares no byte never is. Capitals of ASCII are as
 * good as small letters. The first of equals wins. `n` names, NULL entries and those of more than
 * 40 bytes skipped. */
const char *tec_nearest(const char *word, const char *const *names, int n);

/* What a message says of it at its end: "; did you mean 'NEAR'?", with that mark before it; "" for
 * NULL. Of a longer name than tec_nearest gives its beginning. */
struct tec_meant {
    char text[80];
};
struct tec_meant tec_meant(char mark, const char *near);

/* The largest distance that still counts as near. */
int tec_near_limit(const char *word);

#endif
