/* main.c - several tests in one program, each with the arguments that it would have by itself:
 *
 *     tests schedule --device cuda      the subject by its name,
 *     schedule.t --device cuda          or by the name of a link to the program
 *
 * Without arguments it lists its subjects. CMakeLists.txt says which they are; each one's main has
 * the name of the subject. The program of the subjects that a GPU runs is device_check. */
#include <stdio.h>
#include <string.h>

#define SUBJECT(name) int name##_main(int argc, char **argv);
#include SUBJECTS
#undef SUBJECT

struct subject {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct subject subjects[] = {
#define SUBJECT(name) {#name, name##_main},
#include SUBJECTS
#undef SUBJECT
};

/* `name` may go on with ".t". NULL: there is no such subject. */
static const struct subject *find(const char *name)
{
    size_t n = strlen(name);
    n -= n > 2 && strcmp(name + n - 2, ".t") == 0 ? 2 : 0;
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        if (strlen(subjects[i].name) == n && memcmp(subjects[i].name, name, n) == 0)
            return &subjects[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const struct subject *called = find(slash ? slash + 1 : argc > 0 ? argv[0] : "");
    const struct subject *named = argc > 1 ? find(argv[1]) : NULL;
    if (called)
        return called->run(argc, argv);
    if (named)
        return named->run(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        puts(subjects[i].name);
    return argc > 1 ? 2 : 0;
}
