/* main.c - the program: everything is in tools/cli/command.c. */
#include "tools/cli/command.h"

int main(int argc, char **argv)
{
    return tec_command_main(argc, argv);
}
