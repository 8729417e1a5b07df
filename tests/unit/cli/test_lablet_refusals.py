"""What `kubectl lablet` says when the API server refuses: the role that is missing, and the command that grants it."""

import pytest

from tests.support.docs import ROOT
from vkprovider.cli.shared.refusals import advised, lacking
from vkprovider.doctor.rights import CheckedRight
from vkprovider.platform.errors import Forbidden, Unauthorized

ROLES = (ROOT / "manifests" / "base" / "roles.yaml").read_text()
GRANT = "an admin grants it: kubectl lablet grant alice -n friday"
IN_NAMESPACE = f"it takes the ClusterRole vkprovider-instructor in namespace friday; {GRANT}"
IN_CLUSTER = f"it takes the ClusterRole vkprovider-instructor-definitions; {GRANT}"
ASK = "ask an admin for that right; to see yours: kubectl auth can-i --list"


def refusal(what: str, verb: str, group: str = "", namespace: str = "friday", user: str = "alice") -> Forbidden:
    """A refusal in the API server's words."""
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    kind = what.partition("/")[0]
    named = f"{kind}.{group}" if group else kind
    return Forbidden(
        f'{named} "x" is forbidden: User "{user}" cannot {verb} resource "{what}" in API group "{group}" {where}',
        status=403,
    )


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (refusal("pods", "list"), IN_NAMESPACE),
        (refusal("pods/exec", "create"), IN_NAMESPACE),
        (refusal("deployments", "patch", "apps"), IN_NAMESPACE),
        (refusal("horizontalpodautoscalers", "list", "autoscaling"), IN_NAMESPACE),
        (refusal("labletdefinitions", "create", "vkprovider.io", ""), IN_CLUSTER),
        (refusal("cmlworkers", "list", "vkprovider.io", ""), IN_CLUSTER),
        (
            refusal("cmlworkers", "patch", "vkprovider.io", ""),
            "it takes the ClusterRole vkprovider-worker-admin, which",
        ),
        (refusal("pods", "list", namespace=""), "a right in all namespaces; name one of yours with -n"),
        (refusal("configmaps", "list", namespace="vkprovider-system"), ASK),
        (refusal("secrets", "get"), ASK),
        (refusal("namespaces", "get", namespace=""), ASK),
        (refusal("pods", "list", user="O'Hara"), "kubectl lablet grant 'O'\"'\"'Hara' -n friday"),
    ],
)
def test_a_missing_right_names_the_role_and_the_command(error: Forbidden, advice: str) -> None:
    said = advised(error, "friday")
    assert said.startswith(error.message)
    assert advice in said
    assert ("kubectl lablet grant" in said) == ("kubectl lablet grant" in advice)


def test_what_a_policy_or_a_quota_refuses_says_itself_what_to_do() -> None:
    """A role would not help there."""
    for text in (
        "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: Ask somebody else",
        'pods "a" is forbidden: exceeded quota: labs, requested: requests.vkprovider.io/lab-nodes=6',
        'pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
    ):
        assert advised(Forbidden(text, status=403), "friday") == text


def test_other_refusals_are_not_about_roles() -> None:
    assert "kubectl auth whoami" in advised(Unauthorized("Unauthorized", status=401), "friday")


def test_every_right_of_an_instructor_is_known() -> None:
    for right in (
        CheckedRight("get", "vkprovider.io", "lablets/login", "friday"),
        CheckedRight("watch", "", "pods", "friday"),
    ):
        assert lacking(ROLES, right, user="alice", namespace="friday") == IN_NAMESPACE


def test_nobody_is_advised_to_grant_rights_in_the_namespace_of_a_context_that_names_none() -> None:
    said = advised(refusal("pods", "list", namespace="default"), "default")
    assert "name yours with -n NAMESPACE" in said
    assert "kubectl lablet grant" not in said
