/* The devices of a machine that does not exist (devices.def). None of them leads anywhere: below
 * /dev lie empty files of these names, and this is what they are to look like. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/machine.h"

typedef struct aq_device {
    bool block;
    uint32_t major, minor, mode, group;
    int refusal;    /* errno for those whom the mode lets in; 0: it lets in nobody but root */
    uint32_t order; /* from 0: which device it is */
} aq_device;

/* By its absolute path. False: it is none of these, or this machine has it not. */
bool aq_veil_device(const aq_machine *m, const char *path, aq_device *ret);
/* Is it a disk, or the name of one, that this machine has not, or a file that tells of the host's
 * (aq_veil_of_host)? */
bool aq_veil_no_device(const aq_machine *m, const char *path);
/* Calls `each` for every name below /dev that has a row, of all machines. */
void aq_veil_devices(void (*each)(void *arg, const char *name), void *arg);
