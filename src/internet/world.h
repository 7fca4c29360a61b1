/* What the internet of one world is told about it: one JSON document in a sealed memory file,
 * written by whoever starts the program and read once by it, before the first step.
 * docs/formats/internet.md defines it. Our own side wrote it, so a fault in it is our failure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "model/machine.h"

enum {
    AQ_INTERNET_WORLD = 4 << 20, /* bytes of the document */
    AQ_INTERNET_NAMES = 1024,    /* declared names */
};

typedef struct aq_internet_world {
    uint8_t pair[32];     /* key of all that both worlds of a seed share: addresses, TLS, waiting */
    uint8_t own[32];      /* key of what this world alone says: contents of answers, certificates */
    const aq_fact *facts; /* of the machine */
    size_t fact_count;
    const aq_fact *decoys; /* values that answers give away, by the decoy's name */
    size_t decoy_count;
    const char *const *names; /* host names that resolve; "*.example.org" for all below */
    size_t name_count;
    const char *ca_certificate, *ca_key; /* PEM; NULL: there is no TLS */
} aq_internet_world;

void aq_internet_world_write(const aq_internet_world *w, aq_buf *out);
int aq_internet_world_read(aq_arena *a, const char *text, size_t len, aq_internet_world *ret,
                           aq_err *err);
/* A sealed memory file with it, closed by exec; or a negative errno. */
int aq_internet_world_file(const aq_internet_world *w, aq_err *err);

const char *aq_internet_fact(const aq_internet_world *w, const char *name);  /* NULL: none */
const char *aq_internet_decoy(const aq_internet_world *w, const char *name); /* NULL: none */
