/* Processes of a machine that does not exist, and that nobody of a world is (actors.def). They do
 * nothing; their files in /proc say what such processes say. */
#pragma once

#include "veil/veil.h"

typedef struct aq_veil_actor {
    int pid, parent;
    uint32_t uid;
    const char *number; /* its pid, as text */
    const char *comm, *command;
    size_t command_len;
    uint64_t start, tty, size_kb, ticks;
    unsigned threads;
} aq_veil_actor;

extern const aq_veil_actor aq_veil_actors[];
extern const size_t aq_veil_actor_count;

uint32_t aq_veil_actor_group(const aq_veil_actor *a);
const aq_veil_actor *aq_veil_actor_of(int pid); /* NULL: none of them */
/* Has this machine such a process? Threads of the kernel serve processors and devices. */
bool aq_veil_actor_on(const aq_machine *m, const aq_veil_actor *a);
/* The one that a path in /proc tells of; NULL: none. */
const aq_veil_actor *aq_veil_actor_at(const char *path);
