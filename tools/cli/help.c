/* help.c - prints the texts of --help and --version from the tables of verbs and options. */
#include "tools/cli/help.h"

#include "tools/cli/shared.h"

#include <unistd.h>

const char tec_help_exit_codes[] =
    "exit codes: 0 done; 1 what was asked about is wrong; 2 usage; 3 an input cannot be read\n"
    "or is malformed; 4 device or memory does not suffice; 5 a bug of tectum\n";

void tec_help_program(const struct tec_verb *verbs, int n, FILE *out)
{
    fputs("tectum - vision-language-action models on robots, by the deadline\n\n"
          "usage: tectum VERB [options] [arguments]\n\n",
          out);
    for (int i = 0; i < n; i++)
        fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].text);
    fputs("\n"
          "tectum VERB --help    what a verb does, its options, an example\n"
          "tectum --version      version, devices, CPU tiers\n\n"
          "example: tectum check pipelines/demo_metaworld.lua\n\n",
          out);
    fputs(tec_help_exit_codes, out);
}

void tec_help_verb(const struct tec_verb *verb, FILE *out)
{
    const struct tec_command *c = verb->command;
    struct tec_option_group groups[TEC_MAX_GROUPS];
    const char *program = verb->alone ? "" : "tectum ";
    fprintf(out, "%s%s - %s\n\nusage: %s%s\n", program, verb->name, verb->text, program, c->usage);
    if (c->about)
        fprintf(out, "\n%s", c->about);
    tec_options_help(groups, tec_shared_groups(groups, c, NULL, NULL), out);
    fprintf(out, "\nExample\n%s", c->example);
}

/* Print the GPU back ends that this build could use besides the CPU. */
static void print_gpus(FILE *out)
{
    struct tec_error why;
    struct tec_device_options gpu = {.kind = "cuda"};
    if (!tec_device_known(gpu.kind))
        return;
    for (; tec_device_check(&gpu, &why) == TEC_OK; gpu.index++)
        fprintf(out, "         cuda:%d (%d multiprocessors)\n", gpu.index,
                tec_device_threads(&gpu));
    if (gpu.index == 0)
        fprintf(out, "         cuda (%s)\n", why.message);
}

void tec_help_version(FILE *out)
{
    fprintf(out, "tectum %s\n", TECTUM_VERSION);
    fprintf(out, "devices: cpu (%ld processors)\n", sysconf(_SC_NPROCESSORS_ONLN));
    print_gpus(out);
    fputs("cpu tiers:", out);
    for (int i = 0; i < TEC_TIER_COUNT; i++)
        if (tec_tier_runs_here((enum tec_tier)i))
            fprintf(out, " %s%s", tec_tier_name((enum tec_tier)i),
                    (enum tec_tier)i == tec_tier_best() ? " (used)" : "");
    fputc('\n', out);
}
