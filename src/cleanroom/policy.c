/* What the operator decides: defaults, and the file policy.yaml of the state folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/io.h"
#include "cleanroom/stage.h"

enum { POLICY_BYTES = 64 << 10, DAY = 24 * 60 * 60 };

static const struct key {
    const char *name;
    size_t at; /* of the field in aq_policy */
    uint32_t fallback, least, most;
} keys[] = {
#define AQ_POLICY(field, fallback, least, most, what)                                              \
    {#field, offsetof(aq_policy, field), fallback, least, most},
#include "cleanroom/policy.def"
#undef AQ_POLICY
};

enum { KEYS = sizeof keys / sizeof *keys };

static const struct {
    aq_budget_kind kind;
    uint64_t most;
} budgets[] = {
#define AQ_POLICY_BUDGET(id, most) {AQ_BUDGET_##id, most},
#include "cleanroom/policy_budgets.def"
#undef AQ_POLICY_BUDGET
};

enum { BUDGETS = sizeof budgets / sizeof *budgets };

static uint32_t *field(aq_policy *p, const struct key *k)
{
    return (uint32_t *)(void *)((char *)p + k->at);
}

void aq_policy_default(aq_policy *p)
{
    aq_budget usual;

    for (size_t i = 0; i < KEYS; i++)
        *field(p, &keys[i]) = keys[i].fallback;
    aq_budget_init(&usual);
    memcpy(p->budget, usual.limit, sizeof p->budget);
}

void aq_policy_apply(const aq_policy *p, aq_budget *budget)
{
    memcpy(budget->limit, p->budget, sizeof budget->limit);
}

json_t *aq_policy_json(const aq_policy *p)
{
    aq_policy copy = *p;
    json_t *o = json_object(), *limits = json_object();

    for (size_t i = 0; i < KEYS; i++)
        json_object_set_new(o, keys[i].name, json_integer(*field(&copy, &keys[i])));
    for (size_t i = 0; i < BUDGETS; i++)
        json_object_set_new(limits, aq_budget_name(budgets[i].kind),
                            json_integer((json_int_t)p->budget[budgets[i].kind]));
    json_object_set_new(o, "budgets", limits);
    return o;
}

static int read_budget(const aq_node *node, const char *file, aq_policy *p, aq_err *err)
{
    for (size_t i = 0; i < BUDGETS; i++) {
        if (strcmp(node->key, aq_budget_name(budgets[i].kind)) != 0)
            continue;
        if (node->kind != AQ_NODE_INT || node->number < 1 ||
            (uint64_t)node->number > budgets[i].most)
            return aq_fail(err, -EINVAL, "%s:%u: %s must be a whole number from 1 to %llu", file,
                           node->line, node->key, (unsigned long long)budgets[i].most);
        p->budget[budgets[i].kind] = (uint64_t)node->number;
        return 0;
    }
    return aq_fail(err, -EINVAL, "%s:%u: no budget %.60s can be set (docs/formats/policy.md)", file,
                   node->line, node->key);
}

static int read_budgets(const aq_node *node, const char *file, aq_policy *p, aq_err *err)
{
    if (node->kind != AQ_NODE_MAP && node->kind != AQ_NODE_NULL)
        return aq_fail(err, -EINVAL, "%s:%u: budgets must be a map of limits, not %s", file,
                       node->line, aq_node_kind_name(node->kind));
    for (const aq_node *n = node->first; n; n = n->next) {
        int r = read_budget(n, file, p, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_key(const aq_node *node, const char *file, aq_policy *p, aq_err *err)
{
    if (strcmp(node->key, "budgets") == 0)
        return read_budgets(node, file, p, err);
    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp(node->key, keys[i].name) != 0)
            continue;
        if (node->kind != AQ_NODE_INT || node->number < keys[i].least ||
            node->number > keys[i].most)
            return aq_fail(err, -EINVAL, "%s:%u: %s must be a whole number from %u to %u", file,
                           node->line, node->key, keys[i].least, keys[i].most);
        *field(p, &keys[i]) = (uint32_t)node->number;
        return 0;
    }
    return aq_fail(err, -EINVAL,
                   "%s:%u: unknown key %.60s (rate_limit, rate_window, name_distance and "
                   "budgets are known)",
                   file, node->line, node->key);
}

int aq_policy_read(const char *text, size_t len, const char *file, aq_policy *ret, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    const aq_node *root;
    aq_policy p;
    int r = aq_doc_yaml(a, text, len, file, &root, err);

    if (r < 0)
        return r;
    aq_policy_default(&p);
    if (root->kind != AQ_NODE_MAP && root->kind != AQ_NODE_NULL)
        return aq_fail(err, -EINVAL, "%s: a map of keys is expected, not %s", file,
                       aq_node_kind_name(root->kind));
    for (const aq_node *n = root->first; n; n = n->next)
        if ((r = read_key(n, file, &p, err)) < 0)
            return r;
    *ret = p;
    return 0;
}

int aq_policy_load(int dirfd, const char *folder, aq_policy *ret, aq_err *err)
{
    aq_auto_buf text = {0}, name = {0};
    int r;

    if (faccessat(dirfd, "policy.yaml", F_OK, 0) < 0 && errno == ENOENT) {
        aq_policy_default(ret);
        return 0;
    }
    aq_buf_addf(&name, "%s%spolicy.yaml", folder ? folder : "", folder ? "/" : "");
    if ((r = aq_read_file(dirfd, "policy.yaml", POLICY_BYTES, &text, err)) < 0)
        return folder ? aq_err_within(err, "%.300s", folder) : r;
    r = aq_policy_read(aq_buf_str(&text), text.len, aq_buf_str(&name), ret, err);
    return r < 0 ? r : 1;
}
