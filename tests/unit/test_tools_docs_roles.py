"""Roles of docstrings on the reference page."""

from __future__ import annotations

from tools.docs_roles import linked

PAGE = (
    '<h2 id="privatest.mmd_test"></h2><h2 id="privatest.A.save"></h2><h2 id="privatest.B.to"></h2>'
)


def shown(role: str) -> str:
    return linked(PAGE + role).removeprefix(PAGE)


def test_what_the_page_documents_is_linked():
    link = '<a href="#privatest.mmd_test"><code>mmd_test</code></a>'
    for name in ("privatest.mmd_test", "~privatest.mmd_test", "mmd_test"):
        assert shown(f"see :func:<code>{name}</code>.") == f"see {link}."
    assert shown(":meth:<code>save</code>") == '<a href="#privatest.A.save"><code>save</code></a>'


def test_anything_else_is_a_name():
    assert (
        shown(":mod:<code>privatest.numerics.laws</code>") == "<code>privatest.numerics.laws</code>"
    )
    assert linked(PAGE + '<i id="privatest.C.save"></i>:meth:<code>save</code>').endswith(
        "<code>save</code>"  # two classes have one: none is meant for sure
    )


def test_names_on_other_pages_are_left_to_autorefs():
    link = '<autoref identifier="privatest.ks_2samp" optional><code>ks_2samp</code></autoref>'
    for name in ("privatest.ks_2samp", "ks_2samp"):
        assert shown(f":func:<code>{name}</code>") == link
