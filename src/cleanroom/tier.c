/* Which sandbox tier a package asks for: the stricter of what its publisher's tier and its
 * capabilities, declared and implied, call for. The tables are the source's: ★ T0, ● and ◆ T1, ○
 * and ◐ T2; pure compute T0, files and named hosts T1, shell, any host and subagents T2.
 *
 * What a manifest starts is of two sorts. The package's own code in a language's own runtime (a
 * path, or "python3 src/count.py") needs processes and files: T1. Everything else that it has run,
 * a shell or a program of the host, is shell: T2. */
#include <string.h>

#include "cleanroom/report.h"

static const char *const tier_names[] = {"t0", "t1", "t2"};

static const struct {
    unsigned tier;
    const char *why;
} by_publisher[] = {
    [AQ_TIER_LOCAL] = {0, NULL},
    [AQ_TIER_NEW] = {2, "the publisher is new"},
    [AQ_TIER_IDENTIFIED] = {2, "the publisher is identified but not proven"},
    [AQ_TIER_PROVEN] = {1, "the publisher is proven, not a steward"},
    [AQ_TIER_TRUSTED] = {1, "the publisher is trusted, not a steward"},
    [AQ_TIER_STEWARD] = {0, NULL},
};

static const struct {
    unsigned tier;
    const char *why;
} by_capability[AQ_CAP_COUNT] = {
    [AQ_CAP_FS_READ] = {1, "it declares that it reads files"},
    [AQ_CAP_FS_WRITE] = {1, "it declares that it writes files"},
    [AQ_CAP_NETWORK] = {1, "it declares that it talks to named hosts"},
    [AQ_CAP_SHELL] = {2, "it declares that it runs commands"},
    [AQ_CAP_SECRETS] = {1, "it declares that it reads secrets"},
    [AQ_CAP_SUBAGENTS] = {2, "it declares that it starts agents"},
    [AQ_CAP_MCP] = {1, "it declares that it uses MCP servers"},
    [AQ_CAP_HOOKS] = {1, "it declares that it runs at events of its host"},
    [AQ_CAP_CLOCK] = {0, NULL},
    [AQ_CAP_CRYPTO] = {0, NULL},
};

/* What the manifests start is used, whether or not it was declared. */
static const struct {
    unsigned tier;
    const char *why;
} by_implied[AQ_CAP_COUNT] = {
    [AQ_CAP_NETWORK] = {1, "its manifest connects it to a named host"},
    [AQ_CAP_SHELL] = {2, "its manifest runs commands"},
    [AQ_CAP_MCP] = {1, "its manifest starts MCP servers"},
    [AQ_CAP_HOOKS] = {1, "its manifest hooks into events of its host"},
};

/* A host pattern that many strangers' machines match: "*", "*.com", "*:443". */
static bool broad(const char *host)
{
    const char *rest;

    if (host[0] != '*')
        return false;
    if (host[1] != '.')
        return true;
    rest = host + 2;
    return strchr(rest, '.') == NULL;
}

static bool broad_network(const aq_cap_group *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (broad(g->patterns[i]))
            return true;
    return false;
}

/* Is it the package's own code: a relative path, alone or behind a language's runtime, with nothing
 * that only a shell understands? Shell scripts are shell. */
static bool own_code(const char *command)
{
    static const char *const runtimes[] = {"node", "python", "python3", "ruby", "perl", "php"};
    size_t n = strcspn(command, " ");
    const char *path = command;

    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (strlen(runtimes[i]) == n && strncmp(command, runtimes[i], n) == 0 && command[n])
            path = command + n + 1;
    if (command[strcspn(command, "$`;|&<>(){}*?~\"'\\\n")] || path[0] == '/' || path[0] == '-' ||
        strstr(path, ".."))
        return false;
    n = strcspn(path, " ");
    if (path == command && !memchr(path, '/', n))
        return false; /* a program of the host, found by its name */
    return n > 0 && !(n > 3 && strncmp(path + n - 3, ".sh", 3) == 0) &&
           !(n > 5 && strncmp(path + n - 5, ".bash", 5) == 0);
}

static bool all_own_code(const aq_cap_group *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (!own_code(g->patterns[i]))
            return false;
    return true;
}

static unsigned raise_to(unsigned tier, unsigned asked, const char *reason, const char **why)
{
    if (asked <= tier)
        return tier;
    *why = reason;
    return asked;
}

const char *aq_tier_wanted(const aq_submission *s, const aq_manifest *m, const char **why)
{
    unsigned tier = 0;

    *why = "it declares nothing beyond pure compute";
    if (!m->declared.present && m->kind == AQ_KIND_WASM)
        *why = "a WebAssembly module that declares nothing beyond pure compute";
    else if (!m->declared.present)
        tier = raise_to(
            tier, 1, "it declares no capabilities, so files and processes must be expected", why);
    for (size_t i = 0; i < AQ_CAP_COUNT; i++)
        if (m->declared.group[i].count > 0)
            tier = raise_to(tier, by_capability[i].tier, by_capability[i].why, why);
    for (size_t i = 0; i < AQ_CAP_COUNT; i++) {
        if (m->implied.group[i].count == 0)
            continue;
        if (i == AQ_CAP_SHELL && all_own_code(&m->implied.group[i]))
            tier = raise_to(tier, 1, "its manifest starts code of its own", why);
        else
            tier = raise_to(tier, by_implied[i].tier, by_implied[i].why, why);
    }
    if (broad_network(&m->implied.group[AQ_CAP_NETWORK]))
        tier = raise_to(tier, 2, "its manifest connects it to any host", why);
    if (broad_network(&m->declared.group[AQ_CAP_NETWORK]))
        tier = raise_to(tier, 2, "it declares that it talks to any host", why);
    /* A tier that nobody verified is a claim: it must not open a weaker sandbox. */
    if (s->local || s->signature == AQ_SIGNATURE_GOOD)
        tier = raise_to(tier, by_publisher[s->tier].tier, by_publisher[s->tier].why, why);
    else
        tier = raise_to(tier, by_publisher[AQ_TIER_NEW].tier, "nobody verified who sent it", why);
    return tier_names[tier];
}
