/* cmd_completion.c - prints the script with which a shell completes tectum's verbs, options and
 * their words. The script is made from the tables of verbs and options, and asks nothing later. */
#include "tools/cli/help.h"
#include "tools/cli/shared.h"

#include <string.h>

/* The words that may follow an option, "text|json"; NULL where it takes a file or free text. */
static const char *words_of(const struct tec_option *o)
{
    return o->type == TEC_OPTION_WORD ? o->value : NULL;
}

/* Print the words of "a|b|c" with a space between them. */
static void print_words(const char *words, FILE *out)
{
    for (; *words; words++)
        fputc(*words == '|' ? ' ' : *words, out);
}

/* Print `text` inside single quotes, in which `also` is escaped with a backslash as well. */
static void print_quoted(const char *text, const char *also, const char *quote, FILE *out)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(also, *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void print_verb_names(const struct tec_verbs *verbs, FILE *out)
{
    for (int i = 0; i < verbs->n; i++)
        fprintf(out, "%s%s", i ? " " : "", verbs->verb[i].name);
}

/* --- bash ----------------------------------------------------------------------------------- */

static void bash_verb(const struct tec_verb *verb, FILE *out)
{
    struct tec_option_group groups[TEC_MAX_GROUPS];
    int n = tec_shared_groups(groups, verb->command, NULL, NULL);
    fprintf(out, "    %s)\n        options='", verb->name);
    for (int g = 0; g < n; g++)
        for (int i = 0; i < groups[g].n; i++)
            fprintf(out, " --%s", groups[g].options[i].name);
    fputs("'\n", out);
    if (verb->command->words) {
        fputs("        [ \"$COMP_CWORD\" -ne 2 ] || words='", out);
        print_words(verb->command->words, out);
        fputs("'\n", out);
    }
    fputs("        case $before in\n", out);
    for (int g = 0; g < n; g++)
        for (int i = 0; i < groups[g].n; i++) {
            const struct tec_option *o = &groups[g].options[i];
            if (!words_of(o))
                continue;
            if (o->letter)
                fprintf(out, "        -%c | --%s) words='", o->letter, o->name);
            else
                fprintf(out, "        --%s) words='", o->name);
            print_words(words_of(o), out);
            fputs("' ;;\n", out);
        }
    fputs("        esac ;;\n", out);
}

static void print_bash(const struct tec_verbs *verbs, FILE *out)
{
    fputs("# bash completion of tectum; made by `tectum completion bash`\n"
          "_tectum() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local words='' options=''\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    print_verb_names(verbs, out);
    fputs(" --help --version' -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          out);
    for (int i = 0; i < verbs->n; i++)
        bash_verb(&verbs->verb[i], out);
    fputs("    esac\n"
          "    if [ -n \"$words\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    elif [ \"${word:0:1}\" = - ]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "    else\n"
          "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _tectum tectum\n",
          out);
}

/* --- zsh ------------------------------------------------------------------------------------ */

/* One option as a specification of _arguments: '(-o --out)'{-o,--out}'[help]:FILE:_files'. */
static void zsh_option(const struct tec_option *o, FILE *out)
{
    const char *many = o->type == TEC_OPTION_LIST ? "*" : "";
    if (o->letter)
        fprintf(out, " \\\n            '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter,
                o->name);
    else
        fprintf(out, " \\\n            '%s--%s[", many, o->name);
    print_quoted(o->help, "[]\\", "'\\''", out);
    fputc(']', out);
    if (words_of(o)) {
        fprintf(out, ":%s:(", o->name);
        print_words(words_of(o), out);
        fputc(')', out);
    } else if (o->value) {
        fprintf(out, ":%s:_files", o->name);
    }
    fputc('\'', out);
}

static void print_zsh(const struct tec_verbs *verbs, FILE *out)
{
    fputs("#compdef tectum\n# zsh completion of tectum; made by `tectum completion zsh`\n"
          "_tectum() {\n    local -a verbs\n    verbs=(\n",
          out);
    for (int i = 0; i < verbs->n; i++) {
        fprintf(out, "        '%s:", verbs->verb[i].name);
        print_quoted(verbs->verb[i].text, ":\\", "'\\''", out);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe verb verbs\n"
          "        return\n"
          "    fi\n"
          "    local verb=$words[2]\n"
          "    words=(\"tectum $verb\" \"${(@)words[3,-1]}\")\n"
          "    ((CURRENT--))\n"
          "    case $verb in\n",
          out);
    for (int i = 0; i < verbs->n; i++) {
        struct tec_option_group groups[TEC_MAX_GROUPS];
        int n = tec_shared_groups(groups, verbs->verb[i].command, NULL, NULL);
        fprintf(out, "    %s)\n        _arguments", verbs->verb[i].name);
        for (int g = 0; g < n; g++)
            for (int k = 0; k < groups[g].n; k++)
                zsh_option(&groups[g].options[k], out);
        if (verbs->verb[i].command->words) {
            fputs(" \\\n            '1: :(", out);
            print_words(verbs->verb[i].command->words, out);
            fputs(")'", out);
        }
        fputs(" \\\n            '*:file:_files' ;;\n", out);
    }
    fputs("    esac\n}\ncompdef _tectum tectum\n", out);
}

/* --- fish ----------------------------------------------------------------------------------- */

static void fish_option(const char *verb, const struct tec_option *o, FILE *out)
{
    fprintf(out, "complete -c tectum -n '__fish_seen_subcommand_from %s' -l %s", verb, o->name);
    if (o->letter)
        fprintf(out, " -s %c", o->letter);
    if (words_of(o)) {
        fputs(" -x -a '", out);
        print_words(words_of(o), out);
        fputc('\'', out);
    } else if (o->value) {
        fputs(" -r", out);
    }
    fputs(" -d '", out);
    print_quoted(o->help, "\\", "\\'", out);
    fputs("'\n", out);
}

static void print_fish(const struct tec_verbs *verbs, FILE *out)
{
    fputs("# fish completion of tectum; made by `tectum completion fish`\n", out);
    for (int i = 0; i < verbs->n; i++) {
        const struct tec_verb *verb = &verbs->verb[i];
        struct tec_option_group groups[TEC_MAX_GROUPS];
        int n = tec_shared_groups(groups, verb->command, NULL, NULL);
        fprintf(out, "complete -c tectum -f -n __fish_use_subcommand -a %s -d '", verb->name);
        print_quoted(verb->text, "\\", "\\'", out);
        fputs("'\n", out);
        for (int g = 0; g < n; g++)
            for (int k = 0; k < groups[g].n; k++)
                fish_option(verb->name, &groups[g].options[k], out);
        if (verb->command->words) {
            fprintf(out, "complete -c tectum -n '__fish_seen_subcommand_from %s' -a '", verb->name);
            print_words(verb->command->words, out);
            fputs("'\n", out);
        }
    }
}

static const struct {
    const char *name;
    void (*print)(const struct tec_verbs *verbs, FILE *out);
} shells[] = {{"bash", print_bash}, {"fish", print_fish}, {"zsh", print_zsh}};

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct tec_verbs verbs = tec_verbs();
    (void)err; /* the name is one of `words` */
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(call->args.item[0], shells[i].name) == 0)
            shells[i].print(&verbs, call->out);
    return TEC_OK;
}

const struct tec_command tec_command_completion = {
    .usage = "completion SHELL",
    .about = "SHELL is bash, fish or zsh. The script completes verbs, options and their words.\n",
    .example = "  tectum completion bash > ~/.local/share/bash-completion/completions/tectum\n"
               "  tectum completion fish > ~/.config/fish/completions/tectum.fish\n"
               "  source <(tectum completion zsh)\n",
    .min_args = 1,
    .max_args = 1,
    .args = "the name of a shell",
    .words = "bash|fish|zsh",
    .run = run,
};
