// TOML by toml++, the one place where C++ is spoken: a page that turns its tree into ours. Nothing
// is thrown across the border. Depth is judged by doc_toml.c before the library sees the text,
// because it takes its stack from the nesting of the input.
#include <stdexcept>

// The library asserts what its input can make untrue ("[[:" as a table's name): that is an error of
// the text, never the end of the process.
namespace
{
[[noreturn]] void not_toml()
{
    throw std::logic_error("a key or value that TOML does not have");
}
} // namespace
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : not_toml())
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#define _Noreturn [[noreturn]] // our headers are C
extern "C" {
#include "base/doc_build.h"
int aq_doc_toml_parse(aq_build *b, const char *text, size_t len);
}

namespace
{
struct walker {
    aq_build *b;
    std::string_view text;
    std::vector<size_t> lines; // where each line starts

    // A scalar as written. Columns count characters, which in a number are bytes; the part before
    // it on the line may hold others, so step over those by their lead bytes.
    std::string_view written(const toml::source_region &at) const
    {
        if (at.begin.line == 0 || at.begin.line > lines.size() || at.begin.line != at.end.line)
            return {};
        size_t from = lines[at.begin.line - 1];
        for (auto column = at.begin.column; column > 1 && from < text.size(); column--)
            do
                from++;
            while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0) == 0x80);
        std::string_view rest = text.substr(std::min(from, text.size()));
        return rest.substr(0, rest.find_first_of(" \t\r\n,]}#"));
    }

    int scalar(const char *key, uint32_t line, const toml::node &n)
    {
        aq_build_value v = {};
        auto slice = written(n.source());
        v.kind = AQ_NODE_STR;
        if (auto s = n.as_string())
            slice = s->get();
        else if (auto flag = n.as_boolean())
            v.kind = AQ_NODE_BOOL, v.number = flag->get();
        else if (auto number = n.as_integer())
            v.kind = AQ_NODE_INT, v.number = number->get();
        else if (n.is_floating_point())
            v.kind = AQ_NODE_REAL;
        v.text = slice.data() ? slice.data() : "";
        v.len = slice.size();
        return aq_build_scalar(b, key, line, v);
    }

    int table(const toml::table &t)
    {
        std::vector<std::pair<const toml::key *, const toml::node *>> members;
        for (auto &&[k, v] : t)
            members.emplace_back(&k, &v);
        std::stable_sort(members.begin(), members.end(), [](auto &x, auto &y) {
            return x.first->source().begin < y.first->source().begin;
        });
        for (auto [k, v] : members) {
            auto name = k->str();
            if (name.find('\0') != name.npos)
                return aq_build_fail(b, k->source().begin.line, 0, "a key that is not plain text");
            const char *key = aq_arena_strndup(b->arena, name.data(), name.size());
            if (int r = node(key, k->source().begin.line, *v))
                return r;
        }
        return 0;
    }

    int node(const char *key, uint32_t line, const toml::node &n)
    {
        int r = 0;
        if (!n.is_table() && !n.is_array())
            return scalar(key, line, n);
        if ((r = aq_build_open(b, key, line, n.is_table() ? AQ_NODE_MAP : AQ_NODE_LIST)))
            return r;
        if (auto t = n.as_table())
            r = table(*t);
        else
            for (auto &&item : *n.as_array())
                if (!r)
                    r = node(nullptr, item.source().begin.line, item);
        aq_build_close(b);
        return r;
    }
};
} // namespace

int aq_doc_toml_parse(aq_build *b, const char *text, size_t len)
try {
    walker w = {b, {text, len}, {0}};
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\n')
            w.lines.push_back(i + 1);
    toml::table root = toml::parse(w.text);
    return w.node(nullptr, 1, root);
} catch (const toml::parse_error &e) {
    auto at = e.source().begin;
    auto why = e.description();
    return aq_build_fail(b, at.line ? at.line : 1, at.column, "%.*s",
                         static_cast<int>(std::min<size_t>(why.size(), 200)), why.data());
} catch (const std::logic_error &e) {
    return aq_build_fail(b, 1, 0, "%s", e.what());
} catch (...) {
    return aq_fail(b->err, -ENOMEM, "%s: the TOML reader gave up", b->name);
}
