/* main.c - the program and the tests that are worth a run on another device, in one file: they
 * share most of their code, and one file is easily carried there.
 *
 *     device_check tectum bench ...
 *     device_check schedule --device cuda
 *
 * Without arguments it lists what it holds. CMakeLists.txt says which; each part's main has the
 * name of the part. */
#include <stdio.h>
#include <string.h>

#define PART(name) int name##_main(int argc, char **argv);
#include <device_parts.h>
#undef PART

struct part {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct part parts[] = {
#define PART(name) {#name, name##_main},
#include <device_parts.h>
#undef PART
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(argv[1], parts[i].name) == 0)
            return parts[i].run(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        puts(parts[i].name);
    return argc > 1 ? 2 : 0;
}
